/** One try to join a session: from the socket's opening to the gateway's `hello`, or to the reason why there is none. */
import type { HelloEvent } from "../protocol/events.ts";
import { clientError, VoicewireError } from "./client-error.ts";
import { parseEvent } from "./events.ts";
import type { SocketEnd, WebSocketConstructor, WebSocketLike } from "./socket.ts";
import type { TokenSource } from "./token-source.ts";

const SUBPROTOCOL = "voicewire.v1";
/** Browsers can't set headers on a WebSocket: the token is a second subprotocol. */
const TOKEN_SUBPROTOCOL = "voicewire.token.";

export interface Opening {
  readonly url: string;
  readonly WebSocket: WebSocketConstructor | undefined;
  /** Longest wait for `hello`, ms. */
  readonly timeoutMs: number;
  /** null: the gateway has no keys. */
  readonly tokens: TokenSource | null;
}

export interface OpeningHandlers {
  /** Runs in the turn that `hello` came in: what is attached to the socket now misses nothing. */
  joined(socket: WebSocketLike, hello: HelloEvent): void;
  failed(error: VoicewireError, end: SocketEnd): void;
}

/** Calls one of the handlers, once; returns how to give up without either. Throws TypeError for a bad url or runtime. */
export function openSocket(opening: Opening, handlers: OpeningHandlers): () => void {
  const newSocket = socketMaker(opening);
  if (opening.tokens === null) return watchSocket(newSocket(), opening, handlers);
  let isAbandoned = false;
  let abandon = (): void => {
    isAbandoned = true;
    clearTimeout(timer);
  };
  const fail = (error: VoicewireError): void => {
    if (isAbandoned) return;
    abandon();
    handlers.failed(error, { code: 1006, reason: error.code });
  };
  const none = clientError("token_failed", "Token: none came in time");
  const timer = setTimeout(() => fail(none), opening.timeoutMs);
  opening.tokens
    .next()
    .then((token) => {
      clearTimeout(timer);
      if (isAbandoned) return;
      const socket = newSocket([SUBPROTOCOL, `${TOKEN_SUBPROTOCOL}${token}`]);
      abandon = watchSocket(socket, opening, handlers);
    })
    .catch((thrown: unknown) => {
      fail(thrown instanceof VoicewireError ? thrown : clientError("connect_failed", String(thrown)));
    });
  return () => abandon();
}

function watchSocket(socket: WebSocketLike, opening: Opening, handlers: OpeningHandlers): () => void {
  socket.binaryType = "arraybuffer";
  let isSettled = false;
  // Set when the gateway gives its reason in an `error` event before it closes.
  let reason: VoicewireError | null = null;
  const settle = (): boolean => {
    const isFirst = !isSettled;
    isSettled = true;
    clearTimeout(timer);
    return isFirst;
  };
  const timer = setTimeout(() => {
    const error = clientError("connect_timeout", "Connection: no hello came in time");
    if (settle()) handlers.failed(error, { code: 1006, reason: error.code });
    socket.close();
  }, opening.timeoutMs);
  socket.addEventListener("message", ({ data }) => {
    if (isSettled || typeof data !== "string") return;
    const event = parseEvent(data);
    if (event?.type === "error") reason = new VoicewireError(event);
    if (event?.type === "hello" && settle()) handlers.joined(socket, event);
  });
  socket.addEventListener("close", ({ code, reason: text }) => {
    const unexplained = () =>
      clientError("connect_failed", `Connection: closed with ${code} ${text} before hello`);
    if (settle()) handlers.failed(reason ?? unexplained(), { code, reason: text });
  });
  // The close that follows every error carries what is known; without a listener, `ws` would throw.
  socket.addEventListener("error", () => undefined);
  return () => {
    if (settle()) socket.close();
  };
}

/** What makes a socket. Throws TypeError for a bad url or runtime. */
function socketMaker({ url, WebSocket }: Opening): (protocols?: string[]) => WebSocketLike {
  const found = WebSocket ?? (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
  if (found === undefined) {
    throw new TypeError(
      "WebSocket is missing in this runtime: pass one as `WebSocket`, e.g. from the package ws",
    );
  }
  // Without subprotocols the second argument has to be missing.
  return (protocols) => (protocols === undefined ? new found(url) : new found(url, protocols));
}
