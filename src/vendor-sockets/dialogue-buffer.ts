/** The lines of a dialogue that no generation has taken yet. */
import type { DialogueInput } from "../protocol/elevenlabs/dialogue-messages.ts";
import { wordSpans } from "../text/words.ts";
import type { DialogueRequest } from "../upstream/types.ts";
import { isSpeakable, wordEnd } from "./text-buffer.ts";

type Line = DialogueRequest["inputs"][number];

/** When the server starts by itself. */
const START_CHARS = 40;
const START_WORDS = 8;
/** Words are looked for in as much of the text, each time that some comes. */
const MAX_SEARCHED_CHARS = 1000;
/** Most characters in all lines of one generation (the vendor: about 2000). */
const MAX_CHARS = 1900;

export class DialogueBuffer {
  #lines: Line[] = [];

  /** UTF-16 code units. */
  get chars(): number {
    return this.#lines.reduce((sum, { text }) => sum + text.length, 0);
  }

  /** The same voice goes on in its line, unless a new turn begins. */
  push({ text, voiceId, isNewTurn }: DialogueInput): void {
    const last = this.#lines.at(-1);
    if (last === undefined || last.voiceId !== voiceId || isNewTurn) this.#lines.push({ text, voiceId });
    else this.#lines[this.#lines.length - 1] = { text: last.text + text, voiceId };
  }

  clear(): void {
    this.#lines = [];
  }

  /**
   * All whole words where there is enough to start with, else null. A word may go on at the end of the last line. Scripts
   * without blanks start, too: their words are those of the dictionary.
   */
  takeDue(): Line[][] | null {
    const all = this.#lines.map(({ text }) => text).join(" ");
    if (all.length < START_CHARS) return null;
    if (wordSpans(all.slice(0, MAX_SEARCHED_CHARS)).length < START_WORDS) return null;
    const last = this.#lines.at(-1);
    if (last === undefined) return null;
    const end = wordEnd(last.text, false);
    const rest = { ...last, text: last.text.slice(end) };
    this.#lines[this.#lines.length - 1] = { ...last, text: last.text.slice(0, end) };
    const taken = this.takeAll();
    if (rest.text !== "") this.#lines = [rest];
    return taken;
  }

  /** Everything that can be said, a generation each. */
  takeAll(): Line[][] {
    const generations: Line[][] = [];
    let chars = MAX_CHARS;
    for (const line of this.#lines.flatMap(inPieces)) {
      chars += line.text.length;
      if (chars > MAX_CHARS || generations.length === 0) {
        generations.push([]);
        chars = line.text.length;
      }
      generations.at(-1)?.push(line);
    }
    this.#lines = [];
    return generations;
  }
}

/** A line that is too long for one generation, cut between words; none where there is nothing to say. */
function inPieces(line: Line): Line[] {
  const pieces: Line[] = [];
  let { text } = line;
  while (isSpeakable(text)) {
    const end = text.length <= MAX_CHARS ? text.length : wordEnd(text.slice(0, MAX_CHARS), false);
    pieces.push({ ...line, text: text.slice(0, end) });
    text = text.slice(end);
  }
  return pieces;
}
