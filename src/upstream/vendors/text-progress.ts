/**
 * How far an answer has come in its text, by its own times: an answer that is cut off between two records ends as one that is
 * whole does, over HTTP, and what it lacks would be lost without a word.
 */
import { sampledFormatOf } from "../../audio/codecs/samples.ts";
import { bytesPerMs } from "../../audio/formats.ts";
import { GatewayError } from "../../errors.ts";
import type { SynthesisChunk, SynthesisRequest } from "../types.ts";

/** Audio behind the last times that is no word: more may be text whose times did not come. */
const MOST_UNTIMED_SECONDS = 0.3;
const TAGS = /<[^<>]*>|\[[^[\]]*\]/g;
const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;

export class TextProgress {
  readonly #text: string;
  readonly #bytesPerSecond: number | null;
  #at = 0;
  /** What is timed is the text as it was sent, from its beginning. */
  #isText = true;
  #isLastTimed = false;
  #timedSeconds = 0;
  #audioBytes = 0;

  constructor(request: SynthesisRequest) {
    this.#text = request.kind === "speech" ? request.text : request.inputs.map(({ text }) => text).join("");
    this.#bytesPerSecond = bytesPerSecondOf(request.outputFormat);
  }

  push({ audio, alignment }: SynthesisChunk): void {
    this.#audioBytes += audio.byteLength;
    const characters = alignment?.characters ?? [];
    if (characters.length > 0 || audio.byteLength > 0) this.#isLastTimed = characters.length > 0;
    for (const character of characters) {
      if (!this.#isText) return;
      this.#isText = this.#text.startsWith(character, this.#at);
      this.#at += character.length;
    }
    this.#timedSeconds = alignment?.character_end_times_seconds.at(-1) ?? this.#timedSeconds;
  }

  /** The answer has ended as one that is whole. Throws upstream_truncated where words are missing, and their audio with them. */
  checkEnd(): void {
    if (!this.#isText || this.#at === 0 || !this.#isAudioTimed) return;
    if (!LETTER_OR_DIGIT.test(this.#text.slice(this.#at).replace(TAGS, ""))) return;
    throw new GatewayError(
      "upstream_truncated",
      `The upstream ended the speech early: it came to character ${this.#at} of ${this.#text.length}`,
    );
  }

  get #isAudioTimed(): boolean {
    if (this.#bytesPerSecond === null) return this.#isLastTimed;
    return this.#audioBytes / this.#bytesPerSecond <= this.#timedSeconds + MOST_UNTIMED_SECONDS;
  }
}

/** null: how long its audio is can't be seen. */
function bytesPerSecondOf(format: string): number | null {
  return sampledFormatOf(format) === null ? null : bytesPerMs(format) * 1000;
}
