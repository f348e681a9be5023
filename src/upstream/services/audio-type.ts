/** What an answer's headers say of the rate of its samples. */
import { headerOf, type ResponseHeaders } from "../headers.ts";

/** Hz; null: they say nothing. */
export function parseRate(headers: ResponseHeaders): number | null {
  const type = headerOf(headers, "content-type") ?? "";
  const said = /;\s*(?:rate|samplerate|sample_rate)\s*=\s*"?(\d{4,6})\b/i.exec(type)?.[1];
  const rate = Number(said ?? headerOf(headers, "x-sample-rate") ?? headerOf(headers, "x-audio-sample-rate"));
  return Number.isSafeInteger(rate) && rate > 0 ? rate : null;
}
