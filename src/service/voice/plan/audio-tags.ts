/** What a voice does at an audio tag such as `[laughs]`, and how it speaks after one such as `[whispers]`. */
import type { BreathName } from "../audio/breath.ts";

/** How a voice speaks, against how it usually does. */
export interface VoiceManner {
  readonly rate?: number;
  /** Added to the engine's pitch of 0-100: about so many percent. */
  readonly pitch?: number;
  readonly range?: number;
  readonly volume?: number;
  readonly isWhispered?: boolean;
}

/** At least one of the first three. */
export interface Direction {
  readonly breath?: BreathName | undefined;
  /** Until another one, or the end of the paragraph. */
  readonly manner?: VoiceManner | undefined;
  readonly pauseMs?: number | undefined;
  /** Whether each word of the tag changes something: not so in `[laughs harder]`. */
  readonly isWhole: boolean;
}

/** Beginnings of English words that ask for it. */
type Row<T> = readonly [beginnings: readonly string[], directed: T];

const BREATHS: readonly Row<BreathName>[] = [
  [["giggl"], "giggle"],
  [["chuckl"], "chuckle"],
  [["laugh", "cackl"], "laugh"],
  [["sigh"], "sigh"],
  [["gasp"], "gasp"],
  [["inhal"], "inhale"],
  [["exhal", "breath", "pant", "wheez"], "exhale"],
  [["cough"], "cough"],
  [["throat", "clear"], "throat"],
  [["snort"], "snort"],
  [["sniff"], "sniff"],
  [["sob", "cries", "cry", "weep"], "sob"],
  [["yawn"], "yawn"],
  [["gulp", "swallow"], "gulp"],
];

const MANNERS: readonly Row<VoiceManner>[] = [
  [["whisper"], { isWhispered: true, rate: 0.92 }],
  [["quiet", "soft", "gentl", "hush"], { volume: 0.5, range: 0.8, rate: 0.95 }],
  [["shout", "yell", "scream", "loud"], { volume: 1.5, pitch: 10, range: 1.3 }],
  [["rush", "fast", "quick", "hurr"], { rate: 1.3 }],
  [["slow", "drawn", "drawl"], { rate: 0.72 }],
  [["excit", "enthusias", "amaz", "delight", "happ", "cheer", "joy"], { rate: 1.1, pitch: 8, range: 1.5 }],
  [["sad", "sorrow", "tired", "melanchol", "resign", "disappoint"], { rate: 0.82, pitch: -7, range: 0.6 }],
  [["angr", "furious", "annoy", "frustrat"], { rate: 1.08, pitch: -3, range: 1.4, volume: 1.25 }],
  [["nervous", "anxious", "scared", "frighten", "worr"], { rate: 1.12, pitch: 5, range: 0.9 }],
  [["calm", "relax", "serious"], { rate: 0.92, pitch: -3, range: 0.8 }],
  [["curious", "surpris", "mischiev", "playful"], { pitch: 5, range: 1.4 }],
  [["deadpan", "monoton", "robot", "flat"], { range: 0 }],
  [["normal", "neutral"], {}],
];

const PAUSES_MS = { short: 250, usual: 500, long: 1000 } as const;
/** Words that ask for nothing themselves, as in `[in a whisper]`, `[starts laughing]` and `[drawn out]`. */
const EMPTY_WORDS: ReadonlySet<string> = new Set(
  "a an and at begins beginning for her his in is its of on out speaking speaks starts starting the their then to tone voice while with".split(
    " ",
  ),
);

/** `tag`: with its brackets or without. Null where the voice can do nothing of it. */
export function directionOf(tag: string): Direction | null {
  const words = tag.toLowerCase().match(/\p{L}+/gu) ?? [];
  const [breath] = rowsOf(BREATHS, words);
  const manners = rowsOf(MANNERS, words);
  const isPause = words.some(isPauseWord);
  if (breath === undefined && manners.length === 0 && !isPause) return null;
  const rows = [...(breath === undefined ? [] : [breath]), ...manners];
  return {
    breath: breath?.[1],
    manner: manners.length === 0 ? undefined : joined(manners.map(([, manner]) => manner)),
    pauseMs: isPause ? pauseOf(words) : undefined,
    isWhole: words.every(
      (word) =>
        EMPTY_WORDS.has(word) ||
        rows.some((row) => isOf(row, word)) ||
        (isPause && (isPauseWord(word) || word === "short" || word === "long")),
    ),
  };
}

const isPauseWord = (word: string): boolean => word.startsWith("paus");

function pauseOf(words: readonly string[]): number {
  if (words.includes("short")) return PAUSES_MS.short;
  return words.includes("long") ? PAUSES_MS.long : PAUSES_MS.usual;
}

/** All of them at once: `[whispers slowly]`. */
function joined(manners: readonly VoiceManner[]): VoiceManner {
  const product = (factorOf: (manner: VoiceManner) => number | undefined): number =>
    manners.reduce((all, manner) => all * (factorOf(manner) ?? 1), 1);
  return {
    rate: product(({ rate }) => rate),
    range: product(({ range }) => range),
    volume: product(({ volume }) => volume),
    pitch: manners.reduce((sum, { pitch = 0 }) => sum + pitch, 0),
    isWhispered: manners.some(({ isWhispered }) => isWhispered === true),
  };
}

function rowsOf<T>(rows: readonly Row<T>[], words: readonly string[]): Row<T>[] {
  return rows.filter((row) => words.some((word) => isOf(row, word)));
}

function isOf([beginnings]: Row<unknown>, word: string): boolean {
  return beginnings.some((beginning) => word.startsWith(beginning));
}
