/**
 * How captions are laid out for whom: one table, with where each number is from. Length of lines is in columns of Latin
 * letters; Chinese, Japanese and Korean letters take more of them, so that a line holds as many as is usual there.
 */
import type { CueMode, CueProfile } from "../../protocol/vocabulary.ts";

/** Writing in wide letters; its letters show which one a text is in. */
export type WideScript = "chinese" | "japanese" | "korean";

export interface CueNumbers {
  /** Columns of a line. */
  readonly maxColumns: number;
  readonly maxLines: 2;
  /** A cue stays so long, where the pause behind it allows. */
  readonly minSeconds: number;
  /** No cue has speech of more. */
  readonly maxSeconds: number;
  /** Wanted, never forced: a cue stays longer where there is silence, and speech is never left out. */
  readonly charsPerSecond: number;
  /** Between two cues, so that the eye sees the change. */
  readonly gapSeconds: number;
  /** A shorter hole between two cues flickers: the first stays until the second. */
  readonly flickerSeconds: number;
}

/** How captions of one kind are laid out. */
export interface CueStyle {
  readonly profile: CueProfile;
  readonly mode: CueMode;
}

/**
 * web: Netflix Timed Text Style Guide (42 columns, 5/6 s to 7 s, 20 characters a second, 2 frames, holes under 0.5 s).
 * broadcast: the grid of CEA-608 has 32 columns; DCMP Captioning Key (40 frames to 6 s, 160 words a minute); BBC: a
 * second between two cues or nothing. phone: what a phone held upright shows of a readable size; no standard has it.
 */
const PROFILES: Readonly<Record<CueProfile, CueNumbers>> = {
  web: {
    maxColumns: 42,
    maxLines: 2,
    minSeconds: 5 / 6,
    maxSeconds: 7,
    charsPerSecond: 20,
    gapSeconds: 0.083,
    flickerSeconds: 0.5,
  },
  broadcast: {
    maxColumns: 32,
    maxLines: 2,
    minSeconds: 4 / 3,
    maxSeconds: 6,
    charsPerSecond: 15,
    gapSeconds: 0,
    flickerSeconds: 1,
  },
  phone: {
    maxColumns: 26,
    maxLines: 2,
    minSeconds: 5 / 6,
    maxSeconds: 5,
    charsPerSecond: 17,
    gapSeconds: 0.083,
    flickerSeconds: 0.5,
  },
};

/** Columns of a wide letter (Netflix: 16 of Chinese and Korean, 13 of Japanese where there are 42; 13 have to fit when summed), and wide letters read a second. */
const WIDE: Readonly<Record<WideScript, { readonly columns: number; readonly charsPerSecond: number }>> = {
  chinese: { columns: 42 / 16, charsPerSecond: 9 },
  japanese: { columns: 3.23, charsPerSecond: 4 },
  korean: { columns: 42 / 16, charsPerSecond: 12 },
};

/** The row of a profile; a line that rolls up follows the one before without a hole. */
export function cueNumbers({ profile, mode }: CueStyle): CueNumbers {
  const numbers = PROFILES[profile];
  return mode === "roll-up" ? { ...numbers, gapSeconds: 0, flickerSeconds: 1 } : numbers;
}

/** The row of a script. */
export function wideNumbers(script: WideScript): {
  readonly columns: number;
  readonly charsPerSecond: number;
} {
  return WIDE[script];
}

/** By its letters: kana are Japanese, Hangul are Korean; null where it has none of either. */
export function scriptOf(text: string): WideScript | null {
  if (/[\p{sc=Hiragana}\p{sc=Katakana}]/u.test(text)) return "japanese";
  return /\p{sc=Hangul}/u.test(text) ? "korean" : null;
}

/** What names a style where several are kept side by side. */
export function styleKey({ profile, mode }: CueStyle): string {
  return `${profile}/${mode}`;
}
