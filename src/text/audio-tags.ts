/** Brackets that direct a voice: `[laughs]`. Expressive models act on them; others would read them aloud. */

const WORD = "\\p{L}[\\p{L}\\p{M}'’-]*";
/** One to five words. A letter alone is none: "[x] done", "[T]he". */
const AUDIO_TAG = new RegExp(`^\\[(?![a-z]\\])${WORD}(?:,? ${WORD}){0,4}\\]$`, "iu");
const DIRECTION = /^\[\p{L}/u;

/**
 * Whether a whole bracket is left out where the model would read it. Narrow, so that no remark is lost: "[1]", "[Smith,
 * 2020]" and long ones are text.
 */
export function isAudioTag(bracket: string): boolean {
  return AUDIO_TAG.test(bracket);
}

/** Whether a whole bracket begins with a letter: an expressive model takes each such bracket as a direction and does not say it. */
export function isDirection(bracket: string): boolean {
  return DIRECTION.test(bracket);
}
