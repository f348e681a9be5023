/** One connection of a session: its settings, its subscription to the output, and what it has acknowledged. */

import type { Listener } from "../../delivery/listener.ts";
import { GatewayError } from "../../errors.ts";
import type { TextOptions } from "../../protocol/commands.ts";
import type { AudioDescription } from "../../protocol/events.ts";
import type { ListenerSettings } from "../../protocol/vocabulary.ts";
import { msOfTicks, TICKS_PER_MS } from "../../timing/ticks.ts";
import type { EventBuilder } from "../events/event-writer.ts";
import type { Subscription } from "../output/output-router.ts";
import type { OpusAccount } from "../payer.ts";
import { entering, type Tape } from "../tape/tape.ts";

/** An acknowledgement older than this says nothing of where the listener is now, ms. */
const ACK_LIFE_MS = 2000;

/** The time, and where the playhead stands. */
interface AckMoment {
  readonly nowMs: number;
  readonly playheadTicks: number;
}

/** `isStill`: the audio has run out. */
export interface Moment extends AckMoment {
  readonly isStill: boolean;
}

interface Ack extends AckMoment {
  readonly ticks: number;
  readonly source: "ack" | "mark";
}

export interface ParticipantOptions {
  readonly id: string;
  readonly returnToken: string;
  readonly listener: Listener;
  readonly settings: ListenerSettings;
  readonly subscription: Subscription;
  readonly textOptions: TextOptions;
  readonly holder?: string;
  /** Whose it is, for operators. Default: nobody's. */
  readonly tenant?: string;
  /** By its grants as they are now: also where it joined to listen, and what others say. Default: no. */
  readonly mayInterrupt?: () => boolean;
  /** Default: nobody counts what it hears. */
  readonly opusAccount?: OpusAccount | null;
  readonly moment: () => AckMoment;
  readonly tape?: Tape;
}

export class Participant {
  /** As receipts and presence name it. */
  readonly id: string;
  /** With it the client comes back. */
  readonly returnToken: string;
  readonly listener: Listener;
  settings: ListenerSettings;
  subscription: Subscription;
  /** Utterances whose text it has begun and not ended; by id, because an utterance may be said again. */
  readonly openIds = new Set<string>();
  /** Utterances that it began; those that are over are taken out when it is looked at. */
  readonly saidIds = new Set<string>();
  /** The one that its `text` without an id goes to. */
  currentId: string | null = null;
  /** The id of the connection that it came back from, as it said. */
  formerId: string | null = null;
  /** It has asked to be closed, and will not come back. */
  hasSaidGoodbye = false;
  /** Unknown fields are warned of once each. */
  readonly warnedFields = new Set<string>();
  /** How what it says is made ready for speaking, where it does not say. */
  textOptions: TextOptions;
  /** Whose connection it is: nobody else comes back as it. Empty: no keys are set. */
  readonly holder: string;
  readonly tenant: string;
  /** Opus that it hears counts for it. */
  readonly opusAccount: OpusAccount | null;
  readonly #mayInterrupt: () => boolean;
  readonly #moment: () => AckMoment;
  readonly #tape: Tape | undefined;
  #ack: Ack | null = null;

  constructor(options: ParticipantOptions) {
    this.id = options.id;
    this.returnToken = options.returnToken;
    this.textOptions = options.textOptions;
    this.holder = options.holder ?? "";
    this.tenant = options.tenant ?? "";
    this.opusAccount = options.opusAccount ?? null;
    this.#mayInterrupt = options.mayInterrupt ?? (() => false);
    this.#moment = options.moment;
    this.#tape = options.tape;
    this.listener = options.listener;
    this.settings = options.settings;
    this.subscription = options.subscription;
  }

  /**
   * An event to this connection alone. It repeats the number of the last event that this connection was sent, not
   * that of one still to come: a connection that comes back with it would miss what is between.
   */
  send(build: EventBuilder): void {
    const says = (): readonly unknown[] => [this.id, build({ seq: 0, at_ms: 0 })];
    entering(this.#tape, { name: "send", says }, () => {
      const base = { seq: this.sentSeq, at_ms: msOfTicks(this.#moment().playheadTicks) };
      this.subscription.cursor.notify(build(base));
    });
  }

  /** The number of the last event that it was sent. */
  get sentSeq(): number {
    const { group, cursor } = this.subscription;
    return group.sentSeq(cursor);
  }

  /** What its next frames are, and where they stand; null: it gets none. */
  describeAudio(): AudioDescription | null {
    const { group, cursor } = this.subscription;
    return group.rendition?.describe(group.nextFrame(cursor)) ?? null;
  }

  /** Throws not_a_speaker for a connection that joined to listen. */
  mustSpeak(): void {
    if (this.settings.role === "listener") {
      throw new GatewayError(
        "not_a_speaker",
        "Connection joined as a listener: join with role=both or speaker",
        {
          field: "role",
        },
      );
    }
  }

  /** Throws not_a_speaker for a connection that joined to listen, and has no grant to interrupt. */
  mustInterrupt(): void {
    if (!this.#mayInterrupt()) this.mustSpeak();
  }

  /** Throws forbidden where the open text is another's, unless it may interrupt, and so say something in its place. */
  mustGoOnWith({ id, holder }: { readonly id: string; readonly holder: string }): void {
    if (holder === this.holder || this.#mayInterrupt()) return;
    throw new GatewayError(
      "forbidden",
      `Text of utterance ${id} is another's: expected one of your own, or a token that allows interrupt`,
      { field: "utterance_id" },
    );
  }

  /** Whether it hears or follows what is said. */
  get isListener(): boolean {
    return this.settings.role !== "speaker" || this.settings.format !== "none";
  }

  /** End of the audio that it was sent; `writeTicks`, the end of all audio, for one that gets no frames. */
  sentTicks(writeTicks: number): number {
    const { group, cursor } = this.subscription;
    return group.rendition?.startTicksOf(group.nextFrame(cursor)) ?? writeTicks;
  }

  /** It has played the timeline up to `atMs`. */
  acknowledge(atMs: number, source: "ack" | "mark" = "ack"): void {
    entering(this.#tape, { name: "acknowledge", says: () => [this.id, atMs, source] }, () => {
      this.#ack = { ticks: atMs * TICKS_PER_MS, source, ...this.#moment() };
    });
  }

  /** When it has said last where it is, clock ms; null: never. */
  get lastAckMs(): number | null {
    return this.#ack?.nowMs ?? null;
  }

  /** Where this listener is by its own word, or null when it has not said so lately. */
  acknowledged(moment: Moment): { readonly ticks: number; readonly source: "ack" | "mark" } | null {
    const ack = this.#ack;
    if (ack === null || moment.nowMs - ack.nowMs > ACK_LIFE_MS) return null;
    return { ticks: this.#placeOf(ack, moment), source: ack.source };
  }

  /**
   * How far behind the playhead it plays by its last word, however old that is: a player may say where it is only now and
   * then, or when it is about to interrupt. 0 where it has never said.
   */
  behindTicks(moment: Moment): number {
    return this.#ack === null ? 0 : moment.playheadTicks - this.#placeOf(this.#ack, moment);
  }

  #placeOf(ack: Ack, moment: Moment): number {
    const byClockTicks = ack.ticks + Math.max(0, moment.nowMs - ack.nowMs) * TICKS_PER_MS;
    // One that gets everything at once plays by a clock of its own.
    if (this.settings.pace === "burst") return byClockTicks;
    // A paced player keeps its distance to the playhead, also behind a silence: it waits for as much as before. Where the
    // playhead stands still it plays on until it has caught up.
    const atDistanceTicks = ack.ticks + Math.max(0, moment.playheadTicks - ack.playheadTicks);
    const caughtUpTicks = moment.isStill ? Math.min(byClockTicks, moment.playheadTicks) : 0;
    return Math.max(atDistanceTicks, caughtUpTicks);
  }

  end(error: GatewayError): void {
    this.subscription.cursor.end(error);
  }
}
