/**
 * Which cues are settled: a cue is emitted ahead of its sound, and an interruption may still cut it. Events in, cues out
 * that nothing changes any more, in order, and none over another: the last one of an utterance may stay beyond its speech, and
 * gives way to the next.
 */
import { wordPlaces } from "./captions.ts";
import type { CueEvent, Event } from "./events.ts";

/** Cues that wait to be settled; the oldest goes as it is. */
const MAX_OPEN = 512;

export class FinalCues {
  #open: { cue: CueEvent; isFinal: boolean }[] = [];
  /** End of what was given out last. */
  #lastEndMs = Number.NEGATIVE_INFINITY;

  /** `playheadMs`: what is before it has been played. Returns the cues that are settled by it. */
  push(event: Event, playheadMs: number): CueEvent[] {
    if (event.type === "cue") this.#add(event);
    else if (event.type === "interrupted" && event.next_ms !== null) {
      this.#cut(event.utterance_id, event.at_ms);
    } else if (event.type === "utterance.done") this.#settle(event.utterance_id);
    return this.#giveOut(this.#take((cue) => cue.end_ms <= playheadMs));
  }

  /** Cues that may still be cut. */
  get open(): CueEvent[] {
    return behindOneAnother(
      this.#open.map(({ cue }) => cue),
      this.#lastEndMs,
    );
  }

  /** Nothing follows: all that is left, as far as it was played. */
  flush(playedMs = Number.POSITIVE_INFINITY): CueEvent[] {
    const played = this.#take(() => true).filter((cue) => cue.start_ms < playedMs);
    return this.#giveOut(played.map((cue) => (cue.end_ms > playedMs ? cutCue(cue, playedMs) : cue)));
  }

  /** Those that begin before `ms`: what may still come for them does not count. */
  takeBefore(ms: number): CueEvent[] {
    return this.#giveOut(this.#take((cue) => cue.start_ms < ms));
  }

  #add(cue: CueEvent): void {
    let index = this.#open.length;
    while (index > 0 && (this.#open[index - 1]?.cue.start_ms ?? 0) > cue.start_ms) index -= 1;
    const before = this.#open[index - 1];
    if (before !== undefined && before.cue.start_ms < cue.start_ms && before.cue.end_ms > cue.start_ms)
      before.cue = { ...before.cue, end_ms: cue.start_ms };
    this.#open.splice(index, 0, { cue, isFinal: false });
    const first = this.#open[0];
    if (this.#open.length > MAX_OPEN && first !== undefined) first.isFinal = true;
  }

  /** All behind the cut is not said, or is said and emitted again; the cue that it falls into ends there, with its words. */
  #cut(utteranceId: string, atMs: number): void {
    this.#open = this.#open
      .filter(({ cue }) => cue.start_ms < atMs)
      .map(({ cue, isFinal }) =>
        cue.utterance_id === utteranceId && cue.end_ms > atMs
          ? { cue: cutCue(cue, atMs), isFinal: true }
          : { cue, isFinal },
      );
  }

  #settle(utteranceId: string): void {
    for (const open of this.#open) if (open.cue.utterance_id === utteranceId) open.isFinal = true;
  }

  #take(isOver: (cue: CueEvent) => boolean): CueEvent[] {
    const behind = this.#open.findIndex(({ cue, isFinal }) => !isFinal && !isOver(cue));
    return this.#open.splice(0, behind < 0 ? this.#open.length : behind).map(({ cue }) => cue);
  }

  #giveOut(cues: readonly CueEvent[]): CueEvent[] {
    const given = behindOneAnother(cues, this.#lastEndMs);
    this.#lastEndMs = given.at(-1)?.end_ms ?? this.#lastEndMs;
    return given;
  }
}

/** What was given out stays as it is: one that began before the end of the one before comes so much later. */
function behindOneAnother(cues: readonly CueEvent[], lastEndMs: number): CueEvent[] {
  let endMs = lastEndMs;
  return cues.map((cue) => {
    const lateMs = Math.max(0, endMs - cue.start_ms);
    endMs = cue.end_ms + lateMs;
    return lateMs === 0 ? cue : { ...cue, start_ms: cue.start_ms + lateMs, end_ms: endMs };
  });
}

/** As far as it was played up to `atMs`, behind its start: with the words that had begun. */
export function cutCue(cue: CueEvent, atMs: number): CueEvent {
  const lines = cue.lines.flatMap((line) => {
    const count = line.words.findIndex((word) => word.start_ms >= atMs);
    if (count < 0) return [line];
    if (count === 0) return [];
    const behind = wordPlaces(line.text, line.words)[count] ?? line.text.length;
    return [{ text: line.text.slice(0, behind).trimEnd(), words: line.words.slice(0, count) }];
  });
  const end = lines.at(-1)?.words.at(-1)?.end ?? cue.end;
  return { ...cue, end_ms: Math.min(cue.end_ms, atMs), end, lines: lines.length === 0 ? cue.lines : lines };
}
