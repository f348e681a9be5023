/**
 * What a session says: the queue of utterances, the upstream requests open for them, and the edge of the timeline,
 * that is, the end of all audio pushed so far. Requests run one ahead: the next segment (of this utterance or the
 * next) is asked for when the upstream has finished the one before.
 *
 *   #queue   [speaking, queued, queued, ...]      utterances with audio still to be pushed
 *   #pushed  [pushed, ...]                         all audio pushed, the playhead has not passed their end
 *   #runs    [being pushed, requested]             upstream requests in order
 */
import { type GatewayError, toGatewayError } from "../errors.ts";
import type { Audience } from "./audience.ts";
import type { EventWriter } from "./event-writer.ts";
import { TICKS_PER_MS } from "./playhead.ts";
import type { SessionDeps } from "./ports.ts";
import { chooseSourceFormat } from "./route.ts";
import { SegmentFeed } from "./segment-feed.ts";
import { SegmentRun } from "./segment-run.ts";
import { bytesPerMs } from "./source.ts";
import type { Utterance } from "./utterance.ts";
import { writeError, writeFinished, writeStarted } from "./utterance-events.ts";

/** Audio in hand, ms, with which a wake is not waited for: the timing of what is sent next is among it. */
const CALM_AHEAD_MS = 250;
/** Audio is pushed in multiples of this, so that most frames are cut out of one piece without copying. */
const PUSH_TICKS = 20 * TICKS_PER_MS;

interface OpenRun {
  readonly run: SegmentRun;
  readonly utterance: Utterance;
  /** Over its bound, and not half used up since. */
  isFull: boolean;
}

/** An utterance whose audio is all pushed (or that failed), waiting to be played out. */
interface Pushed {
  readonly utterance: Utterance;
  readonly error: GatewayError | null;
}

export interface SpeechOptions {
  readonly deps: SessionDeps;
  readonly audience: Audience;
  readonly writer: EventWriter;
  /** An upstream has something new. */
  readonly onProgress: () => void;
}

export class Speech {
  readonly #options: SpeechOptions;
  #queue: Utterance[] = [];
  #pushed: Pushed[] = [];
  #runs: OpenRun[] = [];
  #feed: SegmentFeed | null = null;
  #defaultVoice: string | null = null;
  #isAskingVoice = false;
  #isClosed = false;
  edgeTicks = 0;

  constructor(options: SpeechOptions) {
    this.#options = options;
  }

  get queuedCount(): number {
    return this.#queue.length;
  }
  /** Utterances that are not over for the listener. */
  get unplayed(): Utterance[] {
    return [...this.#pushed.map((entry) => entry.utterance), ...this.#queue];
  }
  get isIdle(): boolean {
    return this.#queue.length === 0 && this.#pushed.length === 0;
  }
  /** Timeline position at which the next utterance will have been played; null when none waits for that. */
  get nextEndTicks(): number | null {
    return this.#pushed[0]?.utterance.endTicks ?? null;
  }

  add(utterance: Utterance): void {
    this.#queue.push(utterance);
    this.openNext();
  }

  find(id: string): Utterance | undefined {
    return this.unplayed.find((utterance) => utterance.id === id);
  }

  /** Asks the upstream for the next segment if it is time. */
  openNext(): void {
    const last = this.#runs.at(-1);
    if (this.#isClosed || this.#runs.length >= 2 || (last !== undefined && !last.run.isComplete)) return;
    for (const utterance of this.#queue) {
      if (utterance.hasSegment) {
        this.#open(utterance);
        return;
      }
      if (!utterance.isExhausted) return;
    }
  }

  /**
   * Stops reading from upstreams that are far enough ahead: a full second request, or (where the listeners do not wait
   * for it) more than a little audio in hand. What comes meanwhile gathers in the kernel and is read in one go at the
   * next wake: a system call each wake, not one for each piece that an upstream sends.
   */
  holdReading(isAwaited: boolean): void {
    for (const open of this.#runs) {
      const aheadMs = this.#aheadMs(open);
      if (aheadMs > this.#options.deps.tuning.aheadMs) open.isFull = true;
      if (open.isFull || (!isAwaited && aheadMs > CALM_AHEAD_MS)) open.run.hold();
    }
  }

  /** Lets upstreams send again that are not full, or have been half used up since they were. */
  readOn(): void {
    for (const open of this.#runs) {
      if (this.#aheadMs(open) < this.#options.deps.tuning.aheadMs / 2) open.isFull = false;
      if (!open.isFull) open.run.readOn();
    }
  }

  #aheadMs(open: OpenRun): number {
    const feedTicks = this.#feed?.run === open.run ? this.#feed.bufferedTicks : 0;
    return feedTicks / TICKS_PER_MS + open.run.waitingBytes / bytesPerMs(open.run.sourceFormat);
  }

  /** Pushes audio to the listeners until the edge reaches `untilTicks` or there is none; true if any was pushed. */
  feed(untilTicks: number): boolean {
    const before = this.edgeTicks;
    while (this.edgeTicks < untilTicks) {
      const feed = this.#feed ?? this.#nextFeed();
      if (feed === null) break;
      try {
        const slice = feed.next(Math.ceil((untilTicks - this.edgeTicks) / PUSH_TICKS) * PUSH_TICKS);
        if (slice !== undefined) {
          this.#options.audience.push(slice);
          this.edgeTicks += slice.ticks;
          feed.tellUpTo(this.edgeTicks);
        } else if (feed.isOver) this.#finishFeed(feed);
        else break;
      } catch (thrown) {
        this.#fail(feed.utterance, toGatewayError(thrown));
      }
    }
    return this.edgeTicks > before;
  }

  /** Frames up to `sentTicks` have left: the first of every utterance that begins before. */
  noteFirstFrame(sentTicks: number, nowMs: number): void {
    for (const { utterance } of this.#pushed) noteSent(utterance, sentTicks, nowMs);
    const [first] = this.#queue;
    if (first !== undefined) noteSent(first, sentTicks, nowMs);
  }

  /** Tells of every utterance that has been played when the playhead stands at `playheadTicks`. */
  tellPlayed(playheadTicks: number): void {
    while (this.#pushed[0] !== undefined && (this.#pushed[0].utterance.endTicks ?? 0) <= playheadTicks) {
      const { utterance, error } = this.#pushed[0];
      this.#pushed.shift();
      const { counters } = this.#options.deps;
      if (error === null) counters.utterancesDone += 1;
      else counters.utterancesFailed += 1;
      writeFinished(this.#options.writer, {
        utterance,
        outcome: error === null ? "done" : "failed",
        atTicks: utterance.endTicks ?? this.edgeTicks,
        error,
        heardEnd:
          utterance.heard.findLast((character) => character.endTicks <= (utterance.endTicks ?? 0))?.end ?? 0,
      });
    }
  }

  /** Takes an utterance out; its requests are aborted. Its audio is the caller's to cut. */
  remove(utterance: Utterance): void {
    this.#queue = this.#queue.filter((queued) => queued !== utterance);
    this.#pushed = this.#pushed.filter((entry) => entry.utterance !== utterance);
    this.#abortRuns(utterance);
  }

  /** After a cut: the timeline goes on at `edgeTicks`; these utterances are said anew, before all others. */
  restart(edgeTicks: number, rewound: readonly Utterance[]): void {
    this.edgeTicks = edgeTicks;
    for (const utterance of rewound) this.remove(utterance);
    this.#queue.unshift(...rewound.map((utterance) => utterance.rewound()));
    this.openNext();
  }

  close(): void {
    this.#isClosed = true;
    for (const utterance of this.unplayed) this.remove(utterance);
    this.#feed?.close();
    this.#feed = null;
  }

  #open(utterance: Utterance): void {
    const { deps, audience } = this.#options;
    if (!utterance.namesVoice && this.#defaultVoice === null) {
      this.#askDefaultVoice();
      return;
    }
    const segment = utterance.takeSegment();
    if (segment === undefined) return;
    if (utterance.sourceFormat === "") {
      utterance.sourceFormat = chooseSourceFormat(audience.needs(), deps.tuning.opusBitrateKbps);
      if (!utterance.namesVoice) utterance.voiceIds = [this.#defaultVoice ?? ""];
    }
    utterance.charactersSpoken += segment.text.length;
    const run = new SegmentRun({
      upstream: deps.upstream,
      request: utterance.request(segment, {
        outputFormat: utterance.sourceFormat,
        wantsTiming: audience.wantsTiming,
        voiceId: utterance.voiceIds[0] ?? "",
        modelId: deps.tuning.defaultModel,
      }),
      segment,
      clock: deps.clock,
      counters: deps.counters,
      onProgress: () => {
        this.openNext();
        this.#options.onProgress();
      },
    });
    this.#runs.push({ run, utterance, isFull: false });
  }

  #askDefaultVoice(): void {
    if (this.#isAskingVoice) return;
    this.#isAskingVoice = true;
    const settle = (use: () => void): void => {
      this.#isAskingVoice = false;
      if (this.#isClosed) return;
      use();
      this.openNext();
      this.#options.onProgress();
    };
    this.#options.deps.defaultVoice().then(
      (voice) => settle(() => (this.#defaultVoice = voice)),
      (thrown: unknown) =>
        settle(() => {
          const waiting = this.#queue.find((utterance) => !utterance.namesVoice);
          if (waiting !== undefined) this.#fail(waiting, toGatewayError(thrown));
        }),
    );
  }

  /** The feed of the oldest request once it has audio; utterances that turn out empty end here. */
  #nextFeed(): SegmentFeed | null {
    const [first] = this.#queue;
    const [open] = this.#runs;
    if (first?.isExhausted && open?.utterance !== first) {
      this.#finishUtterance(first, null);
      return this.#nextFeed();
    }
    if (open === undefined) return null;
    const { run, utterance } = open;
    if (!run.hasChunk && !run.isComplete) return null;
    if (utterance.startTicks === null && run.hasChunk) this.#startUtterance(utterance);
    const { tuning } = this.#options.deps;
    this.#feed = new SegmentFeed({
      run,
      utterance,
      baseTicks: this.edgeTicks,
      writer: this.#options.writer,
      lookaheadTicks: tuning.aheadMs * TICKS_PER_MS,
    });
    return this.#feed;
  }

  #startUtterance(utterance: Utterance): void {
    this.edgeTicks = this.#options.audience.alignEnds(this.edgeTicks);
    utterance.startTicks = this.edgeTicks;
    writeStarted(this.#options.writer, utterance);
  }

  #finishFeed(feed: SegmentFeed): void {
    const { run, utterance } = feed;
    utterance.times ??= run.times;
    if (run.characterCost !== null) {
      utterance.charactersBilled = (utterance.charactersBilled ?? 0) + run.characterCost;
    }
    if (run.error !== null) {
      this.#fail(utterance, run.error);
      return;
    }
    feed.finish();
    this.#closeFeed();
    this.#runs.shift();
    if (utterance.isExhausted && this.#runs[0]?.utterance !== utterance)
      this.#finishUtterance(utterance, null);
    this.openNext();
  }

  #fail(utterance: Utterance, error: GatewayError): void {
    this.#options.deps.log.warn(
      { utterance: utterance.id, code: error.code, detail: error.message },
      "Utterance failed",
    );
    this.#abortRuns(utterance);
    writeError(this.#options.writer, { utterance, error, atTicks: this.edgeTicks });
    this.#finishUtterance(utterance, error);
    this.openNext();
  }

  #finishUtterance(utterance: Utterance, error: GatewayError | null): void {
    this.#queue = this.#queue.filter((queued) => queued !== utterance);
    utterance.endText();
    utterance.endTicks = this.edgeTicks;
    if (utterance.startTicks !== null) {
      this.edgeTicks = this.#options.audience.flush(this.edgeTicks);
      utterance.padTicks = this.edgeTicks - utterance.endTicks;
    }
    this.#pushed.push({ utterance, error });
  }

  #abortRuns(utterance: Utterance): void {
    for (const open of this.#runs) if (open.utterance === utterance) open.run.abort();
    this.#runs = this.#runs.filter((open) => open.utterance !== utterance);
    if (this.#feed?.utterance === utterance) this.#closeFeed();
  }

  #closeFeed(): void {
    this.#feed?.close();
    this.#feed = null;
  }
}

function noteSent(utterance: Utterance, sentTicks: number, nowMs: number): void {
  if (utterance.startTicks !== null && utterance.startTicks < sentTicks) utterance.firstFrameMs ??= nowMs;
}
