/** What audio isolation takes and gives. */
import { ApiError } from "../../api-error.ts";
import { FILE_FORMATS } from "../../media/decode-upload.ts";
import { bytes, CONCURRENCY_HEADERS } from "../answers.ts";
import { file } from "../form.ts";
import { literal, text } from "../kinds.ts";
import { operation } from "../operation.ts";
import { DEFAULT_FORMAT } from "../output-format.ts";
import { optional, required, withDefault } from "../schema.ts";
import { LOGGING } from "../speech/speech-fields.ts";

/** Characters of a preview: a list of a thousand of them is to stay below 100 MB. */
export const MAX_PREVIEW_LENGTH = 98_304;

const AUDIO = {
  audio: required(
    file(),
    "The recording, in any format that the service decodes, of at most 100 MB; its name is the item's title.",
  ),
  file_format: withDefault(literal(FILE_FORMATS), "other", "pcm_s16le_16: raw samples, 16 kHz, mono."),
} as const;

/** The interface has neither here, and clients send them as they do elsewhere. */
const QUERY = {
  enable_logging: LOGGING,
  output_format: withDefault(
    text({ later: { enum: [DEFAULT_FORMAT] } }),
    DEFAULT_FORMAT,
    "The one that there is; any other is refused with 400.",
  ),
} as const;

const COMMON = {
  method: "POST",
  tag: "Audio isolation",
  query: QUERY,
  errors: [403, 429],
} as const;

/** Throws the 400 of a format that isolation has not. */
export function requireIsolationFormat(format: string): void {
  if (format === DEFAULT_FORMAT) return;
  const message = `Invalid output_format '${format.slice(0, 64)}'. Audio isolation answers with ${DEFAULT_FORMAT} only.`;
  throw ApiError.unfit("invalid_output_format", message, { param: "output_format" });
}

export const ISOLATE = operation({
  ...COMMON,
  url: "/v1/audio-isolation",
  id: "audio_isolation",
  summary: "Speech without the noise around it",
  body: {
    kind: "form",
    name: "AudioIsolationForm",
    shape: {
      ...AUDIO,
      preview_b64: optional(
        text({ later: { maxLength: MAX_PREVIEW_LENGTH, contentEncoding: "base64" } }),
        "A picture to show with the item, kept as it is; what is no base64, and any with enable_logging=false, is refused with 400.",
      ),
    },
  },
  answer: { ...bytes(["audio/mpeg"], "The speech, whole."), headers: CONCURRENCY_HEADERS },
});

export const ISOLATE_STREAMED = operation({
  ...COMMON,
  url: "/v1/audio-isolation/stream",
  id: "audio_isolation_stream",
  summary: "Speech without the noise around it, streamed",
  body: { kind: "form", name: "AudioIsolationStreamForm", shape: AUDIO },
  answer: { ...bytes(["audio/mpeg"], "The speech, as it is made."), headers: CONCURRENCY_HEADERS },
});
