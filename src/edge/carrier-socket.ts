/**
 * `/carrier/{name}` and `/carrier`: carriers' WebSockets, each a phone call. Which carrier speaks says the path, else
 * its first messages. Whoever may not connect is refused with a status before the upgrade.
 */
import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_socket_context_t,
  WebSocket,
  WebSocketBehavior,
} from "uWebSockets.js";
import type { Call } from "../calls/call.ts";
import type { CallLine } from "../calls/call-sink.ts";
import type { Calls } from "../calls/calls.ts";
import { GatewayError } from "../errors.ts";
import type { SendResult } from "../fanout/sink.ts";
import {
  CARRIERS,
  type CarrierDialect,
  type CarrierHello,
  type CarrierName,
  type Wire,
} from "../protocol/carrier/carrier.ts";
import { DIALECTS } from "../protocol/carrier/index.ts";
import { sniffCarrier } from "../protocol/carrier/sniff.ts";
import { admitCarrier, type CarrierAuth, notSigned } from "./carrier-auth.ts";
import { Reply } from "./http.ts";
import { decoded } from "./live-socket.ts";

export interface CarrierSocketOptions extends CarrierAuth {
  readonly calls: Calls;
  readonly maxOutboxBytes: number;
  readonly idleSeconds: number;
}

interface CarrierData {
  readonly hello: CarrierHello;
  readonly subprotocol: string;
  /** null: its first messages say. */
  readonly carrier: CarrierName | null;
  readonly isSigned: boolean;
  line: UwsLine | null;
  call: Call | null;
}

/** No carrier sends more in one message; a little more is still read, so that it is answered with an error. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
/** What one batch may add on top of a full outbox: 300 ms of 48 kHz in base64, generously. */
const BATCH_SLACK_BYTES = 256 * 1024;
/** What the library's `send` answers; anything else is "buffered, and the socket is behind". */
const SENT = 1;
const DROPPED = 2;
/** What a token or a signature stands in is for the door only: it is not handed on. */
const SECRET_HEADERS: readonly string[] = [
  "authorization",
  "cookie",
  "x-telnyx-streaming-auth-token",
  "x-twilio-signature",
];

export function routeCarriers(app: TemplatedApp, options: CarrierSocketOptions): void {
  app.ws(
    "/carrier/:name",
    carrierSocket(options, (req) => carrierOf(req.getParameter(0) ?? "")),
  );
  app.ws(
    "/carrier",
    carrierSocket(options, () => null),
  );
}

/** `carrierIn`: of a request; null where its first messages are to say. Throws not_found. */
function carrierSocket(
  options: CarrierSocketOptions,
  carrierIn: (req: HttpRequest) => CarrierName | null,
): WebSocketBehavior<CarrierData> {
  const decoder = new TextDecoder();
  return {
    maxPayloadLength: MAX_MESSAGE_BYTES,
    maxBackpressure: options.maxOutboxBytes + BATCH_SLACK_BYTES,
    closeOnBackpressureLimit: false,
    idleTimeout: options.idleSeconds,
    sendPingsAutomatically: true,
    upgrade: (res, req, context) => answerUpgrade(res, req, { context, options, carrierIn }),
    open: (socket) => {
      const data = socket.getUserData();
      data.line = new UwsLine(socket);
      data.call = options.calls.take({
        line: data.line,
        hello: data.hello,
        dialectOf: dialectFinder(data, options),
      });
    },
    message: (socket, message, isBinary) => {
      // The library has checked that text is UTF-8.
      socket.getUserData().call?.receive(isBinary ? new Uint8Array(message) : decoder.decode(message));
    },
    drain: (socket) => socket.getUserData().call?.drained(),
    close: (socket) => {
      const data = socket.getUserData();
      data.line?.markClosed();
      data.call?.closed();
      data.call = null;
    },
  };
}

function answerUpgrade(
  res: HttpResponse,
  req: HttpRequest,
  door: {
    readonly context: us_socket_context_t;
    readonly options: CarrierSocketOptions;
    readonly carrierIn: (req: HttpRequest) => CarrierName | null;
  },
): void {
  const { context, options, carrierIn } = door;
  const headers = new Map<string, string>();
  req.forEach((name, value) => {
    headers.set(name, value);
  });
  try {
    const carrier = carrierIn(req);
    const query = req.getQuery() ?? "";
    options.calls.mustHaveRoom();
    const { isSigned } = admitCarrier({ carrier, path: req.getUrl(), query, headers }, options);
    const subprotocol = subprotocolFor(carrier, headers.get("sec-websocket-protocol") ?? "");
    const hello = helloOf(query, headers);
    const data: CarrierData = { hello, subprotocol, carrier, isSigned, line: null, call: null };
    const key = headers.get("sec-websocket-key") ?? "";
    const extensions = headers.get("sec-websocket-extensions") ?? "";
    res.cork(() => res.upgrade(data, key, subprotocol, extensions, context));
  } catch (thrown) {
    new Reply(res).fail(thrown);
  }
}

/** Throws not_found. */
function carrierOf(part: string): CarrierName {
  const name = decoded(part);
  const carrier = CARRIERS.find((known) => known === name);
  if (carrier !== undefined) return carrier;
  throw new GatewayError("not_found", `No such carrier, expected one of ${CARRIERS.join(", ")}`);
}

/** The best of those offered that the carrier speaks; a client that is answered another one has to leave (RFC 6455 4.1). */
function subprotocolFor(carrier: CarrierName | null, offered: string): string {
  const dialects = carrier === null ? Object.values(DIALECTS) : [DIALECTS[carrier]];
  const names = offered.split(",").map((name) => name.trim());
  return dialects.flatMap(({ subprotocols }) => subprotocols).find((name) => names.includes(name)) ?? "";
}

function helloOf(query: string, headers: ReadonlyMap<string, string>): CarrierHello {
  const asked = new Map(new URLSearchParams(query));
  asked.delete("token");
  return { query: asked, headers: new Map([...headers].filter(([name]) => !SECRET_HEADERS.includes(name))) };
}

function dialectFinder(data: CarrierData, auth: CarrierAuth): (message: Wire) => CarrierDialect | null {
  const texts: string[] = [];
  return (message) => {
    if (data.carrier !== null) return DIALECTS[data.carrier];
    if (typeof message === "string") texts.push(message);
    const found = sniffCarrier(data.subprotocol, texts);
    if (found === "more") return null;
    if (found === null) {
      throw new GatewayError("carrier_protocol", "First messages are those of no carrier that is known here");
    }
    if (found === "twilio" && auth.twilioAuthToken !== "" && !data.isSigned) throw notSigned();
    return DIALECTS[found];
  };
}

/** A carrier's socket as a call sees it: after `markClosed` it does nothing, for a closed socket may not be touched. */
class UwsLine implements CallLine {
  readonly #socket: WebSocket<CarrierData>;
  #isClosed = false;

  constructor(socket: WebSocket<CarrierData>) {
    this.#socket = socket;
  }

  send(messages: readonly Wire[]): SendResult {
    if (this.#isClosed) return "sent";
    let worst: SendResult = "sent";
    this.#socket.cork(() => {
      for (const message of messages) {
        const result = this.#socket.send(message, typeof message !== "string");
        if (result === SENT) continue;
        worst = result === DROPPED ? "dropped" : "buffered";
        if (result === DROPPED) return;
      }
    });
    return worst;
  }

  bufferedBytes(): number {
    return this.#isClosed ? 0 : this.#socket.getBufferedAmount();
  }

  /** Runs the close handler before it returns. */
  end(closeCode: number, reason: string): void {
    if (!this.#isClosed) this.#socket.end(closeCode, reason);
  }

  markClosed(): void {
    this.#isClosed = true;
  }
}
