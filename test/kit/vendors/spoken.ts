/** What a scripted service says for a text: a tone for each word, with its times, at any rate. */

export interface SpokenWord {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface Spoken {
  readonly words: readonly SpokenWord[];
  readonly pcm: Int16Array;
  readonly seconds: number;
}

export interface SpokenOptions {
  readonly sampleRate: number;
  /** The words that are said; default those of the text, without punctuation. */
  readonly say?: readonly string[] | undefined;
}

/** Before the first word, between two, behind the last, and for each letter; ms. */
const LEAD_MS = 120;
const GAP_MS = 40;
const TAIL_MS = 200;
const LETTER_MS = 60;

export function speak(text: string, { sampleRate, say = wordsOf(text) }: SpokenOptions): Spoken {
  let atMs = LEAD_MS;
  const words = say.map((word) => {
    const startMs = atMs;
    atMs += word.length * LETTER_MS + GAP_MS;
    return { text: word, start: startMs / 1000, end: (atMs - GAP_MS) / 1000 };
  });
  const seconds = (atMs + TAIL_MS) / 1000;
  const pcm = new Int16Array(Math.round(seconds * sampleRate));
  for (const { start, end } of words) {
    const from = Math.round(start * sampleRate);
    for (let at = from; at < Math.round(end * sampleRate); at += 1)
      pcm[at] = Math.round(9000 * Math.sin((2 * Math.PI * 300 * (at - from)) / sampleRate));
  }
  return { words, pcm, seconds };
}

export function wordsOf(text: string): string[] {
  return text
    .replace(/<[^>]*>/g, " ")
    .split(/\s+/)
    .map((word) => word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ""))
    .filter((word) => word !== "");
}

/** Pieces of so many bytes: an odd number, so that samples are cut. */
export function piecesOf(bytes: Uint8Array, size: number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(Buffer.from(bytes.subarray(at, at + size)));
  return pieces;
}

/** The bytes of samples, little-endian. */
export function bytesOf(pcm: Int16Array): Buffer {
  return Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength);
}
