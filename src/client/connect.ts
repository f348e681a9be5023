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
import { Connection } from "./connection.ts";
import { openSocket } from "./open-socket.ts";
import type { ReconnectOptions } from "./reconnector.ts";
import type { WebSocketConstructor } from "./socket.ts";
import { renewTokens } from "./token-renewal.ts";
import { type TokenOption, TokenSource } from "./token-source.ts";

interface SharedOptions {
  /** The class to use; default: the global one of browsers and of Node from 22 on. */
  readonly WebSocket?: WebSocketConstructor;
  /** Longest wait for `hello`, and before it for a token, ms; default 10 000. */
  readonly timeoutMs?: number;
  /**
   * Comes back by itself when the socket breaks, and goes on where it was: each frame and event is handed out once and
   * in order. `reconnecting` and `reconnected` report it. Default false. The first joining is tried once in any case.
   */
  readonly reconnect?: boolean | ReconnectOptions;
  /**
   * For a gateway with keys: a token, or a function that gets one. The function is asked at each joining, and again before
   * its token expires. Sent as a WebSocket subprotocol, never in the address.
   */
  readonly token?: TokenOption;
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
    const opening = {
      url: "url" in options ? options.url : liveUrl(options.baseUrl, options),
      WebSocket: options.WebSocket,
      timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      tokens: options.token === undefined ? null : new TokenSource(options.token),
    };
    const { reconnect = false } = options;
    const policy = reconnect === true ? {} : reconnect || null;
    openSocket(opening, {
      joined: (socket, hello) => {
        const connection = new Connection(socket, hello, { opening, policy });
        if (opening.tokens?.isRenewable === true) renewTokens(connection, opening.tokens);
        resolve(connection);
      },
      failed: (error) => reject(error),
    });
  });
}
