/**
 * A call's leg wherever its session is. It asks for the session's place, and where that node is lost it follows the session to
 * its next one: a carrier does not call again, so the call waits.
 *
 *   placing --"here"--> SessionLeg        --bus_lost--> waiting --100 ms, 200 ms, ...--> placing
 *       `-----a node--> a leg over there  --bus_lost, draining-^
 */
import { GatewayError, isErrorCode, toGatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import { enterSession, type SessionDirectory, type SessionPlace } from "../session/place.ts";
import type { Sessions } from "../session/sessions.ts";
import type { CallLeg, Greeting, LegEvent, LegOptions } from "./call-leg.ts";
import type { CarrierCounts } from "./call-stats.ts";

/** Sessions at other nodes. */
export interface FarCalls extends SessionDirectory {
  /** A leg in the session at `owner`, which says so when it is there. Throws bus_lost. */
  legAt(owner: string, options: LegOptions & { readonly onJoined: () => void }): CallLeg;
}

export interface FollowingLegOptions extends Omit<LegOptions, "onEnd"> {
  readonly clock: Clock;
  readonly counts: CarrierCounts;
  readonly sessions: Pick<Sessions, "has" | "isDraining">;
  /** null: this node is alone. */
  readonly far: FarCalls | null;
  readonly legHere: (options: LegOptions) => CallLeg;
  /** It is in its session for the first time. */
  readonly onJoined: () => void;
  /** It can't be in its session, or not any more. */
  readonly onRefused: (error: GatewayError) => void;
  /** The session ends the call. */
  readonly onEnd: (closeCode: number, reason: string) => void;
}

/** How long a call without a session waits for its next node, ms. */
const MAX_WAIT_MS = 8000;
/** From then on it opens the session itself, ms: by then a node that takes it over, with what was to be said, has it. */
const OPEN_AFTER_MS = 4000;
/** Between two tries, ms: doubled up to the last. */
const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 400;
/** What a caller says and dials meanwhile: 5 s of frames of 20 ms. The oldest go. */
const MAX_WAITING_EVENTS = 256;

export class FollowingLeg implements CallLeg {
  readonly #options: FollowingLegOptions;
  #leg: CallLeg | null = null;
  /** Counts the legs that were begun: what an earlier one says is not listened to. */
  #number = 0;
  #waiting: LegEvent[] = [];
  /** The carrier takes nothing for now. */
  #isHeld = false;
  #hasJoined = false;
  #greeting: Greeting | null = null;
  /** When its session's node was lost, ms; null: it was not, or it has another one. */
  #lostAtMs: number | null = null;
  #pauseMs = FIRST_PAUSE_MS;
  #timer: Timer | null = null;
  #isOver = false;

  constructor(options: FollowingLegOptions) {
    this.#options = options;
  }

  get sessionId(): string {
    return this.#options.terms.sessionId;
  }

  /** Whether it ever was in its session. */
  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  /** Goes to the session, at once where its place is known. Throws what joining a session throws; else that is refused later. */
  enter(): void {
    const asking = { sessionId: this.sessionId, mayOpen: this.#mayOpen, mayMove: false };
    enterSession(this.#options.far, asking, (place) => this.#enterAt(place))?.catch((thrown: unknown) =>
      this.#notEntered(thrown),
    );
  }

  take(event: LegEvent): void {
    if (this.#isOver) return;
    if (event.kind === "hold" || event.kind === "goOn") this.#isHeld = event.kind === "hold";
    const own = event.kind === "played" ? this.#ownMark(event) : event;
    if (own === null) return;
    if (this.#leg !== null) this.#leg.take(own);
    else if (own.kind === "expired") this.#options.onEnd(own.closeCode, own.reason);
    else if (own.kind === "media") this.#wait({ ...own, audio: own.audio.slice() });
    else if (own.kind === "dtmf") this.#wait(own);
  }

  drained(): void {
    this.#leg?.drained();
  }

  leave(reason: string): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#waiting = [];
    const leg = this.#leg;
    this.#leg = null;
    leg?.leave(reason);
  }

  /** Whether the session may begin anew here. */
  get #mayOpen(): boolean {
    return this.#lostAtMs === null || this.#options.clock.nowMs() - this.#lostAtMs >= OPEN_AFTER_MS;
  }

  #enterAt(place: SessionPlace): void {
    if (this.#isOver) return;
    const { far, legHere, sessions, terms, line, opusAccount } = this.#options;
    if (place === "here" && !this.#mayOpen && !sessions.has(terms.sessionId)) throw nodeLost();
    this.#number += 1;
    const number = this.#number;
    const options: LegOptions = {
      terms,
      codec: this.#codecFor(number),
      line,
      ...(opusAccount === undefined ? {} : { opusAccount }),
      greeting: () => this.#greetOnce(),
      onEnd: (closeCode, reason) => {
        if (number === this.#number) this.#ended(place, closeCode, reason);
      },
    };
    const leg =
      place === "here" || far === null
        ? legHere(options)
        : far.legAt(place.owner, { ...options, onJoined: () => this.#joined() });
    // Joining may have ended it.
    if (this.#isOver || number !== this.#number) {
      leg.leave("session ended");
      return;
    }
    this.#leg = leg;
    if (place === "here") this.#joined();
    if (this.#isHeld) leg.take({ kind: "hold" });
    for (const event of this.#waiting.splice(0)) leg.take(event);
  }

  #joined(): void {
    this.#lostAtMs = null;
    this.#pauseMs = FIRST_PAUSE_MS;
    if (this.#hasJoined) return;
    this.#hasJoined = true;
    this.#options.onJoined();
  }

  #ended(place: SessionPlace, closeCode: number, reason: string): void {
    this.#number += 1;
    const leg = this.#leg;
    this.#leg = null;
    leg?.leave(reason);
    const { far, sessions, onEnd, onRefused } = this.#options;
    const isLost = reason === "bus_lost" || (place !== "here" && reason === "draining");
    if (far !== null && isLost && !sessions.isDraining) this.#tryLater();
    else if (place === "here" || this.#hasJoined || !isErrorCode(reason)) onEnd(closeCode, reason);
    else onRefused(new GatewayError(reason, "The session's node does not take the call"));
  }

  #notEntered(thrown: unknown): void {
    if (this.#isOver) return;
    const error = toGatewayError(thrown);
    if (this.#lostAtMs !== null && error.isRetryable) this.#tryLater();
    else this.#options.onRefused(error);
  }

  #tryLater(): void {
    const { clock, onRefused } = this.#options;
    const nowMs = clock.nowMs();
    this.#lostAtMs ??= nowMs;
    if (nowMs - this.#lostAtMs >= MAX_WAIT_MS) {
      onRefused(nodeLost());
      return;
    }
    this.#timer = clock.at(nowMs + this.#pauseMs, () => {
      try {
        this.enter();
      } catch (thrown) {
        this.#notEntered(thrown);
      }
    });
    this.#pauseMs = Math.min(2 * this.#pauseMs, LAST_PAUSE_MS);
  }

  #greetOnce(): Greeting | null {
    if (this.#hasJoined) return null;
    this.#greeting ??= this.#options.greeting();
    return this.#greeting;
  }

  /** Each leg counts its marks from one, and no name may come twice in a call. */
  #codecFor(number: number): LegOptions["codec"] {
    const { codec } = this.#options;
    if (number === 1) return codec;
    return {
      audio: (frames) => codec.audio(frames),
      mark: (name) => codec.mark(`${prefixOf(number)}${name}`),
      clear: () => codec.clear(),
      flush: () => codec.flush(),
    };
  }

  /** As its leg named it; null: it is an earlier leg's. */
  #ownMark(event: Extract<LegEvent, { readonly kind: "played" }>): LegEvent | null {
    if (this.#number === 1) return event;
    const prefix = prefixOf(this.#number);
    return event.name.startsWith(prefix) ? { ...event, name: event.name.slice(prefix.length) } : null;
  }

  #wait(event: LegEvent): void {
    this.#waiting.push(event);
    if (this.#waiting.length <= MAX_WAITING_EVENTS) return;
    this.#waiting.shift();
    this.#options.counts.callerDropped += 1;
  }
}

function prefixOf(number: number): string {
  return `n${number}`;
}

function nodeLost(): GatewayError {
  return new GatewayError("bus_lost", "The session's node is lost, and no other node has the session", {
    retryAfterMs: 1000,
  });
}
