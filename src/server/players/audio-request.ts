/** The query of an audio file's address: which frames it needs from the session, and how it wants them sent. */
import type { ContainerName } from "../../audio/containers/live-container.ts";
import { AUDIO_FORMATS } from "../../audio/formats.ts";
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import type { ParsedSettings, SettingsDefaults } from "../../session/listener-settings.ts";
import { flagOf, invalidQuery, parseJoining } from "../live-request.ts";

export interface AudioRequest {
  readonly name: ContainerName;
  readonly format: AudioFormat;
  readonly frameMs: number;
  readonly contentType: string;
  /** Silence is sent between utterances. */
  readonly wantsSilence: boolean;
  /** What the session is joined with. */
  readonly joining: ParsedSettings;
}

interface Kind {
  /** Hz, the default first. */
  readonly rates: readonly [number, ...number[]];
  readonly formatAt: (rate: number) => AudioFormat;
  readonly contentTypeAt: (rate: number) => string;
}

const DEFAULT_PCM_RATE = 24_000;
const PCM_RATES: Kind["rates"] = [
  DEFAULT_PCM_RATE,
  ...Object.values(AUDIO_FORMATS)
    .filter(({ codec, sampleRate }) => codec === "pcm_s16le" && sampleRate !== DEFAULT_PCM_RATE)
    .map(({ sampleRate }) => sampleRate),
];
const pcmAt = (rate: number): AudioFormat => `pcm_${rate}` as AudioFormat;

const KINDS: Readonly<Record<ContainerName, Kind>> = {
  ogg: {
    rates: [48000],
    formatAt: () => "opus_48000",
    contentTypeAt: () => "audio/ogg; codecs=opus",
  },
  wav: { rates: PCM_RATES, formatAt: pcmAt, contentTypeAt: () => "audio/wav" },
  // Not audio/L16: that is big-endian (RFC 2586), and samples here are little-endian.
  pcm: {
    rates: PCM_RATES,
    formatAt: pcmAt,
    contentTypeAt: (rate) => `audio/pcm; rate=${rate}; channels=1`,
  },
  ulaw: { rates: [8000], formatAt: () => "ulaw_8000", contentTypeAt: () => "audio/basic" },
  mp3: { rates: [24000, 22050, 44100], formatAt: pcmAt, contentTypeAt: () => "audio/mpeg" },
};

/** Keys that mean the same as on a socket. */
const SOCKET_KEYS = ["lead_ms", "pace", "policy", "frame_ms", "band", "wait"] as const;

/** Throws invalid_field with the key. */
export function parseAudioRequest(
  name: ContainerName,
  query: URLSearchParams,
  defaults: SettingsDefaults,
): AudioRequest {
  const kind = KINDS[name];
  const rate = rateOf(kind, query.get("rate"));
  const format = kind.formatAt(rate);
  const joining = parseJoining(query, { own: { events: "none", format }, keys: SOCKET_KEYS }, defaults);
  return {
    name,
    format,
    frameMs: joining.settings.frame_ms,
    contentType: kind.contentTypeAt(rate),
    wantsSilence: flagOf(query, "silence", false),
    joining,
  };
}

function rateOf(kind: Kind, value: string | null): number {
  if (value === null) return kind.rates[0];
  const rate = kind.rates.find((known) => String(known) === value);
  if (rate === undefined)
    throw invalidQuery("rate", value, `one of ${[...kind.rates].sort((a, b) => a - b).join(", ")}`);
  return rate;
}
