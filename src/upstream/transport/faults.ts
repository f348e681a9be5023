/** Which errors say that the upstream does not work, and not that this request is wrong or one too many. */
import type { ErrorCode, GatewayError } from "../../errors.ts";

const FAULTS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "upstream_unreachable",
  "upstream_timeout",
  "upstream_failed",
  "upstream_protocol",
  "upstream_truncated",
  "upstream_not_speech",
  "upstream_audio_rate",
]);

/** A refusal by status 408 is among them (`upstream_timeout`): who knows the status decides by that. */
export function isUpstreamFault(error: GatewayError): boolean {
  return FAULTS.has(error.code);
}
