/**
 * One connection of a carrier, from its first message to its end:
 *
 *   waiting --started--> open (a listener of a session) --stopped, hung up, closed, a message that can't be--> over
 *      `--10 s without a start--> over
 *
 * It gets the messages and the socket's end by calls, and sends through its line; it knows no socket.
 */
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
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
import { type Account, speak } from "../session/commands.ts";
import type { Participant } from "../session/connections/participant.ts";
import type { OpusAccount } from "../session/output/opus-listeners.ts";
import type { Utterance } from "../session/playback/utterance.ts";
import type { Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import type { BridgedCall, CallBridge } from "./call-bridge.ts";
import { type CallFacts, factsOf, parameterOf, sessionIdOf } from "./call-facts.ts";
import type { CallStats, CarrierCounts, CarrierLabel } from "./call-stats.ts";
import { type CallLine, CarrierListener } from "./carrier-listener.ts";

/** How long a connection may be without a call, ms. */
const START_MS = 10_000;
/** Messages that may come before it is clear which carrier sends them. */
const MAX_UNREAD = 4;
/** What was accepted before a call's time was over is heard to its end: so often it is looked whether it was, ms. */
const LAST_WORDS_POLL_MS = 50;
/** How long a carrier may take to say that it has played the last of it, ms. */
const LAST_MARK_MS = 2000;
/** WebSocket close code of an ordinary end. */
const ORDINARY_END = 1000;

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

/** What who brings the call may do. */
export interface CallRights {
  /**
   * Throws where the call may not come into this session. `ending` is called where the right is lost later. Returns what is
   * to be called when the call is over.
   */
  begin(call: CallStarting, ending: CallEnding): () => void;
  /** What the caller hears first, as it may be said. Throws forbidden. */
  greeting(command: SpeakCommand, sessionId: string): SpeakCommand;
  /** On whose account it is said. */
  readonly account: Account;
  /** For whom Opus counts that the call hears. */
  readonly opusAccount?: OpusAccount;
}

export interface CallOptions {
  readonly line: CallLine;
  readonly hello: CarrierHello;
  /** Which carrier speaks, by its messages so far; null: not clear yet. Throws carrier_protocol, carrier_signature. */
  readonly dialectOf: (messages: readonly Wire[]) => CarrierDialect | null;
  readonly rights: CallRights;
}

export interface CallDeps {
  readonly sessions: Sessions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly stats: CallStats;
  bridgeOf(session: Session): CallBridge;
  leaveBridge(session: Session, call: Call, reason: string | undefined): void;
}

interface Speaking {
  readonly dialect: CarrierDialect;
  readonly codec: CarrierCodec;
  readonly counts: CarrierCounts;
}

interface Joined {
  readonly session: Session;
  readonly participant: Participant;
  readonly listener: CarrierListener;
  readonly bridge: CallBridge;
}

export class Call implements BridgedCall {
  readonly #options: CallOptions;
  readonly #deps: CallDeps;
  readonly #startTimer: Timer;
  #speaking: Speaking | null = null;
  /** What came before it was clear which carrier it is. */
  #unread: Wire[] = [];
  #joined: Joined | null = null;
  #facts: CallFacts | null = null;
  #label: CarrierLabel = "unknown";
  #refusal: GatewayError | null = null;
  /** Gives the right to this call back. */
  #release: () => void = () => undefined;
  #endTimer: Timer | null = null;
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

  /** Known once the call has begun. */
  get facts(): CallFacts {
    if (this.#facts === null) throw new TypeError("No facts: the call has not begun");
    return this.#facts;
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

  /** The socket has taken what it was behind with. */
  drained(): void {
    if (this.#joined !== null) this.#joined.session.drained(this.#joined.participant);
  }

  /** The socket is gone. Idempotent, as every end. */
  closed(reason = "connection closed"): void {
    this.#finish({ closeCode: null, reason });
  }

  hangUp(): void {
    this.#finish({ closeCode: ORDINARY_END, reason: "hangup" });
  }

  noteDropped(frames: number): void {
    if (frames > 0) this.#deps.stats.of(this.#label).callerDropped += frames;
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
      this.#finish({ closeCode: ORDINARY_END, reason: event.reason ?? "stopped" });
      return;
    }
    const joined = this.#joined;
    if (joined === null) return;
    switch (event.kind) {
      case "media":
        joined.bridge.hear(this, event.audio);
        return;
      case "dtmf":
        joined.bridge.dialled(this, event);
        return;
      case "played":
        this.#played(joined, event.name);
        return;
      case "hold":
        joined.listener.hold();
        return;
      case "goOn":
        joined.listener.goOn();
        return;
    }
  }

  #played({ participant, listener }: Joined, name: string): void {
    const atMs = listener.played(name);
    if (atMs !== null) participant.acknowledge(atMs, "mark");
  }

  /** Throws what joining a session throws, and what `rights` do. */
  #begin(speaking: Speaking, call: CallStart): void {
    const { dialect, codec, counts } = speaking;
    const { sessions, log, clock } = this.#deps;
    if (this.#joined !== null) throw new GatewayError("carrier_protocol", "Carrier began a second call");
    this.#startTimer.cancel();
    const sessionId = sessionIdOf(dialect, call, this.#options.hello);
    const starting = { carrier: dialect.name, callId: call.callId, sessionId };
    this.#release = this.#options.rights.begin(starting, {
      expired: (error) => this.#endWhenHeard(error, new Set(this.#joined?.session.queue.unplayed)),
      revoked: (error) => this.#fail(error),
    });
    const session = sessions.open(sessionId);
    let participant: Participant | null = null;
    const listener = new CarrierListener({
      codec,
      line: this.#options.line,
      clock,
      markMs: dialect.markMs,
      frameMs: call.frameMs,
      counts,
      isSentOut: () => participant !== null && session.isSentOut(participant),
      onEnd: (closeCode, reason) => this.#finish({ closeCode, reason }),
      onRoom: () => this.drained(),
    });
    const { opusAccount } = this.#options.rights;
    participant = session.join(listener, {
      settings: {
        role: "listener",
        format: call.format,
        frame_ms: call.frameMs,
        framing: "raw",
        pace: "realtime",
        lead_ms: dialect.leadMs,
        policy: "live",
        events: [],
        offsets: "utf16",
      },
      ignored: [],
      ...(opusAccount === undefined ? {} : { opusAccount }),
    });
    // What it was greeted with may have closed it: the end did not know of the participant yet.
    if (this.#isOver) {
      session.leave(participant);
      return;
    }
    const bridge = this.#deps.bridgeOf(session);
    this.#joined = { session, participant, listener, bridge };
    this.#facts = factsOf(dialect, call, participant.id);
    counts.started += 1;
    log.info({ carrier: dialect.name, session: session.id }, "Call began");
    bridge.add(this);
    this.#greet(session, call);
  }

  /** What the caller is to hear first, where the application says so with the call. */
  #greet(session: Session, call: CallStart): void {
    const { hello, rights } = this.#options;
    const text = parameterOf(call, "text", hello);
    const voiceId = parameterOf(call, "voice_id", hello);
    if (text === undefined || text === "") return;
    try {
      const said = voiceId === undefined ? {} : { voice_id: voiceId };
      const greeting = rights.greeting({ type: "speak", text, ...said }, session.id);
      speak(session, greeting, rights.account);
      session.textChanged();
    } catch (thrown) {
      const { code } = toGatewayError(thrown);
      this.#deps.log.warn({ session: session.id, code }, "Call's greeting was refused");
    }
  }

  /** Nothing of `awaited` is cut: not before it was spoken, and then not before the carrier says that it was played. */
  #endWhenHeard(error: GatewayError, awaited: ReadonlySet<Utterance>, spokenMs: number | null = null): void {
    const joined = this.#joined;
    if (this.#isOver || joined === null) return;
    const { clock } = this.#deps;
    const nowMs = clock.nowMs();
    const isSpoken = !joined.session.queue.unplayed.some((utterance) => awaited.has(utterance));
    const sinceMs = isSpoken ? (spokenMs ?? nowMs) : null;
    const isHeard = !joined.listener.hasUnplayed || (sinceMs !== null && nowMs - sinceMs >= LAST_MARK_MS);
    if (isSpoken && isHeard) this.#fail(error);
    else {
      this.#endTimer = clock.at(nowMs + LAST_WORDS_POLL_MS, () =>
        this.#endWhenHeard(error, awaited, sinceMs),
      );
    }
  }

  #fail(error: GatewayError): void {
    if (this.#isOver) return;
    this.#refusal = error;
    const fields = { carrier: this.#label, code: error.code, detail: error.message };
    if (error.code === "internal") this.#deps.log.error({ err: error.cause ?? error }, "Fault in a call");
    else this.#deps.log.warn(fields, "Call refused");
    this.#deps.stats.of(this.#label).refused += 1;
    this.#finish({ closeCode: error.closeCode, reason: error.code });
  }

  /** `closeCode` null: the socket is gone already. */
  #finish(end: { readonly closeCode: number | null; readonly reason: string }): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#release();
    this.#startTimer.cancel();
    this.#endTimer?.cancel();
    this.#unread = [];
    this.#deps.stats.of(this.#label).closed += 1;
    const joined = this.#joined;
    this.#joined = null;
    joined?.listener.close();
    if (end.closeCode !== null) {
      const words = this.#speaking?.codec.hangUp() ?? [];
      if (words.length > 0) this.#options.line.send(words);
      this.#options.line.end(end.closeCode, end.reason);
    }
    if (joined === null) return;
    joined.session.leave(joined.participant);
    this.#deps.leaveBridge(joined.session, this, end.reason);
    this.#deps.log.info({ carrier: this.#label, session: joined.session.id }, "Call ended");
  }
}
