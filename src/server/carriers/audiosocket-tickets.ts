/**
 * `POST /carrier/audiosocket` announces a call. AudioSocket hands over a UUID and nothing else, so the UUID is a ticket: who
 * connects with it brings the call that was announced, once and soon.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { randomUUID } from "node:crypto";
import type { Caller } from "../../access/caller.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import {
  type AudioSocketRequest,
  readAudioSocketRequest,
} from "../../protocol/carrier/audiosocket-request.ts";
import { checkId } from "../../session/sessions.ts";
import { Reply, readBody } from "../http.ts";
import { needs, type Routes } from "../routes.ts";
import type { CallerRights } from "./caller-rights.ts";
import type { CarrierAuth } from "./carrier-auth.ts";

/** How long an announced call is waited for, ms. */
const TICKET_MS = 60_000;

export interface Ticket {
  readonly parameters: Readonly<Record<string, string>>;
  readonly rights: CallerRights;
}

export interface AudioSocketTicketsOptions {
  readonly carrierAuth: CarrierAuth;
  readonly clock: Pick<Clock, "nowMs">;
  readonly host: string;
  /** Where Asterisk connects to; 0: nowhere, and nothing can be announced. */
  readonly port: number;
  /** Calls that may be announced at once. */
  readonly maxTickets: number;
  readonly maxMessageBytes: number;
}

export class AudioSocketTickets {
  readonly #options: AudioSocketTicketsOptions;
  /** By UUID, the oldest first. */
  readonly #tickets = new Map<string, Ticket & { readonly untilMs: number }>();

  constructor(options: AudioSocketTicketsOptions) {
    this.#options = options;
  }

  route(app: Routes): void {
    app.post("/carrier/audiosocket", needs("call"), (res, req, caller) => this.#answer(res, req, caller));
  }

  /** What was announced by this UUID, which is good for one call; null: nothing. */
  take(uuid: string): Ticket | null {
    this.#sweep();
    const ticket = this.#tickets.get(uuid) ?? null;
    this.#tickets.delete(uuid);
    return ticket;
  }

  /** Throws invalid_field, not_found, listener_limit, and what `rights` do. */
  announce(parameters: AudioSocketRequest, rights: CallerRights) {
    const { host, port, clock } = this.#options;
    const session = checkId(parameters.session);
    rights.check(parameters);
    if (port === 0) throw isOff();
    rights.unlessRefused(() => this.#mustHaveRoom());
    const uuid = randomUUID();
    this.#tickets.set(uuid, {
      parameters: { ...parameters },
      rights,
      untilMs: clock.nowMs() + TICKET_MS,
    });
    return { uuid, session, host, port, expires_in_ms: TICKET_MS };
  }

  #answer(res: HttpResponse, req: HttpRequest, caller: Caller): void {
    const { carrierAuth, maxMessageBytes } = this.#options;
    const reply = new Reply(res);
    try {
      const rights = carrierAuth.announcer(res, req, { caller, port: "audiosocket" });
      readBody(res, maxMessageBytes)
        .then((body) => reply.json(201, this.announce(readAudioSocketRequest(body), rights)))
        .catch((thrown: unknown) => reply.fail(thrown));
    } catch (thrown) {
      reply.fail(thrown);
    }
  }

  #mustHaveRoom(): void {
    this.#sweep();
    const { maxTickets } = this.#options;
    if (this.#tickets.size < maxTickets) return;
    throw new GatewayError(
      "listener_limit",
      `Gateway is full: ${maxTickets} announced calls, which is the limit`,
      { retryAfterMs: 5000 },
    );
  }

  #sweep(): void {
    const nowMs = this.#options.clock.nowMs();
    for (const [uuid, { untilMs }] of this.#tickets) {
      if (untilMs > nowMs) return;
      this.#tickets.delete(uuid);
    }
  }
}

function isOff(): GatewayError {
  return new GatewayError("not_found", "AudioSocket is off: no call can come; set audiosocket-port");
}
