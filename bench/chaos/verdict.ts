/**
 * What became of one utterance, by what its listener got. docs/protocol.md promises that it is whole, or that the listener
 * is told: by `failed` with a code and what was heard, by a receipt, by a `gap`, or by the end of the connection.
 */
import type { Event } from "../../src/client/index.ts";
import type { Item } from "./hearing.ts";
import { type Span, wordsOf } from "./texts.ts";

export const FRAME_MS = 20;
/** The outcome of an utterance that its own caller interrupted. */
export const INTERRUPTED = "interrupted";
const BYTES_PER_MS = 8;
/** Audio before a splice that the splice may change. */
const SPLICE_MS = 100;

/** Its caller came back later than `grace-ms`: the text ended where the connection broke, and the rest is refused. */
const TEXT_REFUSALS: ReadonlySet<string> = new Set(["text_after_end", "utterance_over", "text_missing"]);

type DoneEvent = Extract<Event, { type: "utterance.done" }>;
type InterruptedEvent = Extract<Event, { type: "interrupted" }>;

/** What the client was told of an utterance in the end. */
export type End =
  | { readonly kind: "done"; readonly event: DoneEvent }
  /** The client's own code, as `connection_lost`, or the gateway's refusal. */
  | { readonly kind: "refused"; readonly code: string }
  | { readonly kind: "never" };

export interface Said {
  readonly utteranceId: string;
  readonly text: string;
  /** The service's own audio of the whole text; null: nothing equal to it is promised. */
  readonly truth: Uint8Array | null;
  /** Characters of the text that its own caller had sent when it interrupted it; null: it did not, and nobody else may. */
  readonly interruptedAt: number | null;
}

export interface Verdict {
  /** `whole`, `interrupted` (by its own caller), `gap`, or the code of its failure. */
  readonly outcome: string;
  readonly lostWords: number;
  readonly doubledWords: number;
  /** What was promised and did not come, in words; empty where all is well. */
  readonly shortfalls: readonly string[];
  readonly falseReceipts: readonly string[];
}

interface TimedWord extends Span {
  readonly startMs: number;
  readonly endMs: number;
}

/** What came on one timeline. */
class Timeline {
  readonly frames = new Map<number, Uint8Array>();
  words: TimedWord[] = [];
  /** Frames that a `gap` has told of. */
  readonly told = new Set<number>();

  isHeard({ startMs, endMs }: TimedWord): boolean {
    for (let frame = Math.floor(startMs / FRAME_MS); frame * FRAME_MS < endMs; frame += 1)
      if (!this.frames.has(frame)) return false;
    return true;
  }

  isTold({ startMs, endMs }: TimedWord): boolean {
    for (let frame = Math.floor(startMs / FRAME_MS); frame * FRAME_MS < endMs; frame += 1)
      if (this.told.has(frame)) return true;
    return false;
  }

  /** Audio between two positions; null where a frame is missing. */
  between(startMs: number, endMs: number): Buffer | null {
    const found: Uint8Array[] = [];
    for (let frame = Math.round(startMs / FRAME_MS); frame * FRAME_MS < endMs; frame += 1) {
      const bytes = this.frames.get(frame);
      if (bytes === undefined) return null;
      found.push(bytes);
    }
    return Buffer.concat(found);
  }
}

export function judge(items: readonly Item[], said: Said, end: End): Verdict {
  const account = new Account(said);
  for (const item of items) account.take(item);
  return account.close(end);
}

class Account {
  readonly #said: Said;
  readonly #shortfalls: string[] = [];
  readonly #falseReceipts: string[] = [];
  /** How often each word was heard whole, by its offset, on timelines and responses that are over. */
  readonly #heard = new Map<number, number>();
  readonly #told = new Set<number>();
  #timeline = new Timeline();
  #lastWordMs = 0;
  #timelines = 1;
  #startMs: number | null = null;
  /** Where the first other response begins. */
  #spliceMs: number | null = null;
  #receipt: InterruptedEvent | null = null;
  /** The code with which the rest of its text was refused. */
  #refusal: string | null = null;
  #nextMs = 0;

  constructor(said: Said) {
    this.#said = said;
  }

  take(item: Item): void {
    if (item.kind === "frame") this.#frame(item.atMs, item.bytes);
    else if (item.kind === "joined") this.#joined(item.gapMs);
    else this.#event(item.event);
  }

  close(end: End): Verdict {
    this.#settle(0, Number.POSITIVE_INFINITY);
    const words = wordsOf(this.#said.text);
    const counts = words.map(({ start }) => this.#heard.get(start) ?? 0);
    const missing = words.filter((word, index) => counts[index] === 0 && !this.#told.has(word.start));
    const outcome = this.#outcome(end, missing.length);
    return {
      outcome,
      lostWords: outcome === "whole" || outcome === "gap" ? missing.length : 0,
      doubledWords: counts.reduce((total, count) => total + Math.max(0, count - 1), 0),
      shortfalls: this.#shortfalls,
      falseReceipts: this.#falseReceipts,
    };
  }

  #frame(atMs: number, bytes: Uint8Array): void {
    const frame = Math.round(atMs / FRAME_MS);
    if (this.#timeline.frames.has(frame)) this.#shortfalls.push(`frame at ${atMs} ms came twice`);
    this.#timeline.frames.set(frame, bytes);
    this.#nextMs = atMs + FRAME_MS;
  }

  #joined(gapMs: number | null): void {
    if (gapMs !== null) {
      this.#gap(gapMs);
      return;
    }
    this.#settle(0, Number.POSITIVE_INFINITY);
    this.#timeline = new Timeline();
    this.#timelines += 1;
    this.#nextMs = 0;
  }

  #gap(ms: number): void {
    for (let atMs = this.#nextMs; atMs < this.#nextMs + ms; atMs += FRAME_MS)
      this.#timeline.told.add(Math.round(atMs / FRAME_MS));
    this.#nextMs += ms;
  }

  #event(event: Event): void {
    if (event.type === "gap") this.#gap(event.ms);
    if (event.type === "error" && TEXT_REFUSALS.has(event.code)) this.#refusal = event.code;
    if (!("utterance_id" in event) || event.utterance_id !== this.#said.utteranceId) return;
    if (event.type === "utterance.started") this.#startMs = event.start_ms;
    else if (event.type === "words")
      this.#timeline.words.push(
        ...event.words.map(({ start, end, start_ms: startMs, end_ms: endMs }) => ({
          start,
          end,
          startMs,
          endMs,
        })),
      );
    else if (event.type === "warning" && event.code === "speech_recovered" && event.start !== undefined) {
      this.#settle(event.start, event.at_ms);
      this.#spliceMs ??= event.at_ms;
    } else if (event.type === "utterance.resumed") this.#settle(event.start, event.start_ms);
    else if (event.type === "interrupted") this.#receipt = event;
  }

  /** Words from offset `start` on come again or not at all: those that were over by `endMs` count as heard. */
  #settle(start: number, endMs: number): void {
    const over = this.#timeline.words.filter((word) => word.start >= start);
    this.#timeline.words = this.#timeline.words.filter((word) => word.start < start);
    for (const word of over) {
      this.#lastWordMs = Math.max(this.#lastWordMs, word.endMs);
      if (word.endMs <= endMs + 1 && this.#timeline.isHeard(word))
        this.#heard.set(word.start, (this.#heard.get(word.start) ?? 0) + 1);
      else if (this.#timeline.isTold(word)) this.#told.add(word.start);
    }
  }

  #outcome(end: End, missing: number): string {
    if (end.kind === "never") {
      this.#shortfalls.push("no end came");
      return "never ended";
    }
    if (end.kind === "refused") return end.code;
    const { event } = end;
    if (event.outcome === "failed") {
      this.#checkClaim("failed", event.characters_spoken);
      const code = event.error?.code;
      if (code === undefined) this.#shortfalls.push("failed without a code");
      return code ?? "no code";
    }
    if (event.outcome === "interrupted") return this.#checkReceipt();
    if (event.outcome !== "done") {
      this.#shortfalls.push(`outcome ${event.outcome} that nobody asked for`);
      return event.outcome;
    }
    if (this.#refusal !== null) {
      this.#checkClaim("done", event.characters_spoken);
      return this.#refusal;
    }
    if (missing > 0) this.#shortfalls.push(`done, and ${missing} words did not come`);
    if (this.#timeline.told.size > 0) return "gap";
    this.#checkAudio(event);
    return "whole";
  }

  #checkAudio({ start_ms: startMs, end_ms: endMs }: DoneEvent): void {
    const fromMs = this.#timelines > 1 ? startMs : (this.#startMs ?? startMs);
    const audio = this.#timeline.between(fromMs, endMs);
    if (audio === null) {
      this.#shortfalls.push(`done at ${endMs} ms, and frames are missing`);
      return;
    }
    if (this.#said.truth === null || this.#timelines > 1) return;
    // What stands behind the last word is silence: where an answer breaks off there, nothing more is asked for.
    const keptMs = this.#spliceMs === null ? this.#lastWordMs : this.#spliceMs - SPLICE_MS;
    const length = Math.max(0, Math.floor((keptMs - fromMs) * BYTES_PER_MS));
    if (Buffer.compare(audio.subarray(0, length), this.#said.truth.subarray(0, length)) !== 0)
      this.#shortfalls.push("audio differs from the service's own");
  }

  /** What is called heard has come, and what came whole before a failure is called heard. */
  #checkClaim(what: string, end: number): void {
    for (const word of wordsOf(this.#said.text)) {
      const isHeard = this.#heard.has(word.start) || this.#told.has(word.start);
      if (word.end <= end && !isHeard) {
        this.#falseReceipts.push(`${what}: heard up to ${end}, and the word at ${word.start} did not come`);
        return;
      }
      if (word.end > end && isHeard && what === "failed") {
        this.#falseReceipts.push(`${what}: heard up to ${end}, and the word at ${word.start} came`);
        return;
      }
    }
  }

  #checkReceipt(): string {
    const { text, interruptedAt } = this.#said;
    if (interruptedAt === null) this.#shortfalls.push("interrupted, and its caller did not ask for it");
    const receipt = this.#receipt;
    if (receipt === null) {
      this.#shortfalls.push("interrupted without a receipt");
      return INTERRUPTED;
    }
    // A text that comes in tokens is cut before its rest has come.
    const accepted = receipt.heard.text + receipt.unheard_text;
    if (!text.startsWith(accepted) || accepted.length < (interruptedAt ?? text.length))
      this.#falseReceipts.push("the receipt's two texts are not the text");
    this.#checkClaim("receipt", receipt.heard.end);
    return INTERRUPTED;
  }
}
