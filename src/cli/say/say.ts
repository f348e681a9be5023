/** `voicewire say`: speaks a text, a pipe of tokens or a dialogue, to the terminal or to files. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { text as textOf } from "node:stream/consumers";
import { GatewayError } from "../../errors.ts";
import { EXIT, usageError } from "../exit.ts";
import type { CommandModule } from "../help.ts";
import type { Io } from "../io.ts";
import { prepareOutputs } from "../output/outputs.ts";
import { openGateway } from "../session/gateway-target.ts";
import { captionEvents, JSON_EVENTS, joinSession } from "../session/join-session.ts";
import { type DialogueLine, parseDialogue } from "./dialogue-file.ts";
import { parseRecording, playRecording, type Recording } from "./recording.ts";
import { decoded, type SayText } from "./say-feed.ts";
import { planSay, SAY_FLAGS, type SayPlan } from "./say-plan.ts";
import { SpeechRun } from "./speech-run.ts";
import {
  fetchOffered,
  findVoice,
  renderUnlisted,
  renderVoices,
  type VoiceList,
  type VoicesSource,
} from "./voices.ts";

export const say: CommandModule = {
  help: {
    name: "say",
    usage: [
      "say [FLAGS] TEXT...",
      "say [FLAGS] < TEXT",
      "say [FLAGS] --tokens FILE",
      "say [FLAGS] --dialogue FILE",
    ],
    about:
      "Speaks. Without a text it reads stdin and speaks token by token, as a language model writes them. On a terminal " +
      "the words light up as they are spoken; Ctrl+C stops the speech and says what was heard of it and what was not. " +
      "To files it speaks as fast as the speech comes. It uses the gateway on this machine, or starts one for the time it speaks.",
    flags: SAY_FLAGS,
    examples: [
      { line: 'voicewire say "Hello there, it is a fine day."', about: "speak, with the words lit up" },
      {
        line: "llm 'Tell me a story' | voicewire say",
        about: "speak a model's tokens while it still writes",
      },
      {
        line: "voicewire say --tokens examples/streams/english-assistant.ndjson --clean markdown,emoji,urls,code",
        about: "a recorded token stream at its own pace, without what is not for the ear",
      },
      {
        line: "voicewire say --replace SQL=sequel --replacements names.json --waterfall 'SQL is a language.'",
        about: "pronunciations, and where the time until the first frame went",
      },
      { line: "voicewire say --out hello.wav --vtt hello.vtt Hello", about: "audio and captions to files" },
      {
        line: "voicewire say --out - Hello | ffplay -f s16le -ar 24000 -ch_layout mono -",
        about: "to a player",
      },
      { line: "voicewire say --session demo Hello", about: "for everyone who listens to the session demo" },
      { line: "voicewire say --session demo --priority 10 Attention", about: "before what waits there" },
      { line: "voicewire say --dialogue play.txt", about: 'lines such as "Anna: How are you?"' },
    ],
  },
  run: runSay,
};

async function runSay(io: Io, args: readonly string[]): Promise<number> {
  const plan = planSay(io, args);
  const { dialogueFile, tokensFile } = plan;
  const lines =
    dialogueFile === undefined
      ? undefined
      : parseDialogue(...(await readInput(io, dialogueFile, { what: "Dialogue", flag: "dialogue" })));
  const recording =
    tokensFile === undefined
      ? undefined
      : parseRecording(...(await readInput(io, tokensFile, { what: "Recording", flag: "tokens" })));
  const { config } = plan.settings;
  const gateway = await openGateway(io, { url: plan.url, config, isOwn: plan.needsOwnGateway });
  try {
    if (plan.isVoiceList) {
      const { voices, unlisted } = await fetchOffered({ baseUrl: gateway.baseUrl, key: plan.key });
      io.stdout.write(renderVoices(voices));
      for (const missing of unlisted) io.stderr.write(`Some ${renderUnlisted(missing)}\n`);
      return EXIT.ok;
    }
    return await speak(io, plan, { baseUrl: gateway.baseUrl, lines, recording });
  } finally {
    await gateway.close();
  }
}

interface SpeakTarget {
  readonly baseUrl: string;
  readonly lines: readonly DialogueLine[] | undefined;
  readonly recording: Recording | undefined;
}

async function speak(io: Io, plan: SayPlan, target: SpeakTarget): Promise<number> {
  const { baseUrl } = target;
  const text = await resolveText(io, plan, target);
  const openOutputs = await prepareOutputs(io, plan);
  const connection = await joinSession({
    baseUrl,
    key: plan.key,
    session: plan.session ?? `say-${randomBytes(4).toString("hex")}`,
    settings: {
      role: "both",
      format: plan.format,
      frame_ms: 20,
      pace: plan.isBurst ? "burst" : "realtime",
      // A file must be whole; and what one person hears of their own speech must be too.
      policy: "lossless",
      events: plan.isJson ? JSON_EVENTS : ["words", ...captionEvents(plan)],
    },
  });
  try {
    const outputs = openOutputs();
    let isFailed = true;
    try {
      const code = await new SpeechRun({ io, plan, connection, outputs }).run(text);
      isFailed = code !== EXIT.ok;
      return code;
    } finally {
      await outputs.close({ isFailed });
    }
  } finally {
    await connection.close();
  }
}

/** Names of voices become ids; where the gateway can't list its voices, what was given is taken as an id. */
async function resolveText(io: Io, plan: SayPlan, target: SpeakTarget): Promise<SayText> {
  const { baseUrl, lines, recording } = target;
  const voices =
    plan.voice === undefined && lines === undefined
      ? undefined
      : await knownVoices({ baseUrl, key: plan.key });
  const idOf = (wanted: string) => (voices === undefined ? wanted : findVoice(voices, wanted).voice_id);
  if (lines !== undefined) {
    return { kind: "dialogue", lines: lines.map((line) => ({ ...line, voiceId: idOf(line.voice) })) };
  }
  const voiceId = plan.voice === undefined ? undefined : idOf(plan.voice);
  if (plan.text !== undefined) return { kind: "whole", text: plan.text, voiceId };
  if (recording === undefined) return { kind: "tokens", tokens: decoded(io.stdin.chunks()), voiceId };
  return {
    kind: "tokens",
    tokens: playRecording(recording, io.clock),
    voiceId,
    language: recording.language,
  };
}

async function knownVoices(source: VoicesSource): Promise<VoiceList | undefined> {
  try {
    return await fetchOffered(source);
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    // A token may be good for speech alone. Where it is not, joining says so.
    const isKept = source.key !== "" && KEPT_FROM_TOKENS.has(thrown.code);
    if (isKept || thrown.code === "upstream_not_found") return undefined;
    throw thrown;
  }
}

const KEPT_FROM_TOKENS: ReadonlySet<string> = new Set(["upstream_unauthorized", "upstream_forbidden"]);

/** A file's text, or that of stdin, and how errors name it. */
async function readInput(
  io: Io,
  file: string,
  { what, flag }: { readonly what: string; readonly flag: string },
): Promise<[content: string, name: string]> {
  if (file === "-") return [await textOf(io.stdin.chunks()), "stdin"];
  try {
    return [readFileSync(file, "utf8"), file];
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : cause;
    throw usageError(`${what} "${file}" can't be read: ${reason}`, flag);
  }
}
