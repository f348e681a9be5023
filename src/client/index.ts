/** What a program gets that imports `voicewire/client`: in browsers and in Node. */
export type {
  AudioDescription,
  Event,
  HelloEvent,
  Limits,
} from "../protocol/events.ts";
export type { EventKind, ListenerFormat, ListenerSettings } from "../protocol/vocabulary.ts";
export type { ConnectionSettings } from "./address.ts";
export { VoicewireError } from "./client-error.ts";
export { type ConnectOptions, connect } from "./connect.ts";
export type {
  AudioHandler,
  Connection,
  DialogueFields,
  PlayFields,
  PrepareFields,
  SpeakFields,
  TextOptions,
} from "./connection.ts";
export type { FramePosition } from "./frame-clock.ts";
export type { EventOf, EventType, ReconnectedEvent, ReconnectingEvent, Unsubscribe } from "./listeners.ts";
export type { ReconnectOptions } from "./reconnector.ts";
export { type Recovered, recovered } from "./recovery.ts";
export type { SocketEnd, WebSocketConstructor, WebSocketLike } from "./socket.ts";
export type { TokenOption } from "./token-source.ts";
