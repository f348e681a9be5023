/**
 * `/carrier/{name}` and `/carrier`: carriers' WebSockets, each a phone call. Which carrier speaks says the path, else
 * its first messages. Whoever may not connect is refused with a status before the upgrade.
 */
import type { HttpRequest, HttpResponse, us_socket_context_t } from "uWebSockets.js";
import type { SendResult } from "../../delivery/listener.ts";
import { GatewayError } from "../../errors.ts";
import { CARRIERS, type CarrierHello, type CarrierName, type Wire } from "../../protocol/carrier/carrier.ts";
import { DIALECTS } from "../../protocol/carrier/index.ts";
import type { Call } from "../../telephony/call.ts";
import type { Calls } from "../../telephony/calls.ts";
import type { CallLine } from "../../telephony/carrier-listener.ts";
import { withoutTokens } from "../credential.ts";
import { pathPart, Reply } from "../http.ts";
import type { Routes, SocketBehavior } from "../routes.ts";
import type { Bytes } from "../sockets/backlog.ts";
import type { FairScheduler } from "../sockets/fair-scheduler.ts";
import { Inbox, type Receiver } from "../sockets/inbox.ts";
import { UwsBatchSocket } from "../sockets/uws-sockets.ts";
import { acceptUpgrade, socketLimits } from "../sockets/websocket.ts";
import type { Admission, CarrierAuth, CarrierRequest } from "./carrier-auth.ts";
import { type CarrierKnown, dialectOf } from "./carrier-dialect.ts";

export interface CarrierSocketOptions {
  readonly carrierAuth: CarrierAuth;
  readonly calls: Calls;
  readonly maxOutboxBytes: number;
  readonly idleSeconds: number;
  /** Shares out time between connections that bring many messages at once. */
  readonly scheduler: FairScheduler;
}

interface CarrierData extends CarrierKnown {
  readonly admission: Admission;
  readonly hello: CarrierHello;
  line: CarrierLine | null;
  call: Call | null;
  inbox: Inbox<CarrierData> | null;
}

/** No carrier sends more in one message; a little more is still read, so that it is answered with an error. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
/** A minute and more of a caller's voice in frames of 20 ms: a connection that was held up brings all of it at once. */
const MAX_INBOX_BYTES = 2 * MAX_MESSAGE_BYTES;
/** What one batch may add on top of a full send queue: 300 ms of 48 kHz in base64, generously. */
const BATCH_SLACK_BYTES = 256 * 1024;
/** What a token or a signature stands in is for admission only: it is not handed on. */
const SECRET_HEADERS: readonly string[] = [
  "authorization",
  "cookie",
  "x-telnyx-streaming-auth-token",
  "x-twilio-signature",
];

export function routeCarriers(app: Routes, options: CarrierSocketOptions): void {
  app.ws(
    "/carrier/:name",
    "own",
    carrierSocket(options, (req) => pathPart(req)),
  );
  app.ws(
    "/carrier",
    "own",
    carrierSocket(options, () => null),
  );
}

/** A carrier's WebSocket as a call sees it. */
class CarrierLine extends UwsBatchSocket<CarrierData, Wire> implements CallLine {
  send(messages: readonly Wire[]): SendResult {
    return this.sendBatch(messages);
  }

  protected override sendItem(message: Wire): number {
    return this.ws.send(message, typeof message !== "string");
  }
}

/** `nameIn`: the carrier's name in a request; null where its first messages are to say. */
function carrierSocket(
  options: CarrierSocketOptions,
  nameIn: (req: HttpRequest) => string | null,
): SocketBehavior<CarrierData> {
  const receiver = carrierReceiver();
  const { scheduler } = options;
  return {
    ...socketLimits({
      hardMessageBytes: MAX_MESSAGE_BYTES,
      maxBackpressureBytes: options.maxOutboxBytes + BATCH_SLACK_BYTES,
      idleSeconds: options.idleSeconds,
    }),
    upgrade: (res, req, context) => answerUpgrade(res, req, { context, options, name: nameIn(req) }),
    open: (socket) => {
      const data = socket.getUserData();
      data.line = new CarrierLine(socket);
      data.inbox = new Inbox({ scheduler, receiver, connection: data });
      data.call = options.calls.take({
        line: data.line,
        hello: data.hello,
        dialectOf: (messages) => dialectOf(messages, data),
        rights: data.admission,
      });
    },
    message: (socket, message, isBinary) => socket.getUserData().inbox?.take(message, isBinary),
    drain: (socket) => socket.getUserData().call?.drained(),
    close: (socket, code) => {
      const { line, inbox } = socket.getUserData();
      line?.markClosed();
      // Keys, the caller's last words and why the call has ended are for others.
      inbox?.close(code, { wantsRest: line?.isEnded === false });
    },
  };
}

function carrierReceiver(): Receiver<CarrierData> {
  const decoder = new TextDecoder();
  return {
    maxInboxBytes: MAX_INBOX_BYTES,
    handle: ({ call }, message, isBinary) => {
      // The library has checked that text is UTF-8.
      call?.receive(isBinary ? bytesOf(message) : decoder.decode(message));
    },
    refuse: ({ call }, error) => call?.refuse(error),
    closed: (data) => {
      data.call?.closed();
      data.call = null;
    },
  };
}

function bytesOf(message: Bytes): Uint8Array {
  return message instanceof Uint8Array ? message : new Uint8Array(message);
}

function answerUpgrade(
  res: HttpResponse,
  req: HttpRequest,
  upgrade: {
    readonly context: us_socket_context_t;
    readonly options: CarrierSocketOptions;
    readonly name: string | null;
  },
): void {
  const { context, options, name } = upgrade;
  try {
    const carrier = CARRIERS.find((known) => known === name) ?? null;
    const request = options.carrierAuth.requestOf(res, req, carrier);
    const admission = options.carrierAuth.admit(request);
    // Strangers hear neither which carriers there are nor how full the gateway is.
    if (carrier === null && name !== null) throw noSuchCarrier();
    admission.unlessRefused(() => options.calls.mustHaveRoom());
    const subprotocol = subprotocolFor(carrier, req.getHeader("sec-websocket-protocol"));
    const hello = helloOf(request);
    const data: CarrierData = { hello, subprotocol, carrier, admission, line: null, call: null, inbox: null };
    acceptUpgrade(res, req, { context, data, subprotocol });
  } catch (thrown) {
    new Reply(res).fail(thrown);
  }
}

function noSuchCarrier(): GatewayError {
  return new GatewayError("not_found", `No such carrier, expected one of ${CARRIERS.join(", ")}`);
}

/** The best of those offered that the carrier speaks; a client that is answered another one has to leave (RFC 6455 4.1). */
function subprotocolFor(carrier: CarrierName | null, offered: string): string {
  const dialects = carrier === null ? Object.values(DIALECTS) : [DIALECTS[carrier]];
  const names = offered.split(",").map((name) => name.trim());
  return dialects.flatMap(({ subprotocols }) => subprotocols).find((name) => names.includes(name)) ?? "";
}

function helloOf({ query, headers }: CarrierRequest): CarrierHello {
  const asked = new Map(new URLSearchParams(withoutTokens(query)));
  return { query: asked, headers: new Map([...headers].filter(([name]) => !SECRET_HEADERS.includes(name))) };
}
