/** A service's refusal as one of our errors. Of what it says only its own code words go into ours: the rest may be the text. */
import { type ErrorCode, GatewayError } from "../../errors.ts";
import type { ResponseHeaders } from "../headers.ts";
import { codeOf, codeWords, readRetryAfterMs, repeats } from "../vendors/refusal.ts";
import type { Meaning, RefusalTable } from "./adapter.ts";
import { isObject, parseOrUndefined } from "./json-values.ts";

export interface ServiceRefusal {
  /** The upstream's name. */
  readonly name: string;
  readonly table: RefusalTable;
  /** null: it is said in an answer that began well, without one. */
  readonly status: number | null;
  readonly headers: ResponseHeaders;
  /** JSON, as bytes or read already. */
  readonly body: unknown;
  /** The voice that was asked for; null: none. */
  readonly voiceId: string | null;
  /** Texts and key of the request: nothing that holds one of them is repeated. */
  readonly secrets: readonly string[];
}

const HEADLINES: Partial<Readonly<Record<ErrorCode, string>>> = {
  unknown_voice: "knows no such voice",
  upstream_unauthorized: "refused the key (expected a valid one in its key-env or key-file)",
  upstream_forbidden:
    "does not allow this with this key or plan (expected a plan that has it, and credit left)",
  upstream_not_found:
    "does not know what was asked for (expected its base URL as url, and a voice and model that it has)",
  upstream_rate_limited:
    "is at its limit (a smaller max-open asks less at once, another plan may allow more)",
  upstream_failed: "failed (its log may say why)",
  upstream_timeout: "gave up waiting",
  upstream_protocol: "answered with a status that is not of its interface (expected 200)",
  upstream_invalid: "refused the request (expected a voice, a model and settings that it has)",
  text_too_long: "takes no text of that length",
};

/** As much of a voice's id is named. */
const MAX_VOICE = 80;
/** What no code word explains is the service's fault. */
const UNSAID_STATUS = 500;

export function serviceRefusal({
  name,
  table,
  status,
  headers,
  body,
  voiceId,
  secrets,
}: ServiceRefusal): GatewayError {
  const json = Buffer.isBuffer(body) ? parseOrUndefined(body.toString("utf8")) : body;
  const words = isObject(json) ? codeWords(table.codesOf(json)) : [];
  const meaning = words.map((word) => meaningOf(table, word)).find((found) => found !== undefined);
  const code = meaning?.code ?? codeOf(status ?? UNSAID_STATUS, words);
  const retryAfterMs =
    status !== null && (status === 429 || status >= 500) ? readRetryAfterMs(headers) : undefined;
  const facts = [
    ...(status === null ? [] : [`status ${status}`]),
    ...words.filter((word) => word !== code && !repeats(word, secrets)),
  ];
  const isVoiceNamed = code === "unknown_voice" && voiceId !== null;
  const headline = isVoiceNamed ? unknownVoice(voiceId) : (HEADLINES[code] ?? "refused the request");
  const why = facts.length === 0 ? "" : `: ${facts.join(", ")}`;
  return new GatewayError(code, `The upstream ${name} ${headline}${why}`, {
    ...(meaning?.field === undefined ? {} : { field: meaning.field }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function unknownVoice(voiceId: string): string {
  return `knows no voice ${JSON.stringify(voiceId.slice(0, MAX_VOICE))} (expected one that GET /voices lists)`;
}

function meaningOf({ meanings }: RefusalTable, word: string): Meaning | undefined {
  return Object.hasOwn(meanings, word) ? meanings[word] : undefined;
}
