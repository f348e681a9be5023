/** What `voicewire listen` was asked to do: its flags, checked before anything is opened. */
import { type AudioFormat, POLICIES, type Policy } from "../../protocol/vocabulary.ts";
import { usageError } from "../exit.ts";
import { choiceFlag, type Flag, integerFlag, parseArguments } from "../flags.ts";
import type { Io } from "../io.ts";
import { AUDIO_FORMAT_NAMES, type OutputFormat, outputFormatOf } from "../output/output-format.ts";
import { checkStdout } from "../say/say-plan.ts";
import { FOLLOW_FLAGS, type FollowPlan, planFollow, URL_FLAG } from "../session/follow.ts";
import type { ResumePlace } from "../session/join-session.ts";

export const LISTEN_FLAGS: readonly Flag[] = [
  URL_FLAG,
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
  { name: "frame-ms", value: "MS", about: "Length of a frame, 10-100 (default 20)" },
  {
    name: "captions",
    about: "Words on the terminal, on stderr where the audio goes to stdout (default); --no-captions",
  },
  { name: "vtt", value: "FILE", about: "Captions as WebVTT" },
  { name: "srt", value: "FILE", about: "Captions as SRT" },
  { name: "json", about: "Every event as a line of JSON on stdout" },
  {
    name: "policy",
    value: "POLICY",
    about: `When we read too slowly: ${POLICIES.join(", ")} (default live: audio is skipped and told as missed)`,
  },
  {
    name: "reconnect",
    about: "Come back by itself when the connection breaks, and go on where it was (default); --no-reconnect",
  },
  {
    name: "resume",
    value: "TOKEN[:SEQ[:MS]]",
    about:
      "Go on as an earlier connection: hello's resume_token and, exactly, the last event's seq and the end of the audio it got (see --json)",
  },
  ...FOLLOW_FLAGS,
];

export interface ListenPlan extends FollowPlan {
  readonly out: (OutputFormat & { readonly path: string }) | undefined;
  readonly vtt: string | undefined;
  readonly srt: string | undefined;
  readonly format: AudioFormat;
  readonly frameMs: number;
  readonly hasCaptions: boolean;
  readonly isJson: boolean;
  readonly policy: Policy;
  readonly mayReconnect: boolean;
  /** The place that an earlier connection had come to. */
  readonly resume: ResumePlace | undefined;
}

/** Throws `invalid_config` for flags that are wrong or contradict one another. */
export function planListen(io: Io, args: readonly string[]): ListenPlan {
  const parsed = parseArguments(args, LISTEN_FLAGS);
  const follow = planFollow(io, parsed, "voicewire listen demo");
  const path = parsed.text("out");
  const out = path === undefined ? undefined : { path, ...outputFormatOf(path, parsed.text("format")) };
  const vtt = parsed.text("vtt");
  const srt = parsed.text("srt");
  const isJson = parsed.has("json");
  checkStdout({ out: path, vtt, srt, json: isJson });
  return {
    ...follow,
    out,
    vtt,
    srt,
    // Captions alone need the audio's clock too; mu-law is the cheapest.
    format: out?.format ?? choiceFlag(parsed, "format", AUDIO_FORMAT_NAMES) ?? "ulaw_8000",
    frameMs: integerFlag(parsed, "frame-ms", { min: 10, max: 100, fallback: 20 }),
    hasCaptions: parsed.switches.get("captions") ?? !isJson,
    isJson,
    // Nobody's slow disk or player may hold up a session that others speak in, unless it is asked for.
    policy: choiceFlag(parsed, "policy", POLICIES) ?? "live",
    mayReconnect: parsed.switches.get("reconnect") ?? true,
    resume: resumeOf(parsed.text("resume")),
  };
}

function resumeOf(value: string | undefined): ResumePlace | undefined {
  if (value === undefined) return undefined;
  const [, token, seq, atMs] = /^([\w-]+)(?::(\d{1,15})(?::(\d{1,12}(?:\.\d{1,6})?))?)?$/.exec(value) ?? [];
  if (token === undefined)
    throw usageError(`Flag --resume: "${value}", expected TOKEN, TOKEN:SEQ or TOKEN:SEQ:AT_MS`, "resume");
  return { token, seq: numberOf(seq), atMs: numberOf(atMs) };
}

function numberOf(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number(digits);
}
