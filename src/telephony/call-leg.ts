/**
 * A call's part in its session. The carrier's side (call.ts) reads its messages, and sends; the leg plays speech to it and
 * brings what it says into the session. The session may be at another node: then its leg is there, too, and this interface is
 * between the two.
 */
import { toGatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import { NORMAL_CLOSURE } from "../kit/close-codes.ts";
import type { Logger } from "../kit/log.ts";
import type { CallStart, CallVia, CarrierEvent } from "../protocol/carrier/carrier.ts";
import type { SpeakCommand } from "../protocol/commands.ts";
import type { Band } from "../protocol/vocabulary.ts";
import { speak } from "../session/carry-out.ts";
import type { Participant } from "../session/connections/participant.ts";
import type { OpusAccount, Payer } from "../session/payer.ts";
import type { Utterance } from "../session/playback/utterance.ts";
import type { Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import type { BridgedCall, CallBridge } from "./call-bridge.ts";
import { type CallFacts, factsOf } from "./call-facts.ts";
import type { CarrierCounts } from "./call-stats.ts";
import { type CallLine, CarrierListener, type CarrierListenerOptions } from "./carrier-listener.ts";

/** What a carrier says of a call that is under way. */
export type LegEvent =
  | Extract<CarrierEvent, { readonly kind: "media" | "dtmf" | "played" | "hold" | "goOn" }>
  /** The call's time is over: it ends when what was accepted until then has been heard. */
  | { readonly kind: "expired"; readonly closeCode: number; readonly reason: string };

export interface CallLeg {
  /** Audio in it is lent for the call. */
  take(event: LegEvent): void;
  /** The carrier's connection has taken what it was behind with. */
  drained(): void;
  /** The call is over, or goes on by another leg. Idempotent. */
  leave(reason: string): void;
}

/** What the caller hears first, and who pays for it. */
export interface Greeting extends Payer {
  readonly command: SpeakCommand;
}

/** How a call of this carrier is played to, and what is known of it. */
export interface CallTerms {
  readonly sessionId: string;
  readonly carrier: CallVia;
  readonly call: CallStart;
  /** See CarrierDialect. */
  readonly markMs: number;
  readonly leadMs: number;
}

export interface LegOptions {
  readonly terms: CallTerms;
  readonly codec: CarrierListenerOptions["codec"];
  readonly line: CallLine;
  /** The account for which the call's Opus counts. */
  readonly opusAccount?: OpusAccount;
  /** null: nothing, or it was said already. Called once at most, when the leg is in the session. */
  readonly greeting: () => Greeting | null;
  /** The session ends the call; for `bus_lost` it may be found at another node. Called once at most. */
  readonly onEnd: (closeCode: number, reason: string) => void;
}

interface LegDeps {
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly counts: CarrierCounts;
  /** What callers hear of speech. */
  readonly band: Band;
  bridgeOf(session: Session): CallBridge;
  leaveBridge(session: Session, call: BridgedCall, reason: string | undefined): void;
}

/** What was accepted before a call's time was over is heard to its end: so often it is looked whether it was, ms. */
const LAST_WORDS_POLL_MS = 50;
/** How long a carrier may take to say that it has played the last of it, ms. */
const LAST_MARK_MS = 2000;

interface Joined {
  readonly session: Session;
  readonly participant: Participant;
  readonly bridge: CallBridge;
}

/** A leg in a session of this node, which it opens if need be. */
export class SessionLeg implements CallLeg, BridgedCall {
  readonly #options: LegOptions;
  readonly #deps: LegDeps;
  readonly #listener: CarrierListener;
  #joined: Joined | null = null;
  /** null: it was never in the session. */
  #facts: CallFacts | null = null;
  #endTimer: Timer | null = null;
  #isOver = false;

  /** Throws what opening and joining a session throw. */
  constructor(options: LegOptions, deps: LegDeps) {
    this.#options = options;
    this.#deps = deps;
    const { terms, codec, line, opusAccount } = options;
    const { call, markMs } = terms;
    const session = deps.sessions.open(terms.sessionId);
    let participant: Participant | null = null;
    this.#listener = new CarrierListener({
      codec,
      line,
      clock: deps.clock,
      markMs,
      frameMs: call.frameMs,
      counts: deps.counts,
      isSentOut: () => participant !== null && session.isSentOut(participant),
      onEnd: (closeCode, reason) => this.#end(closeCode, reason),
      onRoom: () => this.drained(),
    });
    participant = session.join(this.#listener, {
      settings: settingsOf(terms, deps.band),
      ignored: [],
      ...(opusAccount === undefined ? {} : { opusAccount }),
    });
    // What it was greeted with may have closed it: the end did not know of the participant yet.
    if (this.#isOver) session.leave(participant);
    else this.#enter(session, participant);
  }

  get facts(): CallFacts {
    if (this.#facts === null) throw new TypeError("No facts: the call is in no session");
    return this.#facts;
  }

  take(event: LegEvent): void {
    const joined = this.#joined;
    if (joined === null) return;
    switch (event.kind) {
      case "media":
        joined.bridge.hear(this, event.audio);
        return;
      case "dtmf":
        joined.bridge.keyPressed(this, event);
        return;
      case "played":
        this.#played(joined, event.name);
        return;
      case "hold":
        this.#listener.hold();
        return;
      case "goOn":
        this.#listener.goOn();
        return;
      case "expired":
        this.#endWhenHeard(event, new Set(joined.session.queue.notOver));
        return;
    }
  }

  drained(): void {
    if (this.#joined !== null) this.#joined.session.drained(this.#joined.participant);
  }

  leave(reason: string): void {
    this.#isOver = true;
    this.#endTimer?.cancel();
    this.#listener.close();
    const joined = this.#joined;
    this.#joined = null;
    if (joined === null) return;
    const { session, participant } = joined;
    session.leave(participant);
    this.#deps.leaveBridge(session, this, reason);
  }

  hangUp(): void {
    this.#end(NORMAL_CLOSURE, "hangup");
  }

  noteDropped(frames: number): void {
    if (frames > 0) this.#deps.counts.callerDropped += frames;
  }

  /** Nothing of `awaited` is cut: not before it was spoken, and then not before the carrier says that it was played. */
  #endWhenHeard(
    end: Extract<LegEvent, { readonly kind: "expired" }>,
    awaited: ReadonlySet<Utterance>,
    spokenMs: number | null = null,
  ): void {
    const joined = this.#joined;
    if (this.#isOver || joined === null) return;
    const { clock } = this.#deps;
    const nowMs = clock.nowMs();
    const isSpoken = !joined.session.queue.notOver.some((utterance) => awaited.has(utterance));
    const sinceMs = isSpoken ? (spokenMs ?? nowMs) : null;
    const isHeard = !this.#listener.hasUnplayed || (sinceMs !== null && nowMs - sinceMs >= LAST_MARK_MS);
    if (isSpoken && isHeard) this.#end(end.closeCode, end.reason);
    else {
      this.#endTimer = clock.at(nowMs + LAST_WORDS_POLL_MS, () => this.#endWhenHeard(end, awaited, sinceMs));
    }
  }

  #end(closeCode: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onEnd(closeCode, reason);
  }

  #played({ participant }: Joined, name: string): void {
    const atMs = this.#listener.played(name);
    if (atMs !== null) participant.acknowledge(atMs, "mark");
  }

  #enter(session: Session, participant: Participant): void {
    const { carrier, call } = this.#options.terms;
    const bridge = this.#deps.bridgeOf(session);
    this.#joined = { session, participant, bridge };
    this.#facts = factsOf(carrier, call, participant.id);
    bridge.add(this);
    this.#greet(session);
  }

  #greet(session: Session): void {
    try {
      const greeting = this.#options.greeting();
      if (greeting === null) return;
      const { command, ...payer } = greeting;
      speak(session, command, payer);
      session.textChanged();
    } catch (thrown) {
      const { code } = toGatewayError(thrown);
      this.#deps.log.warn({ session: session.id, code }, "Call's greeting was refused");
    }
  }
}

function settingsOf({ call, leadMs }: CallTerms, band: Band): Parameters<Session["join"]>[1]["settings"] {
  return {
    role: "listener",
    format: call.format,
    frame_ms: call.frameMs,
    framing: "raw",
    band,
    pace: "realtime",
    lead_ms: leadMs,
    policy: "live",
    events: [],
    offsets: "utf16",
  };
}
