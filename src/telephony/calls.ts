/** All phone calls of a gateway: how many there may be, and the bridge of each session that has calls. */
import { GatewayError } from "../errors.ts";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { RefusalCounts } from "../kit/refusal-counts.ts";
import type { Band } from "../protocol/vocabulary.ts";
import type { Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import { Call, type CallOptions } from "./call.ts";
import { type BridgedCall, CallBridge } from "./call-bridge.ts";
import { type LegOptions, SessionLeg } from "./call-leg.ts";
import { CallStats } from "./call-stats.ts";
import type { FarCalls } from "./following-leg.ts";

export interface CallsOptions {
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly log: Logger;
  /** Connections of carriers at once, whether their call has begun or not. */
  readonly maxCalls: number;
  readonly refusals: RefusalCounts;
  /** Sessions at other nodes; null or not given: this one is alone. */
  readonly far?: FarCalls | null;
  /** What callers hear of speech. Default: all of it. */
  readonly band?: Band;
  /** Noise in sessions with calls, dB of a sine of full scale. Default: 0, none. */
  readonly comfortNoiseDbfs?: number;
}

export class Calls {
  readonly #options: CallsOptions;
  readonly #bridges = new Map<Session, CallBridge>();
  readonly #open = new Set<Call>();
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
    const { sessions, clock, log, refusals, far = null } = this.#options;
    const { stats } = this;
    const legHere = (leg: LegOptions): SessionLeg => this.legHere(leg);
    const call: Call = new Call(options, {
      ...{ sessions, clock, log, far, stats, refusals, legHere },
      onOver: () => this.#open.delete(call),
    });
    this.#open.add(call);
    return call;
  }

  /** Ends every call for this reason, also those that are in no session: they wait for theirs, or have not begun. Idempotent. */
  close(why: () => GatewayError): void {
    for (const call of [...this.#open]) call.end(why());
  }

  /** A leg in a session of this node, of a call here or at another node. Throws what opening and joining a session throw. */
  legHere(options: LegOptions): SessionLeg {
    const { sessions, clock, log, band = "full" } = this.#options;
    return new SessionLeg(options, {
      sessions,
      clock,
      log,
      band,
      counts: this.stats.of(options.terms.carrier),
      bridgeOf: (session) => this.#bridgeOf(session),
      leaveBridge: (session, call, reason) => this.#leaveBridge(session, call, reason),
    });
  }

  #bridgeOf(session: Session): CallBridge {
    let bridge = this.#bridges.get(session);
    if (bridge === undefined) {
      bridge = new CallBridge(session, this.#options.comfortNoiseDbfs);
      this.#bridges.set(session, bridge);
      session.calls = bridge;
    }
    return bridge;
  }

  #leaveBridge(session: Session, call: BridgedCall, reason: string | undefined): void {
    const bridge = this.#bridges.get(session);
    if (bridge === undefined) return;
    bridge.remove(call, reason);
    if (!bridge.isEmpty) return;
    bridge.close();
    this.#bridges.delete(session);
    session.calls = null;
  }
}
