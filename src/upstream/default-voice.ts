/** The voice of texts that name none. */
import { GatewayError } from "../errors.ts";
import type { UpstreamClient } from "./client.ts";

/** The configured voice, else the first of the upstream's list, asked for once it is needed. */
export function defaultVoice(
  upstream: Pick<UpstreamClient, "get">,
  configured: string,
): () => Promise<string> {
  let known: string | null = configured === "" ? null : configured;
  return async () => {
    if (known !== null) return known;
    const answer = await upstream.get("/v1/voices");
    if (answer.status !== 200) throw refusedVoices(answer.status);
    const list: unknown = JSON.parse(answer.body.toString("utf8"));
    const first = firstVoiceId(list);
    if (first === null) {
      throw new GatewayError(
        "unknown_voice",
        "No default voice: the upstream lists none; send a voice_id or set one with --voice",
      );
    }
    known = first;
    return first;
  };
}

function refusedVoices(status: number): GatewayError {
  if (status === 401) {
    return new GatewayError(
      "upstream_unauthorized",
      "Upstream refused the key (401): check --upstream-key or its environment",
    );
  }
  const code =
    status === 402 || status === 403
      ? "upstream_forbidden"
      : status === 429
        ? "upstream_rate_limited"
        : "upstream_failed";
  return new GatewayError(code, `Upstream's voice list answered ${status}, expected 200`);
}

function firstVoiceId(list: unknown): string | null {
  if (typeof list !== "object" || list === null || !("voices" in list) || !Array.isArray(list.voices))
    return null;
  const [first] = list.voices as unknown[];
  if (typeof first !== "object" || first === null || !("voice_id" in first)) return null;
  return typeof first.voice_id === "string" ? first.voice_id : null;
}
