/** The voice of texts that name none. */
import { GatewayError } from "../errors.ts";
import { parseVoiceList } from "../protocol/openai.ts";
import type { UpstreamClient } from "./upstream-client.ts";

/**
 * The configured voice, else the first of the upstream's list, asked for once it is needed. Rejects with what the upstream
 * refused, unknown_voice where it lists none, and upstream_protocol where its answer is no list.
 */
export function defaultVoice(
  upstream: Pick<UpstreamClient, "get">,
  configured: string,
): () => Promise<string> {
  let known: string | null = configured === "" ? null : configured;
  return async () => {
    if (known !== null) return known;
    const answer = await upstream.get("/v1/voices");
    if (answer.status !== 200) throw refusedVoices(answer.status);
    const [first] = parseVoiceList(answer.body.toString("utf8"));
    if (first === undefined) {
      throw new GatewayError(
        "unknown_voice",
        "No default voice: the upstream lists none; send a voice_id or set one with --voice",
      );
    }
    known = first.id;
    return known;
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
