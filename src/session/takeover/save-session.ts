/** What a session would say, and what was heard of it: see saved-session.ts. */
import { msOfTicks, TICKS_PER_MS } from "../../timing/ticks.ts";
import type { Marks } from "../client-marks.ts";
import type { Participant } from "../connections/participant.ts";
import type { OutputRouter } from "../output/output-router.ts";
import type { PlaybackQueue } from "../playback/playback-queue.ts";
import type { SpokenWord, Transcript } from "../playback/transcript.ts";
import type { Utterance } from "../playback/utterance.ts";
import { heardFactsOf, heardToWord } from "../receipts.ts";
import type {
  HeardUpTo,
  SavedConnection,
  SavedPlaces,
  SavedTexts,
  SavedUtterance,
  SpeechReader,
} from "../saved-session.ts";

export interface SessionParts {
  readonly queue: PlaybackQueue;
  readonly output: OutputRouter;
  readonly marks: Marks;
  readonly playheadTicks: () => number;
}

/** Words that ended so long before what was sent are of no use to anybody who comes back. */
const REACH_TICKS = 1000 * TICKS_PER_MS;

/** What was read of an utterance. */
interface ReadPlaces {
  readonly transcript: Transcript;
  readonly startTicks: number | null;
  /** The last word, as it was; null: none. */
  readonly word: SpokenWord | null;
  readonly wordEndTicks: number;
  /** The last place. */
  readonly last: HeardUpTo;
  readonly isRendered: boolean;
}

export class SessionReader implements SpeechReader {
  readonly #parts: SessionParts;
  readonly #read = new Map<Utterance, ReadPlaces>();

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  readAll(): SavedTexts {
    this.#read.clear();
    const sentTicks = this.#sentTicks;
    return {
      sentMs: msOfTicks(sentTicks),
      utterances: this.#parts.queue.notOver
        .filter(({ hasFailed }) => !hasFailed)
        .flatMap((utterance) => this.#save(utterance, sentTicks)),
    };
  }

  readPlaces(): SavedPlaces[] {
    const sentTicks = this.#sentTicks;
    const { notOver } = this.#parts.queue;
    const changed: SavedPlaces[] = [];
    for (const utterance of notOver) {
      const { id, startTicks } = utterance;
      if (startTicks === null || utterance.hasFailed || utterance.isSound) continue;
      const before = this.#read.get(utterance);
      if (before !== undefined && isSame(utterance, before, sentTicks)) continue;
      const heard = this.#newPlaces(utterance, sentTicks, before);
      if (heard.length > 0) changed.push({ id, startMs: msOfTicks(startTicks), heard });
    }
    if (this.#read.size > notOver.length) this.#forgetPlayed(notOver);
    return changed;
  }

  #forgetPlayed(notOver: readonly Utterance[]): void {
    for (const utterance of this.#read.keys()) if (!notOver.includes(utterance)) this.#read.delete(utterance);
  }

  get #sentTicks(): number {
    const { output, playheadTicks } = this.#parts;
    return sentTicksOf({ output, playheadTicks: playheadTicks() });
  }

  #save(utterance: Utterance, sentTicks: number): SavedUtterance[] {
    const { template, resumption, startTicks } = utterance;
    // A sound is larger than all that is told of a session: it is lost with its node.
    if (template.kind === "sound") return [];
    const saved = {
      id: utterance.id,
      startMs: startTicks === null ? null : msOfTicks(startTicks),
      heard: this.#newPlaces(utterance, sentTicks, undefined),
      command: commandOf(template),
      text: utterance.text,
      half: utterance.input.half,
      leftOut: utterance.input.leftOut,
      isEnded: utterance.input.isEnded,
      subject: utterance.subject ?? null,
      holder: utterance.holder,
      heardMs: msOfTicks(resumption?.heardTicks ?? 0),
      marks: this.#parts.marks.waitingOn(utterance),
    };
    return [saved];
  }

  /** How much of the text is heard when how much of the audio is, at the end of each word: all of that, or what is new. */
  #newPlaces(utterance: Utterance, sentTicks: number, before: ReadPlaces | undefined): HeardUpTo[] {
    const { transcript, startTicks } = utterance;
    const { words } = transcript;
    const from = before === undefined ? null : nextWord(utterance, before);
    const places: HeardUpTo[] = [];
    let last = before?.last;
    if (from === null || last === undefined) {
      last = { end: utterance.spoken.clientHeardEnd(utterance.resumption?.spokenStart ?? 0), ms: 0 };
      places.push(last);
    }
    const endTicks = utterance.state.kind === "rendered" ? utterance.endTicks : null;
    if (startTicks !== null) {
      const facts = heardFactsOf(utterance, this.#parts.queue.comingOf(utterance));
      for (const { endTicks: ticks } of toRead(words, { from, sentTicks })) {
        const end = facts.clientEnd(heardToWord(facts, ticks));
        if (end <= last.end) continue;
        last = { end, ms: msOfTicks(ticks) };
        places.push(last);
      }
      if (endTicks !== null && (places.length > 0 || before?.isRendered !== true)) {
        last = { end: utterance.text.length, ms: msOfTicks(endTicks) };
        places.push(last);
      }
    }
    const word = words.at(-1) ?? null;
    const wordEndTicks = word?.endTicks ?? 0;
    this.#read.set(utterance, {
      transcript,
      startTicks,
      word,
      wordEndTicks,
      last,
      isRendered: endTicks !== null,
    });
    return places;
  }
}

/** Words from there on, or, null, those within reach; where none is, it is estimated what was heard. */
function toRead(
  words: readonly SpokenWord[],
  { from, sentTicks }: { readonly from: number | null; readonly sentTicks: number },
): readonly Pick<SpokenWord, "endTicks">[] {
  if (isOutOfReach(words.at(-1), sentTicks)) return [{ endTicks: sentTicks }];
  if (from !== null) return words.slice(from);
  const beforeReach = words.findLastIndex((word) => isOutOfReach(word, sentTicks));
  return words.slice(Math.max(0, beforeReach));
}

function isOutOfReach(word: SpokenWord | undefined, sentTicks: number): boolean {
  return word === undefined || word.endTicks <= sentTicks - REACH_TICKS;
}

/** Who plays as it is sent has been sent no more than this, whatever others were sent in one go. */
export function sentTicksOf({
  output,
  playheadTicks,
}: {
  readonly output: OutputRouter;
  readonly playheadTicks: number;
}): number {
  const { hasRealtime, minLeadMs, maxFrameMs } = output.demand;
  const { sentTicks } = output;
  // A frame that begins inside the lead is sent whole.
  return hasRealtime && Number.isFinite(minLeadMs)
    ? Math.min(sentTicks, playheadTicks + (minLeadMs + maxFrameMs) * TICKS_PER_MS)
    : sentTicks;
}

/** Most audio ends no word: nothing is new then. Behind the last word within reach it is estimated what was heard. */
function isSame(utterance: Utterance, before: ReadPlaces, sentTicks: number): boolean {
  const { transcript, state } = utterance;
  return (
    nextWord(utterance, before) === transcript.words.length &&
    !isOutOfReach(transcript.words.at(-1), sentTicks) &&
    before.isRendered === (state.kind === "rendered")
  );
}

/** Index of the first word that was not read; null: what was read holds no more. */
function nextWord(
  { transcript, startTicks }: Utterance,
  { word, wordEndTicks, last, ...before }: ReadPlaces,
): number | null {
  if (before.transcript !== transcript || before.startTicks !== startTicks) return null;
  const { words } = transcript;
  const at = word === null ? -1 : words.lastIndexOf(word);
  // It was void, or is forgotten, or its end has moved.
  if (word !== null && (at < 0 || word.endTicks !== wordEndTicks)) return null;
  // A word that comes late stands before what was estimated meanwhile.
  const next = words[at + 1];
  return next !== undefined && msOfTicks(next.endTicks) <= last.ms ? null : at + 1;
}

function commandOf(
  template: Exclude<Utterance["template"], { readonly kind: "sound" }>,
): SavedUtterance["command"] {
  switch (template.kind) {
    case "text":
      return { ...template.options, type: "speak", text: "" };
    case "tokens":
      return { ...template.options, type: "text", text: "" };
    case "dialogue":
      return template.command;
  }
}

export function saveConnection({
  id,
  returnToken,
  holder,
  openIds,
  currentId,
}: Participant): SavedConnection {
  return { token: returnToken, listenerId: id, holder, openIds: [...openIds], currentId };
}
