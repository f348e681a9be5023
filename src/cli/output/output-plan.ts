/** What say and listen write: which files, in which container and wire format. A file's ending decides, --format refines. */
import { extname } from "node:path";
import { type AudioFormat, LISTENER_FORMATS } from "../../protocol/vocabulary.ts";
import { usageError } from "../exit.ts";
import type { Flag, ParsedArguments } from "../flags.ts";
import { didYouMean } from "../suggest.ts";

export const AUDIO_FORMAT_NAMES: readonly AudioFormat[] = LISTENER_FORMATS.filter(
  (format) => format !== "none",
);

/** `raw` = the frames one after the other, as they came. */
type Container = "wav" | "ogg" | "mp3" | "raw";

export interface OutputFormat {
  readonly container: Container;
  /** What is asked of the gateway. */
  readonly format: AudioFormat;
}

export const OUTPUT_FLAGS: readonly Flag[] = [
  {
    name: "out",
    short: "o",
    value: "FILE",
    about: "Audio to x.wav, .ogg, .mp3, .ulaw, .alaw or .pcm; - is stdout, without a header",
  },
  {
    name: "format",
    short: "f",
    value: "FORMAT",
    about: `${AUDIO_FORMAT_NAMES.join(", ")}; default: by the file`,
  },
  { name: "vtt", value: "FILE", about: "Captions as WebVTT; - is stdout" },
  { name: "srt", value: "FILE", about: "Captions as SRT; - is stdout" },
  { name: "json", about: "Every event as a line of JSON on stdout" },
];

export interface OutputPlan {
  readonly out: (OutputFormat & { readonly path: string }) | undefined;
  readonly vtt: string | undefined;
  readonly srt: string | undefined;
  readonly isJson: boolean;
}

/** Throws `invalid_config` for a format that a file can't hold, and where two of them are to go to stdout. */
export function planOutput(parsed: ParsedArguments): OutputPlan {
  const path = parsed.text("out");
  const plan = {
    out: path === undefined ? undefined : { path, ...outputFormatOf(path, parsed.text("format")) },
    vtt: parsed.text("vtt"),
    srt: parsed.text("srt"),
    isJson: parsed.has("json"),
  };
  const claims = ["out", "vtt", "srt"]
    .filter((name) => parsed.text(name) === "-")
    .map((name) => `--${name} -`);
  if (plan.isJson) claims.push("--json");
  if (claims.length > 1)
    throw usageError(`${claims.join(" and ")} both write to stdout: expected one of them`);
  return plan;
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
  const ending = endingOf(path);
  const format = wanted === undefined ? ending.fallback : audioFormat(wanted);
  if (ending.takes(format)) return { container: ending.container, format };
  throw usageError(
    `Output "${path}": can't hold ${format}, expected ${ending.holds}; leave out --format`,
    "format",
  );
}

/** For audio that was sent as `given`: a file that has no G.711 gets it decoded. Throws `invalid_config` where it can't be held. */
export function outputFormatFor(path: string, given: AudioFormat): OutputFormat {
  const held = ({ takes }: Ending) => [given, ...decodedOf(given)].find(takes);
  const ending = endingOf(path);
  const format = held(ending);
  if (format !== undefined) return { container: ending.container, format };
  const names = Object.keys(ENDINGS).filter((name) => ENDINGS[name] !== undefined && held(ENDINGS[name]));
  throw usageError(
    `Output "${path}": the audio is ${given}, expected a name that ends in ${names.join(", ")}, or -`,
    "out",
  );
}

function decodedOf(format: AudioFormat): readonly AudioFormat[] {
  return format === "ulaw_8000" || format === "alaw_8000" ? ["pcm_8000"] : [];
}

function endingOf(path: string): Ending {
  const ending = path === "-" ? STDOUT : ENDINGS[extname(path).toLowerCase()];
  if (ending !== undefined) return ending;
  throw usageError(
    `Output "${path}": expected a name that ends in ${Object.keys(ENDINGS).join(", ")}, or -`,
    "out",
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
