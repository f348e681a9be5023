/** T1: says sentences through a gateway whose upstream has faults, and compares the times told with the truth. */
import type { Event } from "../../src/protocol/events.ts";
import type { Timing } from "../../src/protocol/vocabulary.ts";
import { TruthClient } from "./truth-client.ts";
import { type Placement, placeAudio } from "./truth-placement.ts";
import type { TrueResponse, TruthProxy } from "./truth-proxy.ts";
import { createDice, type Spoken, speak } from "./truth-texts.ts";

const RATE = 24_000;
/** Quieter than this (of 32768) is silence. */
const SILENCE_LEVEL = 150;
const SAMPLE_MS = 1000 / RATE;
/** Times are told to 0.001 ms. */
const ROUNDING_MS = 0.002;
/** By name: the value of x-voicewire-fault. */
export const TIMING_FAULTS: Readonly<Record<string, string>> = {
  none: "",
  overlapping: "alignment_overlap characters=3",
  restarted: "alignment_restart",
  "scaled 1.1": "alignment_scaled factor=1.1",
  "scaled 0.9": "alignment_scaled factor=0.9",
  late: "alignment_late chunks=2",
  long: "alignment_long seconds=1",
  ragged: "alignment_ragged drop=1",
  holed: "alignment_nan every=3",
  "missing, every 2nd": "alignment_missing every=2",
  "missing, all": "alignment_missing",
};
/** Share of the utterances without a fault. */
const SOUND_SHARE = 0.3;

export interface TimingError {
  readonly kind: string;
  readonly label: Timing;
  readonly what: "word" | "character";
  /** Told minus true, ms. */
  readonly errorMs: number;
  readonly text: string;
}

export interface TimingReport {
  readonly utterances: number;
  readonly errors: readonly TimingError[];
  /** Times that go back, over whole sessions; and the longest step, ms. */
  readonly backward: number;
  readonly longestBackMs: number;
  /** Stretches between an utterance's start and end that no character covers; and the longest, ms. */
  readonly holes: number;
  readonly longestHoleMs: number;
  /** Places where the characters told are not the text. */
  readonly untold: number;
  /** Utterances whose audio was not found sample for sample, or that failed. */
  readonly broken: readonly string[];
  /** Words that the engine has no event for. */
  readonly withoutTruth: number;
}

export interface TimingPlan {
  readonly proxy: TruthProxy;
  /** ws://host:port */
  readonly gatewayUrl: string;
  readonly utterances: number;
  /** The first utterance has this seed, each other one more than the one before. Default 1. */
  readonly firstSeed?: number;
  /** Default burst: audio and times come as fast as they can. */
  readonly pace?: "burst" | "realtime";
  readonly sessions: number;
  /** Name of the fault that the requests with this seed are given. */
  readonly kindOf: (seed: number) => string;
}

/** The fault of the utterance with this seed: its name in TIMING_FAULTS. */
export function mixedKindOf(seed: number): string {
  const dice = createDice(seed);
  const kinds = Object.keys(TIMING_FAULTS).filter((kind) => kind !== "none");
  const isSound = dice() < SOUND_SHARE;
  return isSound ? "none" : (kinds[seed % kinds.length] ?? "none");
}

export async function measureTiming(plan: TimingPlan): Promise<TimingReport> {
  const report = new Gathered();
  const perSession = Math.ceil(plan.utterances / plan.sessions);
  const { firstSeed = 1, pace = "burst" } = plan;
  await Promise.all(
    Array.from({ length: plan.sessions }, (_, session) => {
      const before = session * perSession;
      const count = Math.min(perSession, plan.utterances - before);
      const name = `t1-${pace}-${session}`;
      return runSession(plan, { name, pace, first: firstSeed + before, count }, report);
    }),
  );
  return report;
}

class Gathered implements TimingReport {
  utterances = 0;
  errors: TimingError[] = [];
  backward = 0;
  longestBackMs = 0;
  holes = 0;
  longestHoleMs = 0;
  untold = 0;
  broken: string[] = [];
  withoutTruth = 0;

  back(ms: number): void {
    this.backward += 1;
    this.longestBackMs = Math.max(this.longestBackMs, ms);
  }

  hole(ms: number): void {
    this.holes += 1;
    this.longestHoleMs = Math.max(this.longestHoleMs, ms);
  }
}

/** Seeds are `first` up to `first + count`, one an utterance. */
async function runSession(
  plan: TimingPlan,
  session: {
    readonly name: string;
    readonly pace: string;
    readonly first: number;
    readonly count: number;
  },
  report: Gathered,
): Promise<void> {
  const query = `format=pcm_24000&pace=${session.pace}&events=characters,words`;
  await using client = await TruthClient.connect(`${plan.gatewayUrl}/live/${session.name}?${query}`);
  const startMs = (await client.next("hello")).audio?.start_ms ?? 0;
  let searchFrom = 0;
  for (let seed = session.first; seed < session.first + session.count; seed++) {
    const dice = createDice(seed * 7919);
    const spoken = speak(dice, dice() < 0.6 ? 1 : 3);
    const id = `u${seed}`;
    say(client, spoken, { seed, id, isStream: dice() < 0.5, dice });
    const done = await client.next("utterance.done", (event) => event.utterance_id === id);
    report.utterances += 1;
    if (done.outcome !== "done") {
      report.broken.push(`${id}: ${done.error?.message ?? done.outcome}`);
      continue;
    }
    const kind = plan.kindOf(seed);
    const responses = plan.proxy.take(seed);
    const told = toldOf(client.events, id);
    const { audio } = client;
    checkCover(told, { text: spoken.text, responses, audio, startMs }, report);
    searchFrom = compare({ kind, told, spoken, responses, audio, startMs, searchFrom, id }, report);
  }
  countBackward(client.events, report);
}

function say(
  client: TruthClient,
  spoken: Spoken,
  how: {
    readonly seed: number;
    readonly id: string;
    readonly isStream: boolean;
    readonly dice: () => number;
  },
): void {
  const { seed, id } = how;
  const options = { utterance_id: id, seed, language_code: spoken.language };
  if (!how.isStream) {
    client.send({ type: "speak", text: spoken.text, ...options });
    return;
  }
  let at = 0;
  while (at < spoken.text.length) {
    const end = at + 1 + Math.floor(how.dice() * 8);
    client.send({
      type: "text",
      text: spoken.text.slice(at, end),
      ...(at === 0 ? options : { utterance_id: id }),
    });
    at = end;
  }
  client.send({ type: "end", utterance_id: id });
}

interface ToldTime {
  readonly offset: number;
  readonly endOffset: number;
  readonly text: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly label: Timing;
}

interface Told {
  readonly words: readonly ToldTime[];
  readonly characters: readonly ToldTime[];
  readonly startMs: number;
  readonly endMs: number;
}

function toldOf(events: readonly Event[], id: string): Told {
  const words: ToldTime[] = [];
  const characters: ToldTime[] = [];
  let [startMs, endMs] = [0, 0];
  for (const event of events) {
    if (!("utterance_id" in event) || event.utterance_id !== id) continue;
    if (event.type === "utterance.started") startMs = event.start_ms;
    else if (event.type === "utterance.done") endMs = event.end_ms;
    else if (event.type === "words") {
      for (const word of event.words) {
        const { text, start: offset, end: endOffset } = word;
        words.push({
          offset,
          endOffset,
          text,
          startMs: word.start_ms,
          endMs: word.end_ms,
          label: event.timing,
        });
      }
    } else if (event.type === "characters") {
      let offset = event.start;
      for (const [i, text] of event.characters.entries()) {
        const endOffset = offset + text.length;
        const [start = Number.NaN, end = Number.NaN] = [event.start_ms[i], event.end_ms[i]];
        characters.push({ offset, endOffset, text, startMs: start, endMs: end, label: event.timing });
        offset = endOffset;
      }
    }
  }
  return { words, characters, startMs, endMs };
}

/**
 * Characters have to be the text, and their times to tile the utterance from its start to its end. What the service
 * itself leaves open between two characters is no fault of the gateway's, and a pause between two pieces is no letter.
 */
function checkCover(
  told: Told,
  really: {
    readonly text: string;
    readonly responses: readonly TrueResponse[];
    readonly audio: Buffer;
    readonly startMs: number;
  },
  report: Gathered,
): void {
  const openMs = openOf(really);
  let offset = 0;
  let atMs = told.startMs;
  const meet = (nextMs: number): void => {
    // The service, too, hears some breath before a first letter.
    const coveredMs = nextMs - (openMs.get(offset) ?? 0);
    const holeMs = coveredMs - atMs;
    if (holeMs <= SAMPLE_MS + ROUNDING_MS) return;
    // A pause between two segments is nobody's time: what counts is the sound that no character covers.
    const soundMs = soundBetweenMs(really.audio, atMs - really.startMs, coveredMs - really.startMs);
    if (soundMs > 0) report.hole(Math.min(holeMs, soundMs));
  };
  for (const character of told.characters) {
    if (character.offset !== offset) report.untold += 1;
    meet(character.startMs);
    offset = character.endOffset;
    atMs = character.endMs;
  }
  if (offset !== really.text.length) report.untold += 1;
  meet(told.endMs);
}

/** How long there is sound: from the first sample that is not silent to the last, ms; 0: all are. 16-bit PCM; rounding is not looked at. */
function soundBetweenMs(audio: Buffer, fromMs: number, toMs: number): number {
  const from = Math.max(0, Math.ceil((fromMs + ROUNDING_MS) / SAMPLE_MS));
  const to = Math.min(Math.floor((toMs - ROUNDING_MS) / SAMPLE_MS), Math.floor(audio.length / 2));
  const isSound = (sample: number): boolean => Math.abs(audio.readInt16LE(sample * 2)) > SILENCE_LEVEL;
  let first = from;
  while (first < to && !isSound(first)) first += 1;
  let end = to;
  while (end > first && !isSound(end - 1)) end -= 1;
  return (end - first) * SAMPLE_MS;
}

/** What the service leaves open before a character, by its offset in the text. */
function openOf(really: {
  readonly text: string;
  readonly responses: readonly TrueResponse[];
}): Map<number, number> {
  const openMs = new Map<number, number>();
  let textFrom = 0;
  for (const response of really.responses) {
    const textStart = really.text.indexOf(response.text, textFrom);
    textFrom = textStart + response.text.length;
    let endMs = 0;
    for (const character of response.characters) {
      openMs.set(textStart + character.offset, Math.max(0, character.startMs - endMs));
      endMs = character.endMs;
    }
  }
  return openMs;
}

interface Comparison {
  readonly id: string;
  readonly kind: string;
  readonly told: Told;
  readonly spoken: Spoken;
  readonly responses: readonly TrueResponse[];
  readonly audio: Buffer;
  /** Of the audio's first sample. */
  readonly startMs: number;
  readonly searchFrom: number;
}

/** Returns where the search for the next utterance begins. */
function compare(of: Comparison, report: Gathered): number {
  let searchFrom = of.searchFrom;
  let textFrom = 0;
  for (const response of of.responses) {
    const textStart = of.spoken.text.indexOf(response.text, textFrom);
    if (textStart < 0 || response.format !== "pcm_24000") {
      report.broken.push(`${of.id}: asked for something else than its text in pcm_24000`);
      return searchFrom;
    }
    textFrom = textStart + response.text.length;
    const placement = placeAudio(of.audio, response.audio, searchFrom);
    if (placement === null || !placement.isWhole) {
      report.broken.push(`${of.id}: its audio was not found sample for sample`);
      continue;
    }
    searchFrom = placement.origin + placement.lastSound;
    const place: Place = {
      placement,
      originMs: of.startMs + placement.origin * SAMPLE_MS,
      textStart,
      response,
    };
    compareWords(of, place, report);
    compareCharacters(of, place, report);
  }
  return searchFrom;
}

interface Place {
  readonly placement: Placement;
  readonly originMs: number;
  readonly textStart: number;
  readonly response: TrueResponse;
}

function compareWords(of: Comparison, place: Place, report: Gathered): void {
  const { textStart, response } = place;
  for (const word of of.told.words) {
    if (word.offset < textStart || word.offset >= textStart + response.text.length) continue;
    const event = response.words.find(
      ({ offset }) => textStart + offset >= word.offset && textStart + offset < word.endOffset,
    );
    if (event === undefined) {
      report.withoutTruth += 1;
      continue;
    }
    const errorMs = errorOf(word.startMs, place, event.startMs);
    report.errors.push({ kind: of.kind, label: word.label, what: "word", errorMs, text: word.text });
  }
}

/** Letters only: where in a silence a space or a stop ends is for nobody to know. */
function compareCharacters(of: Comparison, place: Place, report: Gathered): void {
  const { textStart, response } = place;
  const trueOf = new Map(response.characters.map((one) => [textStart + one.offset, one]));
  for (const character of of.told.characters) {
    const truth = trueOf.get(character.offset);
    if (truth === undefined || !/[\p{L}\p{N}]/u.test(character.text)) continue;
    const errorMs = errorOf(character.startMs, place, truth.startMs);
    report.errors.push({
      kind: of.kind,
      label: character.label,
      what: "character",
      errorMs,
      text: character.text,
    });
  }
}

/**
 * How far what was told is from the truth. A time in the silence before the first sound or behind the last was moved
 * with what is left of that silence, of which nobody can tell which part it is.
 */
function errorOf(toldMs: number, { placement, originMs }: Place, trueMs: number): number {
  const { from, to, firstSound, lastSound } = placement;
  const [firstMs, lastMs] = [firstSound * SAMPLE_MS, lastSound * SAMPLE_MS];
  const isBefore = trueMs < firstMs;
  const isBehind = trueMs > lastMs;
  const low = originMs + (isBefore ? Math.min(from * SAMPLE_MS, trueMs) : isBehind ? lastMs : trueMs);
  const high = originMs + (isBefore ? firstMs : isBehind ? Math.max(to * SAMPLE_MS, trueMs) : trueMs);
  return toldMs < low ? toldMs - low : toldMs > high ? toldMs - high : 0;
}

function countBackward(events: readonly Event[], report: Gathered): void {
  const last = { words: 0, characters: 0 };
  const step = (what: keyof typeof last, startMs: number, endMs: number): void => {
    const backMs = Math.max(last[what] - startMs, startMs - endMs);
    if (!(backMs <= ROUNDING_MS)) report.back(backMs);
    last[what] = endMs;
  };
  for (const event of events) {
    if (event.type === "words")
      for (const { start_ms, end_ms } of event.words) step("words", start_ms, end_ms);
    else if (event.type === "characters") {
      for (const [i, start] of event.start_ms.entries())
        step("characters", start, event.end_ms[i] ?? Number.NaN);
    }
  }
}
