/** All phone calls of a gateway: how many there may be, and the desk of each session that has some. */
import { GatewayError } from "../errors.ts";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import { Call, type CallOptions } from "./call.ts";
import { CallStats } from "./call-stats.ts";
import { Desk } from "./desk.ts";

export interface CallsOptions {
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly log: Logger;
  /** Connections of carriers at once, whether their call has begun or not. */
  readonly maxCalls: number;
}

export class Calls {
  readonly #options: CallsOptions;
  readonly #desks = new Map<Session, Desk>();
  readonly stats = new CallStats();

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  get maxCalls(): number {
    return this.#options.maxCalls;
  }

  /** Throws draining. */
  mustStay(): void {
    if (!this.#options.sessions.isDraining) return;
    throw new GatewayError("draining", "Gateway is shutting down: no new calls");
  }

  /** Throws listener_limit, draining: asked before a connection is taken. */
  mustHaveRoom(): void {
    const { maxCalls } = this.#options;
    this.mustStay();
    if (this.stats.openCount < maxCalls) return;
    throw new GatewayError("listener_limit", `Gateway is full: ${maxCalls} calls, which is the limit`, {
      retryAfterMs: 5000,
    });
  }

  /** A carrier has connected. */
  take(options: CallOptions): Call {
    const { sessions, clock, log } = this.#options;
    return new Call(options, {
      sessions,
      clock,
      log,
      stats: this.stats,
      deskOf: (session) => this.#deskOf(session),
      leaveDesk: (session, call, reason) => this.#leaveDesk(session, call, reason),
    });
  }

  #deskOf(session: Session): Desk {
    let desk = this.#desks.get(session);
    if (desk === undefined) {
      desk = new Desk(session);
      this.#desks.set(session, desk);
      session.calls = desk;
    }
    return desk;
  }

  #leaveDesk(session: Session, call: Call, reason: string | undefined): void {
    const desk = this.#desks.get(session);
    if (desk === undefined) return;
    desk.remove(call, reason);
    if (!desk.isEmpty) return;
    desk.close();
    this.#desks.delete(session);
    session.calls = null;
  }
}
