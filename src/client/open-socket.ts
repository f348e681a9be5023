/** One try to join a session: from the socket's opening to the gateway's `hello`, or to the reason why there is none. */
import type { HelloEvent } from "../protocol/events.ts";
import { clientError, VoicewireError } from "./client-error.ts";
import { parseEvent } from "./events.ts";
import { watchRefusal } from "./refused-upgrade.ts";
import type { SocketEnd, WebSocketConstructor, WebSocketLike } from "./socket.ts";
import type { TokenSource } from "./token-source.ts";

const SUBPROTOCOL = "voicewire.v1";
/** Browsers can't set headers on a WebSocket: the token is a second subprotocol. */
const TOKEN_SUBPROTOCOL = "voicewire.token.";

/** The connection ended without a close frame (RFC 6455 section 7.4.1): none came about, or the network broke. */
const NO_CLOSE_FRAME = 1006;
const CLOSE_AFTER_ERROR_MS = 1000;
const ADVICE =
  "this WebSocket shows no HTTP answer: a browser's network tools do, and in Node the WebSocket of the package ws";

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
    handlers.failed(error, { code: NO_CLOSE_FRAME, reason: error.code });
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
  // What the runtime says of a failure: browsers say nothing.
  let fault = "";
  let closeTimer: ReturnType<typeof setTimeout> | undefined;
  const settle = (): boolean => {
    const isFirst = !isSettled;
    isSettled = true;
    clearTimeout(timer);
    clearTimeout(closeTimer);
    return isFirst;
  };
  const giveUp = (error: VoicewireError): void => {
    if (settle()) handlers.failed(error, { code: NO_CLOSE_FRAME, reason: error.code });
    socket.close();
  };
  const timer = setTimeout(() => {
    giveUp(clientError("connect_timeout", "Connection: no hello came in time"));
  }, opening.timeoutMs);
  const showsAnswers = watchRefusal(socket, giveUp);
  socket.addEventListener("message", ({ data }) => {
    if (isSettled || typeof data !== "string") return;
    const event = parseEvent(data);
    if (event?.type === "error") reason = new VoicewireError(event);
    if (event?.type === "hello" && settle()) handlers.joined(socket, event);
  });
  const onClose = ({ code, reason: text }: SocketEnd): void => {
    const unexplained = () => {
      const why = [text, fault].filter((part) => part !== "").map((part) => `: ${part}`);
      const advice = code === NO_CLOSE_FRAME && !showsAnswers ? `; ${ADVICE}` : "";
      return clientError(
        "connect_failed",
        `Connection: closed with ${code} before hello${why.join("")}${advice}`,
      );
    };
    if (settle()) handlers.failed(reason ?? unexplained(), { code, reason: text });
  };
  socket.addEventListener("close", onClose);
  // The close follows the error, but not in Node 22's own class where nothing was opened. Without a listener, `ws` would throw.
  socket.addEventListener("error", (event) => {
    if ("message" in event && typeof event.message === "string") fault = event.message.replace(/\.$/, "");
    if (!isSettled)
      closeTimer ??= setTimeout(onClose, CLOSE_AFTER_ERROR_MS, { code: NO_CLOSE_FRAME, reason: "" });
  });
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
