/** Which container and which wire format a file gets: its ending decides, --format refines. */
import { extname } from "node:path";
import { type AudioFormat, LISTENER_FORMATS } from "../../protocol/vocabulary.ts";
import { usageError } from "../exit.ts";
import { didYouMean } from "../suggest.ts";

export const AUDIO_FORMAT_NAMES: readonly AudioFormat[] = LISTENER_FORMATS.filter(
  (format) => format !== "none",
);

/** `raw` = the frames one after the other, as they came. */
export type Container = "wav" | "ogg" | "mp3" | "raw";

export interface OutputFormat {
  readonly container: Container;
  /** What is asked of the gateway. */
  readonly format: AudioFormat;
}

interface Ending {
  readonly container: Container;
  readonly fallback: AudioFormat;
  readonly takes: (format: AudioFormat) => boolean;
  /** For the error: what this ending can hold. */
  readonly holds: string;
}

const isPcm = (format: AudioFormat) => format.startsWith("pcm_");

function only(format: AudioFormat, container: Container = "raw"): Ending {
  return { container, fallback: format, takes: (wanted) => wanted === format, holds: format };
}

const WAV: Ending = { container: "wav", fallback: "pcm_24000", takes: isPcm, holds: "pcm_*" };
/** The rates that the vendor's MP3 formats have. */
const MP3_RATES: readonly AudioFormat[] = ["pcm_22050", "pcm_24000", "pcm_44100"];
const MP3: Ending = {
  container: "mp3",
  fallback: "pcm_44100",
  takes: (wanted) => MP3_RATES.includes(wanted),
  holds: MP3_RATES.join(", "),
};
const PCM: Ending = { container: "raw", fallback: "pcm_24000", takes: isPcm, holds: "pcm_*" };
const STDOUT: Ending = { container: "raw", fallback: "pcm_24000", takes: () => true, holds: "any format" };

const ENDINGS: Readonly<Record<string, Ending>> = {
  ".wav": WAV,
  ".mp3": MP3,
  ".ogg": only("opus_48000", "ogg"),
  ".opus": only("opus_48000", "ogg"),
  ".ulaw": only("ulaw_8000"),
  ".ul": only("ulaw_8000"),
  ".alaw": only("alaw_8000"),
  ".al": only("alaw_8000"),
  ".pcm": PCM,
  ".raw": PCM,
};

/** `path` is a file or `-` for stdout. Throws `invalid_config` where the ending is unknown or --format does not fit. */
export function outputFormatOf(path: string, wanted: string | undefined): OutputFormat {
  const ending = path === "-" ? STDOUT : ENDINGS[extname(path).toLowerCase()];
  if (ending === undefined) {
    throw usageError(
      `Output "${path}": expected a name that ends in ${Object.keys(ENDINGS).join(", ")}, or -`,
      "out",
    );
  }
  const format = wanted === undefined ? ending.fallback : audioFormat(wanted);
  if (ending.takes(format)) return { container: ending.container, format };
  throw usageError(
    `Output "${path}": can't hold ${format}, expected ${ending.holds}; leave out --format`,
    "format",
  );
}

/** Throws `invalid_config` where there is no such format. */
export function audioFormat(name: string): AudioFormat {
  const format = AUDIO_FORMAT_NAMES.find((candidate) => candidate === name);
  if (format !== undefined) return format;
  const hint = didYouMean(name, AUDIO_FORMAT_NAMES);
  throw usageError(
    `Flag --format: "${name}", expected one of ${AUDIO_FORMAT_NAMES.join(", ")}${hint}`,
    "format",
  );
}
