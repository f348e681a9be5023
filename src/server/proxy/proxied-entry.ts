/** The ledger's line of a request that was passed on. */
import type { UpstreamSubject } from "../../access/limits/limits.ts";
import type { RequestEntry } from "../../ledger/entries.ts";
import { codePointsIn } from "./proxied-speech.ts";
import { modelOf } from "./proxy-body.ts";

/** What has come of it. */
export interface ProxiedCost {
  /** The body as it went upstream; null: none, or in pieces. */
  readonly json: string | null;
  /** null: none came. `cost`: null where the upstream has not said it. */
  readonly answer: {
    readonly status: number;
    readonly cost: number | null;
    readonly requestId: string | null;
  } | null;
  /** null: all of the answer has come. */
  readonly error: string | null;
}

interface Passed {
  readonly path: string;
  readonly subject: UpstreamSubject;
  readonly isSpeech: boolean;
}

const FIRST_ERROR_STATUS = 400;
const VOICE = /^\/v1\/(?:text-to-speech|speech-to-speech)\/([^/?]{1,100})/;
/** It waited for its turn, and did not leave. */
const NEVER_LEFT: ReadonlySet<string> = new Set(["upstream_busy", "draining"]);

/** null: it is none that costs anything. */
export function proxiedEntry(
  { json, answer, error }: ProxiedCost,
  { path, subject, isSpeech }: Passed,
): RequestEntry | null {
  const cost = answer?.cost ?? null;
  if (!(isSpeech || (cost ?? 0) > 0)) return null;
  if (answer === null && error !== null && NEVER_LEFT.has(error)) return null;
  const status = answer?.status ?? 0;
  const isRefused = cost === null && status >= FIRST_ERROR_STATUS;
  return {
    type: "request",
    tenant: subject.payer?.tenant ?? "",
    key: subject.payer?.key ?? "",
    session: "",
    epoch: "",
    utterance: "",
    upstream: "elevenlabs",
    region: "",
    model: (json === null ? undefined : modelOf(json)) ?? "",
    voice: VOICE.exec(path)?.[1] ?? "",
    chars_sent: json === null ? null : codePointsIn(json),
    chars_billed: isRefused ? 0 : cost,
    source: cost !== null ? "header" : isRefused ? "refused" : "counted",
    audio_ms: null,
    cached: false,
    try: 1,
    outcome: error === "client_left" ? "aborted" : (error ?? (isRefused ? `http_${status}` : "done")),
    request_id: answer?.requestId ?? null,
  };
}
