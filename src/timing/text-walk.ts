/**
 * Walks the characters that an upstream timed along the text that it was sent, so that every time gets a position in the
 * text. Upstreams leave characters out, add some, spell them otherwise, or begin again (the vendor's Flash v2.5 sends two
 * passes over one text); the walk finds its way back.
 */
import type { AlignmentEntry } from "./alignment-reader.ts";
import type { Span } from "./spans.ts";

/** Entries needed behind a difference before it is judged; fewer wait for the next chunk. */
const LOOKAHEAD = 12;
/** How far a difference may reach: entries and UTF-16 code units. */
const MAX_SKIPPED_ENTRIES = 128;
const MAX_SKIPPED_TEXT = 192;
/** Equal code units that end a difference; a larger difference needs more, or a stray "the " would end it. */
const ANCHOR = 4;
const MAX_ANCHOR = 12;
/** A difference no larger than this needs no more than this to end it: a lost or changed character. */
const NEAR_ANCHOR = 2;
/** Code units by which the text is found again behind a gap, the surer ones first, and as many as that takes. */
const GAP_PROBES = [24, 12, 6];
const MIN_GAP_PROBE = 3;
/** Nothing is missing between times that are no further apart. */
const NO_GAP_SECONDS = 0.02;
/** Code units by which a second pass over the same text is recognized. */
const RESTART_PROBE = 24;
const MIN_RESTART_PROBE = 8;

export class TextWalk {
  readonly #text: string;
  #at = 0;
  /** In a second pass over text already walked: where it is. null = not in one. */
  #repeatAt: number | null = null;
  #lastStart = 0;
  #lastEnd = 0;
  #waiting: AlignmentEntry[] = [];
  #hasExtra = false;
  /** Behind a gap the text may go on elsewhere. */
  #isUnsure = false;
  /** Text offset of every upstream character so far. */
  readonly #offsets: number[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  /** Text up to here is walked. */
  get at(): number {
    return this.#at;
  }

  /** Where in the text the upstream's n-th character of the response stands. */
  offsetOf(index: number): number {
    return this.#offsets[index] ?? (index < this.#offsets.length ? 0 : this.#at);
  }

  /** Whether the text goes on with these entries. */
  readsOn(entries: readonly AlignmentEntry[]): boolean {
    const probe = textOf(entries, RESTART_PROBE).trimStart();
    return probe !== "" && this.#text.startsWith(probe, afterSpace(this.#text, this.#at));
  }

  /** The spans that these settle, `exact` where the upstream timed just these characters, or white space. */
  push(entries: readonly AlignmentEntry[]): Span[] {
    if (this.#isUnsure && textOf(entries, MIN_GAP_PROBE).length >= MIN_GAP_PROBE && this.readsOn(entries))
      this.#isUnsure = false;
    if (this.#waiting.length === 0) this.#meetChunk(entries);
    return this.#walk([...this.#waiting, ...entries], false);
  }

  /** As `push`, where some text before it was spoken without any timing: about `missingChars` of it. */
  pushBehindGap(entries: readonly AlignmentEntry[], missingChars: number): Span[] {
    const spans = this.#walk(this.#waiting, true);
    this.#meetChunk(entries);
    if (this.#repeatAt === null) this.#isUnsure = !this.#crossGap(entries, missingChars, spans);
    return [...spans, ...this.#walk(entries, false)];
  }

  /** Nothing follows: judges what waited. */
  finish(): Span[] {
    return this.#walk(this.#waiting, true);
  }

  #walk(entries: readonly AlignmentEntry[], isLast: boolean): Span[] {
    const spans: Span[] = [];
    this.#waiting = [];
    let i = 0;
    while (i < entries.length) {
      const entry = entries[i];
      if (entry === undefined || this.#takes(entry, spans)) i += 1;
      else if (!isLast && entries.length - i < LOOKAHEAD) {
        this.#waiting = entries.slice(i);
        return spans;
      } else i += this.#crossDifference(entries.slice(i, i + MAX_SKIPPED_ENTRIES), spans);
    }
    return spans;
  }

  /** A chunk whose clock goes back and whose characters are not the next ones is a second pass. */
  #meetChunk(entries: readonly AlignmentEntry[]): void {
    const first = entries.find((entry) => !Number.isNaN(entry.startSeconds));
    const goesBack = first !== undefined && first.startSeconds < this.#lastStart;
    const probe = textOf(entries, RESTART_PROBE).trimStart();
    if (this.#at === 0 || probe === "") return;
    const isNext = this.readsOn(entries);
    if (isNext && !goesBack) this.#repeatAt = null;
    else if (!isNext && goesBack) this.#repeatAt = this.#findEarlier(probe, ANCHOR) ?? this.#repeatAt;
  }

  /** The entry stands at the cursor, or is of no consequence. */
  #takes(entry: AlignmentEntry, spans: Span[]): boolean {
    if (entry.text === "") {
      const before = entry.repeats === undefined ? undefined : this.#offsets.at(-entry.repeats);
      this.#note(entry, before ?? this.#at);
      return true;
    }
    if (this.#repeatAt !== null && this.#takesRepeated(entry, this.#repeatAt)) return true;
    const skipped = this.#matchAfterSpace(entry.text);
    if (skipped >= 0) {
      if (skipped > 0) this.#place(this.#at + skipped, null, true, spans);
      this.#note(entry, this.#at);
      this.#place(
        this.#at + entry.text.length,
        entry,
        entry.isSure && !this.#hasExtra && !this.#isUnsure,
        spans,
      );
      this.#hasExtra = false;
      return true;
    }
    // White space that is not in the text (normalized text begins and ends with some) says nothing.
    if (entry.text.trim() !== "" && this.#at < this.#text.length) return false;
    this.#note(entry, this.#at);
    return true;
  }

  #takesRepeated(entry: AlignmentEntry, at: number): boolean {
    const end = at + entry.text.length;
    const isHere = end <= this.#at && this.#text.startsWith(entry.text, at);
    if (!isHere && entry.text.trim() !== "") {
      this.#repeatAt = null;
      return false;
    }
    this.#note(entry, at);
    if (isHere) this.#repeatAt = end === this.#at ? null : end;
    return true;
  }

  /** White space to skip before `characters` stand at the cursor; -1 = they don't. Any white space equals any other. */
  #matchAfterSpace(characters: string): number {
    if (this.#text.startsWith(characters, this.#at)) return 0;
    const isSpace = characters.length === 1 && characters.trim() === "";
    if (isSpace && this.#at < this.#text.length && (this.#text[this.#at] ?? "x").trim() === "") return 0;
    const next = afterSpace(this.#text, this.#at);
    return next > this.#at && !isSpace && this.#text.startsWith(characters, next) ? next - this.#at : -1;
  }

  /**
   * Goes on where the text reads like these entries, as near as may be to where they are expected. Returns whether that is
   * sure: it reads so nowhere else near, or nothing is missing.
   */
  #crossGap(entries: readonly AlignmentEntry[], missingChars: number, spans: Span[]): boolean {
    const isNone = missingChars === 0 || this.#goesOn(entries);
    // What was not timed is the rest of the audio before: the same words further on are others.
    if (isNone && this.readsOn(entries)) return true;
    const expected = this.#at + missingChars;
    const until = expected + missingChars + MAX_SKIPPED_TEXT;
    for (const length of GAP_PROBES) {
      const probe = textOf(entries, length).trimEnd();
      // Too little to look for: where it is next in the text, and nowhere else near, it is most likely right.
      if (probe.trim().length < MIN_GAP_PROBE) {
        const again = this.#text.indexOf(probe, afterSpace(this.#text, this.#at) + 1);
        return isNone || (this.readsOn(entries) && (again < 0 || again > until));
      }
      let [best, count] = [-1, 0];
      for (let at = this.#text.indexOf(probe, this.#at); at >= 0 && at <= until; ) {
        if (best < 0 || Math.abs(at - expected) < Math.abs(best - expected)) best = at;
        count += 1;
        at = this.#text.indexOf(probe, at + 1);
      }
      if (best < 0) continue;
      if (best > this.#at) this.#place(best, null, false, spans);
      return count === 1 || isNone;
    }
    return isNone;
  }

  /** The entries and the text differ here. Returns how many entries are dealt with. */
  #crossDifference(entries: readonly AlignmentEntry[], spans: Span[]): number {
    const forward = findAnchor(entries, this.#text.slice(this.#at, this.#at + MAX_SKIPPED_TEXT));
    const isSmall = forward !== null && forward.skippedEntries + forward.skippedText <= ANCHOR;
    const probe = textOf(entries, RESTART_PROBE);
    const earlier = isSmall ? null : this.#findEarlier(probe, MIN_RESTART_PROBE);
    if (earlier !== null && earlier + (entries[0]?.text.length ?? 0) <= this.#at) {
      this.#repeatAt = earlier;
      return 0;
    }
    // An entry of several characters may agree in the first ones only: it goes too, or the walk would stand still.
    const isStuck = forward !== null && forward.skippedEntries === 0 && forward.skippedText === 0;
    const count = isStuck ? 1 : (forward?.skippedEntries ?? entries.length);
    const skipped = entries.slice(0, count);
    for (const entry of skipped) this.#note(entry, this.#at);
    this.#hasExtra = true;
    if (forward !== null && forward.skippedText > 0) {
      const first = skipped[0]?.startSeconds ?? Number.NaN;
      const times = { startSeconds: first, endSeconds: skipped.at(-1)?.endSeconds ?? Number.NaN };
      this.#place(this.#at + forward.skippedText, times, false, spans);
      this.#hasExtra = false;
    }
    return count;
  }

  /** Where before the cursor the text reads like `probe`. */
  #findEarlier(probe: string, minLength: number): number | null {
    const start = afterSpace(this.#text, 0);
    if (probe.length >= 2 && start < this.#at && this.#text.startsWith(probe, start)) return start;
    if (probe.length < minLength || this.#at === 0) return null;
    const found = this.#text.lastIndexOf(probe, this.#at - 1);
    return found >= 0 ? found : null;
  }

  /** Whether these begin when those before them ended. */
  #goesOn(entries: readonly AlignmentEntry[]): boolean {
    const first = entries.find((entry) => !Number.isNaN(entry.startSeconds))?.startSeconds ?? Number.NaN;
    return Math.abs(first - this.#lastEnd) <= NO_GAP_SECONDS;
  }

  #note(entry: AlignmentEntry, at: number): void {
    for (let i = 0; i < entry.count; i++) this.#offsets.push(at);
    if (!Number.isNaN(entry.startSeconds)) this.#lastStart = entry.startSeconds;
    if (!Number.isNaN(entry.endSeconds)) this.#lastEnd = entry.endSeconds;
  }

  #place(
    end: number,
    times: Pick<Span, "startSeconds" | "endSeconds"> | null,
    isExact: boolean,
    spans: Span[],
  ): void {
    const { startSeconds, endSeconds } = times ?? { startSeconds: Number.NaN, endSeconds: Number.NaN };
    spans.push({ end, startSeconds, endSeconds, timing: isExact ? "exact" : "estimated" });
    this.#at = end;
  }
}

interface Anchor {
  readonly skippedEntries: number;
  readonly skippedText: number;
}

/** The nearest place where entries and text agree again for a few characters. */
function findAnchor(entries: readonly AlignmentEntry[], text: string): Anchor | null {
  const said = textOf(entries, Number.POSITIVE_INFINITY);
  let best: Anchor | null = null;
  let offset = 0;
  for (const [skippedEntries, entry] of entries.entries()) {
    const bestCost = best === null ? Number.POSITIVE_INFINITY : best.skippedEntries + best.skippedText;
    if (skippedEntries >= bestCost) break;
    const skippedText = findAgreement(said.slice(offset, offset + MAX_ANCHOR), text, skippedEntries);
    if (skippedText >= 0 && skippedEntries + skippedText < bestCost) best = { skippedEntries, skippedText };
    offset += entry.text.length;
  }
  return best;
}

function findAgreement(said: string, text: string, skippedEntries: number): number {
  const head = said.slice(0, NEAR_ANCHOR);
  if (head === "") return -1;
  for (let at = text.indexOf(head); at >= 0; at = text.indexOf(head, at + 1)) {
    const cost = skippedEntries + at;
    const needed = cost <= NEAR_ANCHOR ? NEAR_ANCHOR : Math.min(ANCHOR + (cost >> 3), MAX_ANCHOR);
    if (said.length >= needed && text.startsWith(said.slice(0, needed), at)) return at;
    // The end of the text has no more to offer: there all that is left has to agree.
    const tail = text.slice(at);
    const isEnd = tail.length < needed && text.length < MAX_SKIPPED_TEXT;
    if (isEnd && said.startsWith(tail) && said.slice(tail.length).trim() === "") return at;
  }
  return -1;
}

function textOf(entries: readonly AlignmentEntry[], maxLength: number): string {
  let text = "";
  for (const entry of entries) {
    if (text.length >= maxLength) break;
    text += entry.text;
  }
  return text;
}

function afterSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && (text[at] ?? "x").trim() === "") at += 1;
  return at;
}
