/** What an answer says of its caller's limits, in the words that clients of each surface know. */
import type { Caller } from "../access/caller.ts";
import { type RateState, rateHeaders } from "../access/limits/limit-error.ts";
import type { Limits } from "../access/limits/limits.ts";

const OPENAI_PATH = "/v1/audio/speech";
const SPEECH_PATH = "/v1/text-to-speech/";

/** As the limits are when the answer is written. Nothing for a caller without limits. */
export function limitHeaders(limits: Limits, caller: Caller, path: string): Record<string, string> {
  const characters = limits.rateOf(caller, "characters_per_minute");
  const headers = characters === null ? {} : rateHeaders(characters);
  if (path === OPENAI_PATH) {
    return {
      ...headers,
      ...openAiHeaders("requests", limits.rateOf(caller, "utterances_per_minute")),
      ...openAiHeaders("tokens", characters),
    };
  }
  if (!path.startsWith(SPEECH_PATH)) return headers;
  const utterances = limits.countOf(caller, "utterances");
  if (utterances === null) return headers;
  return {
    ...headers,
    "current-concurrent-requests": String(utterances.count),
    "maximum-concurrent-requests": String(utterances.limit),
  };
}

/** Characters are what OpenAI's `tokens` are here: what a text is paid by. */
function openAiHeaders(what: "requests" | "tokens", state: RateState | null): Record<string, string> {
  if (state === null) return {};
  const { limit, remaining, resetMs } = state;
  return {
    [`x-ratelimit-limit-${what}`]: String(limit),
    [`x-ratelimit-remaining-${what}`]: String(Math.max(0, Math.floor(remaining))),
    [`x-ratelimit-reset-${what}`]: `${Math.ceil(resetMs / 1000)}s`,
  };
}
