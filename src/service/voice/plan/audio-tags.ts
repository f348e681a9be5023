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

/** At least one of the three. */
export interface Direction {
  readonly breath?: BreathName | undefined;
  /** Until another one, or the end of the paragraph. */
  readonly manner?: VoiceManner | undefined;
  readonly pauseMs?: number | undefined;
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
  [["throat"], "throat"],
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

/** `tag`: with its brackets or without. Null where the voice can do nothing of it. */
export function directionOf(tag: string): Direction | null {
  const words = tag.toLowerCase().match(/\p{L}+/gu) ?? [];
  const breath = find(BREATHS, words);
  const manner = find(MANNERS, words);
  const pauseMs = words.some((word) => word.startsWith("paus")) ? pauseOf(words) : undefined;
  if (breath === undefined && manner === undefined && pauseMs === undefined) return null;
  return { breath, manner, pauseMs };
}

function pauseOf(words: readonly string[]): number {
  if (words.includes("short")) return PAUSES_MS.short;
  return words.includes("long") ? PAUSES_MS.long : PAUSES_MS.usual;
}

function find<T>(rows: readonly Row<T>[], words: readonly string[]): T | undefined {
  const row = rows.find(([beginnings]) =>
    words.some((word) => beginnings.some((beginning) => word.startsWith(beginning))),
  );
  return row?.[1];
}
