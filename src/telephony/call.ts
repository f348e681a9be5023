/**
 * One connection of a carrier, from its first message to its end:
 *
 *   waiting --started--> open (a leg in a session) --stopped, hung up, closed, a message that can't be--> over
 *      `--10 s without a start--> over
 *
 * It gets the messages and the socket's end by calls, and sends through its line; it knows no socket.
 */
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import { NORMAL_CLOSURE } from "../kit/close-codes.ts";
import type { Logger } from "../kit/log.ts";
import type { RefusalCounts } from "../kit/refusal-counts.ts";
import type {
  CallStart,
  CallVia,
  CarrierCodec,
  CarrierDialect,
  CarrierEvent,
  CarrierHello,
  Wire,
} from "../protocol/carrier/carrier.ts";
import type { SpeakCommand } from "../protocol/commands.ts";
import type { OpusAccount, Payer } from "../session/payer.ts";
import { parameterOf, sessionIdOf } from "./call-facts.ts";
import type { CallLeg, Greeting, LegOptions } from "./call-leg.ts";
import type { CallStats, CarrierCounts, CarrierLabel } from "./call-stats.ts";
import type { CallLine } from "./carrier-listener.ts";
import { FollowingLeg, type FollowingLegOptions } from "./following-leg.ts";

/** How long a connection may be without a call, ms. */
const START_MS = 10_000;
/** Messages that may come before it is clear which carrier sends them. */
const MAX_UNREAD = 4;

/** A call that is about to begin. */
export interface CallStarting {
  readonly carrier: CallVia;
  readonly callId: string;
  readonly sessionId: string;
}

/** How a call ends whose right is lost. */
export interface CallEnding {
  /** Its time is over: it is hung up when what was accepted until then has been heard. */
  expired(error: GatewayError): void;
  /** It is hung up now. */
  revoked(error: GatewayError): void;
}

/** What the one who brings the call may do. */
export interface CallRights {
  /**
   * Throws where the call may not come into this session. `ending` is called where the right is lost later. Returns what is
   * to be called when the call is over.
   */
  begin(call: CallStarting, ending: CallEnding): () => void;
  /** What the caller hears first, as it may be said. Throws forbidden. */
  greeting(command: SpeakCommand, sessionId: string): SpeakCommand;
  /** Who pays for it. */
  readonly payer: Payer;
  /** The account for which the call's Opus counts. */
  readonly opusAccount?: OpusAccount;
}

export interface CallOptions {
  readonly line: CallLine;
  readonly hello: CarrierHello;
  /** Which carrier speaks, by its messages so far; null: not clear yet. Throws carrier_protocol, carrier_signature. */
  readonly dialectOf: (messages: readonly Wire[]) => CarrierDialect | null;
  readonly rights: CallRights;
}

interface CallDeps extends Pick<FollowingLegOptions, "sessions" | "far"> {
  readonly clock: Clock;
  readonly log: Logger;
  readonly stats: CallStats;
  readonly refusals: RefusalCounts;
  /** A leg in a session of this node, where calls of that carrier are counted. Throws what joining a session throws. */
  legHere(options: LegOptions): CallLeg;
  /** It has ended. */
  readonly onOver: () => void;
}

interface Speaking {
  readonly dialect: CarrierDialect;
  readonly codec: CarrierCodec;
  readonly counts: CarrierCounts;
}

export class Call {
  readonly #options: CallOptions;
  readonly #deps: CallDeps;
  readonly #startTimer: Timer;
  #speaking: Speaking | null = null;
  /** What came before it was clear which carrier it is. */
  #unread: Wire[] = [];
  /** null: the call has not begun. */
  #leg: FollowingLeg | null = null;
  #label: CarrierLabel = "unknown";
  #refusal: GatewayError | null = null;
  /** Gives the right to this call back. */
  #release: () => void = () => undefined;
  #isOver = false;

  constructor(options: CallOptions, deps: CallDeps) {
    this.#options = options;
    this.#deps = deps;
    deps.stats.of(this.#label).opened += 1;
    const { clock } = deps;
    this.#startTimer = clock.at(clock.nowMs() + START_MS, () =>
      this.#fail(new GatewayError("carrier_protocol", `No call has begun within ${START_MS} ms`)),
    );
  }

  /** The error that ended the call; null: it goes on, or ended in another way. */
  get refusal(): GatewayError | null {
    return this.#refusal;
  }

  /** A message of the carrier; its bytes are good for this call only. Never throws. */
  receive(message: Wire): void {
    if (this.#isOver) return;
    try {
      const speaking = this.#speaking ?? this.#identify(message);
      if (speaking === null) return;
      const unread = this.#unread;
      this.#unread = [];
      for (const earlier of unread) this.#read(speaking, earlier);
      this.#read(speaking, message);
    } catch (thrown) {
      this.#fail(toGatewayError(thrown));
    }
  }

  /** Ends the call for this error. Idempotent, as every end. */
  refuse(error: GatewayError): void {
    this.#fail(error);
  }

  /** Hangs up: the gateway ends. */
  end({ closeCode, code: reason }: GatewayError): void {
    this.#finish({ closeCode, reason });
  }

  /** The socket has taken what it was behind with. */
  drained(): void {
    this.#leg?.drained();
  }

  /** The socket is gone. Idempotent, as every end. */
  closed(reason = "connection closed"): void {
    this.#finish({ closeCode: null, reason });
  }

  #identify(message: Wire): Speaking | null {
    const dialect = this.#options.dialectOf([...this.#unread, message]);
    if (dialect === null) {
      if (this.#unread.length === MAX_UNREAD) {
        throw new GatewayError("carrier_protocol", "First messages are those of no carrier that is known");
      }
      this.#unread.push(typeof message === "string" ? message : message.slice());
      return null;
    }
    const { stats } = this.#deps;
    stats.of(this.#label).opened -= 1;
    this.#label = dialect.name;
    const counts = stats.of(this.#label);
    counts.opened += 1;
    this.#speaking = { dialect, codec: dialect.open(this.#options.hello), counts };
    return this.#speaking;
  }

  #read(speaking: Speaking, message: Wire): void {
    if (this.#isOver) return;
    for (const event of speaking.codec.read(message)) {
      if (event.kind === "started") this.#begin(speaking, event.call);
      else this.#take(speaking, event);
      if (this.#isOver) return;
    }
  }

  #take({ dialect, counts }: Speaking, event: Exclude<CarrierEvent, { kind: "started" }>): void {
    if (event.kind === "odd") {
      counts.odd += 1;
      this.#deps.log.debug({ carrier: dialect.name, what: event.what }, "Carrier's message does not fit");
      return;
    }
    if (event.kind === "stopped") {
      this.#finish({ closeCode: NORMAL_CLOSURE, reason: event.reason ?? "stopped" });
      return;
    }
    this.#leg?.take(event);
  }

  /** Throws what joining a session throws, and what `rights` do. */
  #begin({ dialect, codec, counts }: Speaking, call: CallStart): void {
    const { log } = this.#deps;
    if (this.#leg !== null) throw new GatewayError("carrier_protocol", "Carrier began a second call");
    this.#startTimer.cancel();
    const { hello, rights, line } = this.#options;
    const sessionId = sessionIdOf(dialect, call, hello);
    const starting = { carrier: dialect.name, callId: call.callId, sessionId };
    this.#release = rights.begin(starting, {
      expired: (error) => this.#expired(error),
      revoked: (error) => this.#fail(error),
    });
    const { name: carrier, markMs, leadMs } = dialect;
    this.#leg = new FollowingLeg({
      ...this.#deps,
      terms: { sessionId, carrier, call, markMs, leadMs },
      codec,
      line,
      greeting: () => this.#greeting(call, sessionId),
      counts,
      ...(rights.opusAccount === undefined ? {} : { opusAccount: rights.opusAccount }),
      onJoined: () => {
        counts.started += 1;
        log.info({ carrier, session: sessionId }, "Call began");
      },
      onRefused: (error) => this.#fail(error),
      onEnd: (closeCode, reason) => this.#finish({ closeCode, reason }),
    });
    this.#leg.enter();
  }

  /** What the caller is to hear first, where the application says so with the call. Throws what `rights` do. */
  #greeting(call: CallStart, sessionId: string): Greeting | null {
    const { hello, rights } = this.#options;
    const text = parameterOf(call, "text", hello);
    const voiceId = parameterOf(call, "voice_id", hello);
    if (text === undefined || text === "") return null;
    const said = voiceId === undefined ? {} : { voice_id: voiceId };
    const command = rights.greeting({ type: "speak", text, ...said }, sessionId);
    return { command, ...rights.payer };
  }

  /** Its time is over: nothing is cut that was accepted until then. */
  #expired(error: GatewayError): void {
    if (this.#leg === null) this.#fail(error);
    else this.#leg.take({ kind: "expired", closeCode: error.closeCode, reason: error.code });
  }

  #fail(error: GatewayError): void {
    if (this.#isOver) return;
    this.#refusal = error;
    const fields = { carrier: this.#label, code: error.code, detail: error.message };
    if (error.code === "internal") this.#deps.log.error({ err: error.cause ?? error }, "Fault in a call");
    else this.#deps.log.warn(fields, "Call refused");
    this.#deps.stats.of(this.#label).refused += 1;
    this.#deps.refusals.sent(error);
    this.#finish({ closeCode: error.closeCode, reason: error.code });
  }

  /** `closeCode` null: the socket is gone already. */
  #finish(end: { readonly closeCode: number | null; readonly reason: string }): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#deps.onOver();
    this.#release();
    this.#startTimer.cancel();
    this.#unread = [];
    this.#deps.stats.of(this.#label).closed += 1;
    const leg = this.#leg;
    leg?.leave(end.reason);
    if (end.closeCode !== null) {
      const words = this.#speaking?.codec.hangUp() ?? [];
      if (words.length > 0) this.#options.line.send(words);
      this.#options.line.end(end.closeCode, end.reason);
    }
    if (leg?.hasJoined === true)
      this.#deps.log.info({ carrier: this.#label, session: leg.sessionId }, "Call ended");
  }
}
