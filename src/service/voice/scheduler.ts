/**
 * Takes turns between the jobs of one engine: one bounded step, then the one whose client needs its next audio first
 * (deadline.ts). A deadline moves only with audio that has left, and a new one is never in the past: whoever waits has a turn
 * in the end. A job whose client reads slowly runs out of credit and is passed over until bytes are acknowledged.
 */
import { createStreamEncoder } from "../../audio/containers/encode.ts";
import { parseUpstreamFormat } from "../../audio/formats.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import type { SendReply } from "../../kit/serve-jobs.ts";
import { Locales } from "../text/locale.ts";
import { Deadline, nextTurn } from "./deadline.ts";
import type { Engine } from "./engine/engine.ts";
import { type JobEncoder, type JobOptions, VoiceJob } from "./job.ts";
import type { FromWorker, JobChunk, JobSpec } from "./messages.ts";
import type { EngineAudio } from "./neural/speech-engine.ts";
import { WordFinder } from "./neural/word-finder.ts";

/** Encoded bytes that may be under way to a client before the job waits: about 2 s of pcm_48000, 12 s of MP3. */
const CREDIT_BYTES = 196_608;
/**
 * Open encoders a thread, by codec; further jobs of that codec wait for one. Opus has a hard bound in its module
 * (audio/codecs/opus-codec.ts), MP3 takes a megabyte each, the others cost nothing.
 */
const MAX_OPEN_ENCODERS: Readonly<Record<string, number>> = { opus: 56, mp3: 256 };

interface Entry {
  readonly id: number;
  readonly spec: JobSpec;
  readonly cancelled: Int32Array;
  readonly codec: string;
  readonly deadline: Deadline;
  job: ScheduledJob | undefined;
  hasLeft: boolean;
  unacknowledgedBytes: number;
}

/** The part of a VoiceJob that a scheduler uses. */
export type ScheduledJob = Pick<
  VoiceJob,
  "step" | "receive" | "close" | "isWaiting" | "synthesizedMs" | "emittedMs"
>;

export interface SchedulerOptions {
  readonly engine: Engine;
  readonly reply: SendReply<FromWorker>;
  readonly clock?: Clock;
  /** For tests: another kind of job. */
  readonly createJob?: (options: JobOptions) => ScheduledJob;
}

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #clock: Clock;
  readonly #locales = new Locales();
  readonly #wordFinder: WordFinder;
  /** All jobs that are not over. */
  readonly #entries = new Map<number, Entry>();
  /** Jobs that can go on. */
  readonly #ready: Entry[] = [];
  readonly #waiting: Entry[] = [];
  readonly #openEncoders = new Map<string, number>();
  #isTurnDue = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#wordFinder = new WordFinder(options.engine);
  }

  open(id: number, spec: JobSpec, cancelled: SharedArrayBuffer): void {
    const entry: Entry = {
      id,
      spec,
      cancelled: new Int32Array(cancelled),
      codec: parseUpstreamFormat(spec.format)?.codec ?? "",
      deadline: new Deadline(this.#clock.nowMs(), spec.aheadMs),
      job: undefined,
      hasLeft: false,
      unacknowledgedBytes: 0,
    };
    this.#entries.set(id, entry);
    if (this.#hasEncoder(entry.codec)) void this.#begin(entry);
    else this.#waiting.push(entry);
  }

  acknowledge(id: number, bytes: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    const wasBlocked = !hasCredit(entry);
    entry.unacknowledgedBytes -= bytes;
    if (wasBlocked && canGoOn(entry)) this.#makeReady(entry);
  }

  /** The neural engine has spoken what the job waits for. */
  receive(id: number, audio: EngineAudio): void {
    const entry = this.#entries.get(id);
    if (entry?.job === undefined) return;
    try {
      entry.job.receive(audio);
      if (canGoOn(entry)) this.#makeReady(entry);
    } catch (thrown) {
      this.#end(entry, "failed", messageOf(thrown));
    }
  }

  /** The job's turn may be far off: it ends now. */
  cancel(id: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    Atomics.store(entry.cancelled, 0, 1);
    // Still creating its encoder: #begin ends it.
    if (entry.job === undefined && !this.#waiting.includes(entry)) return;
    this.#end(entry, "cancelled", "");
  }

  async #begin(entry: Entry): Promise<void> {
    this.#countEncoder(entry.codec, 1);
    try {
      const encoder = await createStreamEncoder(entry.spec.format, { serial: entry.spec.seed });
      if (isCancelled(entry)) {
        encoder.close();
        this.#end(entry, "cancelled", "", true);
        return;
      }
      entry.job = this.#createJob(entry, encoder);
      this.#makeReady(entry);
    } catch (thrown) {
      this.#end(entry, "failed", messageOf(thrown), true);
    }
  }

  #createJob(entry: Entry, encoder: JobEncoder): ScheduledJob {
    const { createJob = (options) => new VoiceJob(options) } = this.#options;
    return createJob({
      spec: entry.spec,
      engine: this.#options.engine,
      locales: this.#locales,
      encoder,
      isCancelled: () => isCancelled(entry),
      emit: (chunk) => this.#send(entry, chunk),
      neural: {
        ask: (piece) => this.#options.reply(entry.id, { type: "ask", piece }),
        wordFinder: this.#wordFinder,
      },
    });
  }

  #send(entry: Entry, made: JobChunk): void {
    const chunk = entry.hasLeft ? made : { ...made, behindMs: this.#behindMs(entry) };
    entry.hasLeft = true;
    entry.unacknowledgedBytes += chunk.audio.length;
    this.#options.reply(entry.id, { type: "chunk", chunk }, [chunk.audio.buffer]);
  }

  /** How long the job that is worst off has been overdue: this one, or one that waits for its turn. */
  #behindMs(entry: Entry): number {
    const nowMs = this.#clock.nowMs();
    let behindMs = 0;
    for (const { deadline } of [entry, ...this.#ready]) behindMs = Math.max(behindMs, nowMs - deadline.dueMs);
    return Math.round(behindMs);
  }

  #makeReady(entry: Entry): void {
    this.#ready.push(entry);
    this.#takeTurnSoon();
  }

  /** One step a turn of the event loop, so that messages come in between. */
  #takeTurnSoon(): void {
    if (this.#isTurnDue || this.#ready.length === 0) return;
    this.#isTurnDue = true;
    setImmediate(() => {
      this.#isTurnDue = false;
      const entry = nextTurn(this.#ready, this.#clock.nowMs());
      if (entry !== undefined) {
        remove(this.#ready, entry);
        this.#takeTurn(entry);
      }
      this.#takeTurnSoon();
    });
  }

  #takeTurn(entry: Entry): void {
    const { job } = entry;
    if (job === undefined || !this.#entries.has(entry.id)) return;
    if (isCancelled(entry)) {
      this.#end(entry, "cancelled", "");
      return;
    }
    try {
      const goesOn = job.step();
      entry.deadline.noteLeft(job.emittedMs, this.#clock.nowMs());
      if (!goesOn) this.#end(entry, "done", "");
      else if (canGoOn(entry)) this.#ready.push(entry);
    } catch (thrown) {
      this.#end(entry, "failed", messageOf(thrown));
    }
  }

  #end(
    entry: Entry,
    outcome: "done" | "cancelled" | "failed",
    message: string,
    hasEncoder = entry.job !== undefined,
  ): void {
    if (!this.#entries.delete(entry.id)) return;
    const synthesizedMs = entry.job?.synthesizedMs ?? 0;
    entry.job?.close();
    entry.job = undefined;
    remove(this.#ready, entry);
    remove(this.#waiting, entry);
    this.#options.reply(entry.id, { type: "ended", outcome, message, synthesizedMs });
    if (!hasEncoder) return;
    this.#countEncoder(entry.codec, -1);
    const next = this.#waiting.find((one) => this.#hasEncoder(one.codec));
    if (next === undefined) return;
    remove(this.#waiting, next);
    void this.#begin(next);
  }

  #hasEncoder(codec: string): boolean {
    return (this.#openEncoders.get(codec) ?? 0) < (MAX_OPEN_ENCODERS[codec] ?? Number.POSITIVE_INFINITY);
  }

  #countEncoder(codec: string, change: 1 | -1): void {
    this.#openEncoders.set(codec, (this.#openEncoders.get(codec) ?? 0) + change);
  }
}

function hasCredit(entry: Entry): boolean {
  return entry.unacknowledgedBytes < CREDIT_BYTES;
}

/** Its client reads, and it waits for nobody. */
function canGoOn(entry: Entry): boolean {
  return hasCredit(entry) && entry.job?.isWaiting === false;
}

function isCancelled(entry: Entry): boolean {
  return Atomics.load(entry.cancelled, 0) === 1;
}

function remove(list: Entry[], entry: Entry): void {
  const index = list.indexOf(entry);
  if (index >= 0) list.splice(index, 1);
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
