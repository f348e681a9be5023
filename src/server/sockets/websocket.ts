/** What the gateway's WebSockets have in common: their limits, the upgrade, and how a text message is read. */
import type { HttpRequest, HttpResponse, us_socket_context_t, WebSocketBehavior } from "uWebSockets.js";
import { GatewayError } from "../../errors.ts";
import { answeredSubprotocol } from "../credential.ts";
import type { Bytes } from "./backlog.ts";

/** Messages over the limit are still read up to so many times of it, so that they can be answered with an error. */
export const HARD_MESSAGE_FACTOR = 8;

/** Of an answer to a handshake. */
export type Headers = readonly (readonly [name: string, value: string])[];

interface SocketLimits {
  /** A message beyond it closes the socket without a word. */
  readonly hardMessageBytes: number;
  /** What may wait for a client, counting what one batch or message may add to a full send queue. */
  readonly maxBackpressureBytes: number;
  /** Without a word or a pong for so long a client is gone, seconds. */
  readonly idleSeconds: number;
}

/** A full send queue is the state's to handle: the library closes nothing because of it. */
export function socketLimits({ hardMessageBytes, maxBackpressureBytes, idleSeconds }: SocketLimits) {
  return {
    maxPayloadLength: hardMessageBytes,
    maxBackpressure: maxBackpressureBytes,
    closeOnBackpressureLimit: false,
    idleTimeout: idleSeconds,
    sendPingsAutomatically: true,
  } as const satisfies WebSocketBehavior<unknown>;
}

interface Upgrade<T> {
  readonly context: us_socket_context_t;
  /** What the library keeps for the socket. */
  readonly data: T;
  /** Without it the client gets the first that it offered. */
  readonly subprotocol?: string;
  /** The answer has these headers, too. */
  readonly headers?: Headers;
}

/** Lets a client in. Only before the upgrade handler returns. */
export function acceptUpgrade<T>(res: HttpResponse, req: HttpRequest, upgrade: Upgrade<T>): void {
  const { context, data, subprotocol = answeredSubprotocol(req), headers = [] } = upgrade;
  const key = req.getHeader("sec-websocket-key");
  const extensions = req.getHeader("sec-websocket-extensions");
  res.cork(() => {
    // Before the first header the library would write "200 OK".
    res.writeStatus("101 Switching Protocols");
    for (const [name, value] of headers) res.writeHeader(name, value);
    res.upgrade(data, key, subprotocol, extensions, context);
  });
}

/** Reads messages where JSON text is expected. What it returns throws binary_not_allowed and message_too_large. */
export function textReader(maxBytes: number): (message: Bytes, isBinary: boolean) => string {
  const decoder = new TextDecoder();
  return (message, isBinary) => {
    if (isBinary) {
      const text = "Message is binary: expected JSON text, audio only goes out";
      throw new GatewayError("binary_not_allowed", text);
    }
    if (message.byteLength > maxBytes) {
      const text = `Message is too large: ${message.byteLength} bytes, expected at most ${maxBytes}`;
      throw new GatewayError("message_too_large", text);
    }
    // The library has checked that text is UTF-8.
    return decoder.decode(message);
  };
}
