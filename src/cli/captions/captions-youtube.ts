/**
 * YouTube's live captions over HTTP: each POST has a number (the same where it is repeated) and lines of time and text,
 * in UTC by YouTube's clock, which its answers name.
 */
import type { CueMode } from "../../protocol/vocabulary.ts";
import { answerOf, type CaptionTarget, type ShownCue, shownText } from "./captions-target.ts";

const TIMEOUT_MS = 5000;
/** YouTube's clock as an answer has it; without a zone it is UTC. */
const SERVER_TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)Z?$/m;

export class YoutubeTarget implements CaptionTarget {
  readonly name = "YouTube";
  readonly #address: URL;
  readonly #nowMs: () => number;
  readonly #mode: CueMode;
  #seq = 1;
  /** How far YouTube's clock is ahead of ours, ms. */
  #skewMs = 0;

  /** `address`: the ingestion URL. `nowMs`: ms since 1970. */
  constructor(address: URL, { nowMs, mode }: { readonly nowMs: () => number; readonly mode: CueMode }) {
    this.#address = address;
    this.#nowMs = nowMs;
    this.#mode = mode;
  }

  async send(shown: ShownCue, signal: AbortSignal): Promise<void> {
    const address = new URL(this.#address);
    address.searchParams.set("seq", String(this.#seq));
    const time = new Date(shown.shownMs + this.#skewMs).toISOString().replace("Z", "");
    const body = `${time}\n${shownText(shown, this.#mode, "<br>")}\n`;
    const sentMs = this.#nowMs();
    const answer = await answerOf(address, { body, signal, timeoutMs: TIMEOUT_MS });
    this.#seq += 1;
    const [, serverTime] = SERVER_TIME.exec(answer.trim()) ?? [];
    const serverMs = serverTime === undefined ? Number.NaN : Date.parse(`${serverTime}Z`);
    // It is of the middle of the way there and back.
    if (Number.isFinite(serverMs)) this.#skewMs = serverMs - (sentMs + this.#nowMs()) / 2;
  }

  close(): void {
    this.#skewMs = 0;
  }
}
