/**
 * Zoom's closed captions over HTTP: the host copies an address (the "API token") out of the meeting; each caption is a
 * POST of plain text with a number that rises by one, and stays the same where a POST is repeated.
 */
import type { CueMode } from "../../protocol/vocabulary.ts";
import { answerOf, type CaptionTarget, type ShownCue, shownText, TargetError } from "./captions-target.ts";

const TIMEOUT_MS = 3000;

export class ZoomTarget implements CaptionTarget {
  readonly name = "Zoom";
  readonly #address: URL;
  readonly #language: string;
  readonly #mode: CueMode;
  /** Number of the next caption; null until Zoom has been asked for the last one it took. */
  #seq: number | null = null;

  /** `address`: the API token. `language`: as in `en-US`. */
  constructor(address: URL, { language, mode }: { readonly language: string; readonly mode: CueMode }) {
    this.#address = address;
    this.#language = language;
    this.#mode = mode;
  }

  async send(shown: ShownCue, signal: AbortSignal): Promise<void> {
    this.#seq ??= (await this.#lastSeq(signal)) + 1;
    const address = new URL(this.#address);
    address.searchParams.set("seq", String(this.#seq));
    address.searchParams.set("lang", this.#language);
    const body = `${shownText(shown, this.#mode, "\n")}\n`;
    await answerOf(address, { body, signal, timeoutMs: TIMEOUT_MS });
    this.#seq += 1;
  }

  close(): void {
    this.#seq = null;
  }

  async #lastSeq(signal: AbortSignal): Promise<number> {
    const address = new URL(this.#address);
    address.pathname = `${address.pathname.replace(/\/$/, "")}/seq`;
    const answer = (await answerOf(address, { signal, timeoutMs: TIMEOUT_MS })).trim();
    if (/^\d{1,9}$/.test(answer)) return Number(answer);
    throw new TargetError("did not say which number comes next", true);
  }
}
