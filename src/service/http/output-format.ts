/** Output formats as the HTTP side sees them: which endpoint takes which, and what its bytes are called. */
import { contentTypeOf } from "../../audio/containers/encode.ts";
import { OUTPUT_FORMATS, parseUpstreamFormat, STREAM_FORMATS } from "../../audio/formats.ts";
import { ApiError } from "../api-error.ts";
import { requireFormatAllowed, type Tier } from "./tiers.ts";

export const DEFAULT_FORMAT = "mp3_44100_128";

/** The content type of audio in this format. */
export function audioTypeOf(name: string): string {
  const format = parseUpstreamFormat(name);
  return format === undefined ? "application/octet-stream" : contentTypeOf(format);
}

/** Throws the 400 of a format that this endpoint does not have, and the 403 of one above the plan. */
export function requireFormat(
  format: string,
  options: { readonly isStream: boolean; readonly tier: Tier },
): void {
  const formats: readonly string[] = options.isStream ? STREAM_FORMATS : OUTPUT_FORMATS;
  if (!formats.includes(format)) {
    const message = `Invalid output_format '${format.slice(0, 64)}'. Expected one of: ${formats.join(", ")}.`;
    throw ApiError.unfit("invalid_output_format", message, { param: "output_format" });
  }
  requireFormatAllowed(format, options.tier);
}
