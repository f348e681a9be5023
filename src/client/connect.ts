/**
 * The client's way in, for browsers and Node:
 *
 *   const connection = await connect({ baseUrl: "http://127.0.0.1:8080", session: "demo", settings: { format: "pcm_16000" } });
 *   connection.onAudio((frame, { atMs }) => play(frame, atMs));
 *   await connection.say("Hello there.");
 *
 * Node 20 has no WebSocket of its own: pass `WebSocket` from the package `ws`.
 */
import { type ConnectionSettings, liveUrl } from "./address.ts";
import { clientError, VoicewireError } from "./client-error.ts";
import { Connection } from "./connection.ts";
import { parseEvent } from "./events.ts";
import type { WebSocketConstructor, WebSocketLike } from "./socket.ts";

export type { ConnectionSettings } from "./address.ts";
export { VoicewireError } from "./client-error.ts";
export type { AudioHandler, Connection, DialogueFields, SpeakFields, TextOptions } from "./connection.ts";
export type { FramePosition } from "./frame-clock.ts";
export type { SocketEnd, WebSocketConstructor, WebSocketLike } from "./socket.ts";

interface SharedOptions {
  /** The class to use; default: the global one of browsers and of Node from 22 on. */
  readonly WebSocket?: WebSocketConstructor;
  /** Longest wait for `hello`, ms; default 10 000. */
  readonly timeoutMs?: number;
}

export type ConnectOptions = SharedOptions &
  (
    | {
        /** The whole address: `ws://host:port/live/SESSION?format=...`. */
        readonly url: string;
      }
    | {
        /** Where the gateway is: http(s) or ws(s), with any path prefix. */
        readonly baseUrl: string;
        readonly session: string;
        readonly settings?: ConnectionSettings;
      }
  );

const DEFAULT_TIMEOUT_MS = 10_000;

/**
 * Joins a session; resolves at the gateway's `hello`, rejects with VoicewireError, or TypeError where the address is
 * none or no WebSocket class is there. Handlers attached in the same turn as the `await` miss nothing.
 */
export function connect(options: ConnectOptions): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const url = "url" in options ? options.url : liveUrl(options.baseUrl, options);
    const socket = openSocket(url, options.WebSocket);
    socket.binaryType = "arraybuffer";
    let isSettled = false;
    // Set when the gateway gives its reason in an `error` event before it closes.
    let reason: VoicewireError | null = null;
    const fail = (error: VoicewireError) => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      reject(error);
    };
    const timer = setTimeout(() => {
      fail(clientError("connect_timeout", "Connection: no hello came in time"));
      socket.close();
    }, options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    socket.addEventListener("message", ({ data }) => {
      if (isSettled || typeof data !== "string") return;
      const event = parseEvent(data);
      if (event?.type === "error") reason = new VoicewireError(event);
      if (event?.type !== "hello") return;
      isSettled = true;
      clearTimeout(timer);
      resolve(new Connection(socket, event));
    });
    socket.addEventListener("close", ({ code, reason: text }) => {
      fail(reason ?? clientError("connect_failed", `Connection: closed with ${code} ${text} before hello`));
    });
    // The close that follows every error carries what is known; without a listener, `ws` would throw.
    socket.addEventListener("error", () => undefined);
  });
}

function openSocket(url: string, given: WebSocketConstructor | undefined): WebSocketLike {
  const found = given ?? (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
  if (found === undefined) {
    throw new TypeError(
      "WebSocket is missing in this runtime: pass one as `WebSocket`, e.g. from the package ws",
    );
  }
  return new found(url);
}
