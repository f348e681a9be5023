/**
 * One phrase of the cache: the answer to one upstream request, kept as it comes and read by any number of readers, each
 * at its own pace, while it comes and after.
 *
 *   chunks   [ 0 .................. length )    all of them while it is kept, else what readers have still to read
 *   readers        ^ cursor    ^ cursor
 *
 * It is kept until it has outgrown its bound, failed, or was forgotten by the cache; what is no longer kept goes as it is
 * read. Of a phrase that has outgrown its bound the slowest reader may be `#windowBytes` behind: then the upstream is not
 * read on, and who holds up the others for HOLD_UP_MS is failed.
 */
import { parseUpstreamFormat } from "../../audio/formats.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type {
  Synthesis,
  SynthesisChunk,
  SynthesisHandlers,
  SynthesisHead,
  SynthesisRequest,
  Upstream,
} from "../types.ts";
import { PhraseChunks, type Room } from "./phrase-cache-chunks.ts";
import { type PhraseEnding, PhraseReader, type PhraseSource } from "./phrase-cache-reader.ts";

/** Two readers of a phrase for which there was no room at all are still not bound to the same piece. */
const MIN_WINDOW_BYTES = 64 * 1024;
const HOLD_UP_MS = 10_000;
/** Longest time to the first audio within which a reader may leave for reasons of its own: an interruption, a hang-up. */
const DOUBT_MS = 1000;

/** The upstream takes request ids of the last two hours; ten minutes for the text before the next. */
const REQUEST_ID_LIFE_MS = 110 * 60_000;

export interface RecordingOptions {
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly room: Room;
  /** Most that is kept of it. */
  readonly maxBytes: number;
  /**
   * Once: it has ended cleanly and is whole, or there is nothing to keep (too big, failed, or nobody wants it). It may
   * be joined until then, and after that only where it is kept.
   */
  readonly onSettled: (recording: PhraseRecording, isWhole: boolean) => void;
}

export class PhraseRecording implements SynthesisHandlers, PhraseSource {
  readonly #options: RecordingOptions;
  /** Priority of the request that is open for it. */
  readonly priority: number;
  readonly subjectId: string | undefined;
  readonly #outputFormat: string;
  readonly #readers = new Set<PhraseReader>();
  readonly #chunks: PhraseChunks;
  #synthesis: Synthesis | null = null;
  #isHeld = false;
  /** When the request left; null before, and while it is turned away. */
  #sentMs: number | null = null;
  /** What the upstream said of its first audio then. */
  #firstAudioMs: number | undefined;
  /** A reader gave up waiting for its first audio: who asks again is not to wait for the same. */
  isDoubted = false;
  /** null before the upstream has answered. */
  #head: SynthesisHead | null = null;
  #answeredMs = 0;
  /** The first reader has the bill. */
  #isBilled = false;
  /** By its body, until a reader has it. */
  #billed: number | null = null;
  #isKept = true;
  #windowBytes = 0;
  #isSettled = false;
  #ending: PhraseEnding | null = null;
  /** As it came, for the first that takes it: it need not be copied again. */
  #fresh: SynthesisChunk | null = null;
  #holdUpTimer: Timer | null = null;

  /** PHRASE_OVERHEAD_BYTES of the room were taken for it. */
  constructor(request: SynthesisRequest, options: RecordingOptions) {
    this.#options = options;
    this.#chunks = new PhraseChunks(options.room);
    this.priority = request.priority ?? 0;
    this.subjectId = request.subject?.id;
    this.#outputFormat = request.outputFormat;
  }

  /** Asks the upstream, for the first reader. Once. */
  begin(request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    const reader = this.read(request, handlers);
    this.#synthesis = this.#options.upstream.open(request, this);
    return reader;
  }

  /** A further reader; it hears from the beginning on. */
  read(request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    const reader = new PhraseReader({ source: this, request, handlers, upstream: this.#options.upstream });
    this.#readers.add(reader);
    this.#steer();
    // So that it, too, knows how long the first audio takes.
    if (this.#sentMs !== null && this.length === 0) queueMicrotask(() => reader.sent(this.#firstAudioMs));
    reader.schedule();
    return reader;
  }

  /** Memory that it takes. */
  get bytes(): number {
    return this.#chunks.bytes;
  }

  get isBeingRead(): boolean {
    return this.#readers.size > 0;
  }

  /** Keeps nothing but what readers have still to read. Idempotent. */
  forget(): void {
    this.#isKept = false;
    this.#trim();
  }

  // ---- SynthesisHandlers: the upstream's side --------------------------------------------------------------------

  requestSent(firstAudioMs?: number): void {
    this.#sentMs = this.#options.clock.nowMs();
    this.#firstAudioMs = firstAudioMs;
    for (const reader of [...this.#readers]) reader.sent(firstAudioMs);
  }

  requestTurnedAway(): void {
    this.#sentMs = null;
    for (const reader of [...this.#readers]) reader.turnedAway();
  }

  head(head: SynthesisHead): void {
    this.#head = head;
    this.#answeredMs = this.#options.clock.nowMs();
    this.#deliver();
  }

  chunk(chunk: SynthesisChunk): void {
    if (!this.#isKept && this.#handToLoneReader(chunk)) return;
    if (!this.#isKept) this.#chunks.push(chunk);
    else if (!this.#chunks.tryPush(chunk, this.#options.maxBytes)) {
      this.#outgrow();
      if (this.#handToLoneReader(chunk)) return;
      this.#chunks.push(chunk);
    }
    this.#fresh = chunk;
    this.#deliver();
    this.#fresh = null;
    this.#trim();
    this.#steer();
  }

  billed(characters: number): void {
    this.#billed = characters;
  }

  end(): void {
    this.#finish({ error: null }, this.#isKept && this.#isSound);
  }

  error(error: GatewayError): void {
    this.#finish({ error }, false);
  }

  // ---- PhraseSource: the readers' side ---------------------------------------------------------------------------

  get isAnswered(): boolean {
    return this.#head !== null;
  }

  get length(): number {
    return this.#chunks.length;
  }

  get ending(): PhraseEnding | null {
    return this.#ending;
  }

  /** The first reader gets all that was true of the request; for the others nothing is billed. */
  takeHead(): SynthesisHead | null {
    const head = this.#head;
    if (head === null || !this.#isBilled) {
      this.#isBilled = head !== null;
      return head;
    }
    const { requestId, ignored, timesFrom, hasEstimatedTimes } = head;
    const isKnown = this.#options.clock.nowMs() - this.#answeredMs < REQUEST_ID_LIFE_MS;
    return {
      characterCost: 0,
      ...(requestId === undefined || !isKnown ? {} : { requestId }),
      ...(ignored === undefined ? {} : { ignored }),
      ...(timesFrom === undefined ? {} : { timesFrom }),
      ...(hasEstimatedTimes === undefined ? {} : { hasEstimatedTimes }),
    };
  }

  takeBilled(): number | null {
    const billed = this.#billed;
    this.#billed = null;
    return billed;
  }

  takeChunk(index: number): SynthesisChunk | undefined {
    const fresh = this.#fresh;
    if (fresh !== null && index === this.length - 1) {
      this.#fresh = null;
      return fresh;
    }
    return this.#chunks.at(index);
  }

  onMoved(): void {
    this.#trim();
    this.#steer();
  }

  onLeft(reader: PhraseReader): void {
    this.#readers.delete(reader);
    this.isDoubted ||= this.#isLate;
    if (this.#readers.size === 0 && this.#ending === null) this.#abandon();
    this.#trim();
    this.#steer();
  }

  // ---- inside ----------------------------------------------------------------------------------------------------

  #deliver(): void {
    for (const reader of [...this.#readers]) reader.deliver();
  }

  /** Its first audio was waited for so long that who leaves has given it up. */
  get #isLate(): boolean {
    if (this.#sentMs === null || this.length > 0) return false;
    const doubtMs = Math.max(DOUBT_MS, this.#firstAudioMs ?? 0);
    return this.#options.clock.nowMs() >= this.#sentMs + doubtMs;
  }

  #handToLoneReader(chunk: SynthesisChunk): boolean {
    if (this.#readers.size !== 1) return false;
    const [reader] = this.#readers;
    return reader?.takeAtOnce(chunk) === true;
  }

  /** Who was handed nothing yet asks for itself; the first reader has the request. */
  #outgrow(): void {
    this.#windowBytes = Math.max(MIN_WINDOW_BYTES, this.#chunks.bytes);
    this.#settle(false);
    const [, ...others] = this.#readers;
    for (const reader of others) reader.goAlone();
    this.forget();
  }

  /**
   * Audio that is none would fail whoever hears it, again and again. What breaks off inside a sample may be cut off; and that of a
   * substitute would be heard when the voice itself is back.
   */
  get #isSound(): boolean {
    const isCut =
      parseUpstreamFormat(this.#outputFormat)?.codec === "pcm" && this.#chunks.audioBytes % 2 !== 0;
    return this.#head !== null && this.#head.standIn === undefined && this.#chunks.audioBytes > 0 && !isCut;
  }

  #finish(ending: PhraseEnding, isWhole: boolean): void {
    this.#ending = ending;
    this.#synthesis = null;
    this.#settle(isWhole);
    if (!isWhole) this.forget();
    this.#deliver();
    this.#steer();
  }

  /** The last reader left before the end. */
  #abandon(): void {
    this.#ending = { error: new GatewayError("session_closed", "Nobody wants this speech any more") };
    this.#synthesis?.abort();
    this.#synthesis = null;
    this.#settle(false);
    this.forget();
  }

  #settle(isWhole: boolean): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#options.onSettled(this, isWhole);
  }

  /** Lets go of what is neither kept nor to be read by anybody. */
  #trim(): void {
    if (this.#isKept) return;
    if (this.#readers.size === 0) this.#chunks.dropAll();
    else this.#chunks.dropBefore(this.#slowestCursor);
  }

  get #slowestCursor(): number {
    let slowest = this.length;
    for (const { cursor } of this.#readers) slowest = Math.min(slowest, cursor);
    return slowest;
  }

  /** Reads on from the upstream while anybody wants it, and nobody is too far behind. */
  #steer(): void {
    const synthesis = this.#synthesis;
    if (synthesis === null) {
      this.#disarmHoldUp();
      return;
    }
    const isWanted = this.#isWanted;
    const isFull = !this.#isKept && this.#chunks.bytes >= this.#windowBytes;
    if (isFull && isWanted) this.#armHoldUp();
    else this.#disarmHoldUp();
    if (this.#isHeld === (isFull || !isWanted)) return;
    this.#isHeld = !this.#isHeld;
    if (this.#isHeld) synthesis.pause();
    else synthesis.resume();
  }

  get #isWanted(): boolean {
    for (const { isPaused } of this.#readers) if (!isPaused) return true;
    return false;
  }

  #armHoldUp(): void {
    const { clock } = this.#options;
    this.#holdUpTimer ??= clock.at(clock.nowMs() + HOLD_UP_MS, () => {
      this.#holdUpTimer = null;
      const slowest = this.#slowestCursor;
      for (const reader of [...this.#readers]) {
        if (reader.cursor === slowest && reader.isPaused) reader.fail(tooFarBehind(this.#windowBytes));
      }
      this.#steer();
    });
  }

  #disarmHoldUp(): void {
    this.#holdUpTimer?.cancel();
    this.#holdUpTimer = null;
  }
}

function tooFarBehind(windowBytes: number): GatewayError {
  return new GatewayError(
    "upstream_truncated",
    `The speech was cut: its reader stood still ${windowBytes} bytes behind others that share the upstream's answer`,
  );
}
