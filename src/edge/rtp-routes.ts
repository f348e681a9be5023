/**
 * `POST /carrier/rtp` takes a UDP port for one call, `DELETE /carrier/rtp/{call_id}` gives it back. RTP says neither
 * who calls nor which session is meant, so whoever sets the call up says it here.
 */

import type { HttpRequest, HttpResponse, TemplatedApp } from "uWebSockets.js";
import { randomUUID } from "node:crypto";
import { rtpPayloadType } from "../audio/rtp.ts";
import type { Calls } from "../calls/calls.ts";
import { GatewayError } from "../errors.ts";
import type { Pacer } from "../fanout/pacer.ts";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import { readRtpRequest } from "../protocol/carrier/rtp-request.ts";
import { checkId } from "../session/sessions.ts";
import { admitCarrier, type CarrierAuth, knockOf } from "./carrier-auth.ts";
import { Reply, readBody } from "./http.ts";
import { decoded } from "./live-socket.ts";
import { reachablePeer } from "./rtp-peer.ts";
import { RtpPort } from "./rtp-port.ts";

export interface PortRange {
  readonly from: number;
  readonly to: number;
}

export interface RtpOptions extends CarrierAuth {
  readonly calls: Calls;
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly log: Logger;
  readonly host: string;
  /** UDP ports to choose from, both inclusive; null: whichever is free. */
  readonly rtpPorts: PortRange | null;
  readonly maxMessageBytes: number;
}

/** Ports tried before it is said that none is free. */
const MAX_TRIES = 64;

/** The ports that are open, by call. */
export class RtpPorts {
  readonly #options: RtpOptions;
  readonly #open = new Map<string, RtpPort>();
  #nextPort = 0;

  constructor(options: RtpOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#open.size;
  }

  route(app: TemplatedApp): void {
    app.post("/carrier/rtp", (res, req) => this.#answer(res, req));
    app.del("/carrier/rtp/:call", (res, req) => {
      const callId = decoded(req.getParameter(0) ?? "");
      const knock = knockOf(req, "asterisk");
      const reply = new Reply(res);
      try {
        admitCarrier(knock, this.#options);
        const port = this.#open.get(callId);
        if (port === undefined) throw new GatewayError("unknown_call", "No RTP call has this id");
        port.close();
        reply.json(200, { call_id: callId });
      } catch (thrown) {
        reply.fail(thrown);
      }
    });
  }

  /** Idempotent. */
  close(): void {
    for (const port of [...this.#open.values()]) port.close();
  }

  #answer(res: HttpResponse, req: HttpRequest): void {
    const knock = knockOf(req, "asterisk");
    const reply = new Reply(res);
    readBody(res, this.#options.maxMessageBytes)
      .then(async (body) => {
        admitCarrier(knock, this.#options);
        reply.json(201, await this.#take(body));
      })
      .catch((thrown: unknown) => reply.fail(thrown));
  }

  async #take(body: string) {
    const { calls, pacer, clock, log, host } = this.#options;
    const request = readRtpRequest(body);
    const session = checkId(request.session);
    const peer = request.peer === null ? null : reachablePeer(request.peer, host);
    calls.mustHaveRoom();
    this.#mustHaveRoom();
    const callId = randomUUID();
    const { text, voiceId } = request;
    const parameters = {
      session,
      ...(text === undefined ? {} : { text }),
      ...(voiceId === undefined ? {} : { voice_id: voiceId }),
    };
    for (let tries = 1; ; tries += 1) {
      const port = new RtpPort({
        call: {
          callId,
          parameters,
          format: request.format,
          peer,
          eventType: request.dtmfPayloadType,
        },
        calls,
        pacer,
        clock,
        log,
        host,
        onClosed: () => this.#open.delete(callId),
      });
      this.#open.set(callId, port);
      try {
        const number = await port.bind(this.#portToTry());
        return {
          call_id: callId,
          session,
          host,
          port: number,
          format: request.format,
          payload_type: rtpPayloadType(request.format),
          dtmf_payload_type: request.dtmfPayloadType,
          ssrc: port.ssrc,
        };
      } catch (thrown) {
        const isTaken = thrown instanceof GatewayError && thrown.code === "port_in_use";
        if (!isTaken || tries >= Math.min(MAX_TRIES, this.#rangeSize())) throw thrown;
      }
    }
  }

  /** Ports that wait for their peer are no calls yet, and bounded all the same. */
  #mustHaveRoom(): void {
    const { maxCalls } = this.#options.calls;
    if (this.#open.size < maxCalls) return;
    throw new GatewayError("listener_limit", `Gateway is full: ${maxCalls} RTP ports, which is the limit`, {
      retryAfterMs: 5000,
    });
  }

  /** Of a range one after the other, even ones only (RFC 3550 section 11). */
  #portToTry(): number {
    const { rtpPorts } = this.#options;
    if (rtpPorts === null) return 0;
    const first = rtpPorts.from + (rtpPorts.from % 2);
    const port = first + 2 * (this.#nextPort % this.#rangeSize());
    this.#nextPort += 1;
    return port;
  }

  #rangeSize(): number {
    const { rtpPorts } = this.#options;
    if (rtpPorts === null) return 1;
    const first = rtpPorts.from + (rtpPorts.from % 2);
    return Math.max(1, Math.floor((rtpPorts.to - first) / 2) + 1);
  }
}

/** `10000-10100`, both inclusive; null where the system may choose. Throws invalid_config. */
export function readPortRange(text: string): PortRange | null {
  if (text === "") return null;
  const [, from = "", to = ""] = /^(\d{1,5})-(\d{1,5})$/.exec(text) ?? [];
  if (from !== "" && Number(from) >= 1024 && Number(from) < Number(to) && Number(to) <= 65_535) {
    return { from: Number(from), to: Number(to) };
  }
  throw new GatewayError(
    "invalid_config",
    "Setting rtp-ports can't be used: expected two ports from 1024 to 65535, e.g. 10000-10100",
    { field: "rtp-ports" },
  );
}
