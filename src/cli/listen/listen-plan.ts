/** What `voicewire listen` was asked to do: its flags, checked before anything is opened. */
import { type AudioFormat, POLICIES, type Policy } from "../../protocol/vocabulary.ts";
import { usageError } from "../exit.ts";
import { choiceFlag, type Flag, integerFlag, parseArguments } from "../flags.ts";
import type { Io } from "../io.ts";
import { AUDIO_FORMAT_NAMES, OUTPUT_FLAGS, type OutputPlan, planOutput } from "../output/output-plan.ts";
import { FOLLOW_FLAGS, type FollowPlan, planFollow, URL_FLAG } from "../session/follow.ts";
import type { ResumePlace } from "../session/join-session.ts";

export const LISTEN_FLAGS: readonly Flag[] = [
  URL_FLAG,
  ...OUTPUT_FLAGS,
  { name: "frame-ms", value: "MS", about: "Length of a frame, 10-100 (default 20)" },
  {
    name: "captions",
    about: "Words on the terminal, on stderr where the audio goes to stdout (default); --no-captions",
  },
  {
    name: "policy",
    value: "POLICY",
    about: `When we read too slowly: ${POLICIES.join(", ")} (default live: audio is skipped, and what was missed is said)`,
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

export interface ListenPlan extends FollowPlan, OutputPlan {
  readonly format: AudioFormat;
  readonly frameMs: number;
  readonly hasCaptions: boolean;
  readonly policy: Policy;
  readonly mayReconnect: boolean;
  /** The place that an earlier connection had come to. */
  readonly resume: ResumePlace | undefined;
}

/** Throws `invalid_config` for flags that are wrong or contradict one another. */
export function planListen(io: Io, args: readonly string[]): ListenPlan {
  const parsed = parseArguments(args, LISTEN_FLAGS);
  const follow = planFollow(io, parsed, "voicewire listen demo");
  const output = planOutput(parsed);
  const { out, isJson } = output;
  return {
    ...follow,
    ...output,
    // Captions alone need the audio's clock too; mu-law is the cheapest.
    format: out?.format ?? choiceFlag(parsed, "format", AUDIO_FORMAT_NAMES) ?? "ulaw_8000",
    frameMs: integerFlag(parsed, "frame-ms", { min: 10, max: 100, fallback: 20 }),
    hasCaptions: parsed.switches.get("captions") ?? !isJson,
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
