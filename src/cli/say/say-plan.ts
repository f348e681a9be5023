/** What `voicewire say` was asked to do: its flags, checked against each other, before anything is started. */
import type { QueueOptions, TextOptions } from "../../protocol/commands.ts";
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import { usageError } from "../exit.ts";
import { type Flag, type ParsedArguments, parseArguments } from "../flags.ts";
import type { Io } from "../io.ts";
import { audioFormat, OUTPUT_FLAGS, type OutputPlan, planOutput } from "../output/output-plan.ts";
import { findPlayer, PLAYER_FORMAT } from "../output/player.ts";
import { gatewayKey, KEY_FLAG } from "../session/gateway-key.ts";
import { CONFIG_FLAG, type ResolvedSettings, settingFlags, settingsOf } from "../settings.ts";
import { PRIORITY_FLAG, queueOptionsOf, TEXT_FLAGS, textOptionsOf } from "./speech-options.ts";

const UPSTREAM_KEYS = ["upstreamUrl", "upstreamRegion", "upstreamKey"];
const UPSTREAM_FLAGS = settingFlags(UPSTREAM_KEYS);

export const SAY_FLAGS: readonly Flag[] = [
  { name: "voice", short: "v", value: "VOICE", about: "Name or id; --list-voices shows them" },
  { name: "model", short: "m", value: "ID", about: "Model" },
  { name: "language", short: "l", value: "CODE", about: "Language of the text, e.g. de" },
  { name: "speed", value: "X", about: "0.7 (slow) to 1.2 (fast)" },
  {
    name: "dialogue",
    value: "FILE",
    about: 'Speak a dialogue: lines "Voice: text", or JSON [{"text", "voice_id"}]',
  },
  {
    name: "tokens",
    value: "FILE",
    about: 'Speak a recorded token stream in its own time: lines {"at_ms", "text"}; - is stdin',
  },
  ...TEXT_FLAGS,
  PRIORITY_FLAG,
  ...OUTPUT_FLAGS,
  { name: "waterfall", about: "At the end, where the time until the first frame went: a line an utterance" },
  { name: "play", about: "Play the sound (default on a terminal where a player is installed); --no-play" },
  { name: "quiet", short: "q", about: "No words, no summary" },
  { name: "list-voices", about: "List the voices and end" },
  {
    name: "url",
    short: "u",
    value: "URL",
    about: "The gateway; default: the local one, else one of its own",
  },
  { name: "session", short: "s", value: "ID", about: "Speak into this session; others can listen to it" },
  KEY_FLAG,
  CONFIG_FLAG,
  ...UPSTREAM_FLAGS.map((flag) => ({ ...flag, about: `For a gateway of its own: ${flag.about}` })),
];

export interface SayPlan extends OutputPlan {
  /** The text of the command line; undefined = stdin, token by token. */
  readonly text: string | undefined;
  readonly dialogueFile: string | undefined;
  /** A recorded token stream; `-` is stdin. */
  readonly tokensFile: string | undefined;
  readonly textOptions: TextOptions;
  readonly queueOptions: QueueOptions;
  readonly voice: string | undefined;
  readonly model: string | undefined;
  readonly language: string | undefined;
  readonly speed: number | undefined;
  readonly isQuiet: boolean;
  readonly isVoiceList: boolean;
  readonly hasWaterfall: boolean;
  /** The player's command line; undefined = no sound. */
  readonly player: readonly string[] | undefined;
  /** What is asked of the gateway. */
  readonly format: AudioFormat;
  /** Only files are written: audio comes as fast as it is made, and no words are shown on the terminal. */
  readonly isBurst: boolean;
  readonly url: string | undefined;
  /** The gateway's key or a token; empty: none. */
  readonly key: string;
  readonly session: string | undefined;
  /** An upstream was named: the local gateway has another one, so this needs a gateway of its own. */
  readonly needsOwnGateway: boolean;
  readonly settings: ResolvedSettings;
}

/** Throws `invalid_config` for flags that are wrong or contradict one another. */
export function planSay(io: Io, args: readonly string[]): SayPlan {
  const parsed = parseArguments(args, SAY_FLAGS);
  const needsOwnGateway = UPSTREAM_FLAGS.some((flag) => parsed.values.has(flag.name));
  const url = parsed.text("url");
  if (url !== undefined && needsOwnGateway) {
    throw usageError(
      "Flag --url: the gateway there has its own upstream, expected no --upstream-* flag",
      "url",
    );
  }
  const output = planOutput(parsed);
  const { out, vtt, srt } = output;
  const isBurst = (out ?? vtt ?? srt) !== undefined && parsed.switches.get("play") !== true;
  const player = choosePlayer(io, parsed, isBurst);
  return {
    ...output,
    ...textOf(io, parsed),
    textOptions: textOptionsOf(parsed),
    queueOptions: queueOptionsOf(parsed),
    voice: parsed.text("voice"),
    model: parsed.text("model"),
    language: parsed.text("language"),
    speed: speedOf(parsed),
    isQuiet: parsed.has("quiet"),
    isVoiceList: parsed.has("list-voices"),
    hasWaterfall: parsed.has("waterfall"),
    player,
    format: wireFormat(parsed, { out, player }),
    isBurst,
    url,
    key: gatewayKey(io, parsed),
    session: parsed.text("session"),
    needsOwnGateway,
    // --voice and --model are the utterance's here, not the gateway's defaults.
    settings: settingsOf(io, { ...parsed, values: withoutUtteranceFlags(parsed.values) }),
  };
}

type TextSource = Pick<SayPlan, "text" | "dialogueFile" | "tokensFile">;

function textOf(io: Io, parsed: ParsedArguments): TextSource {
  const dialogueFile = parsed.text("dialogue");
  const tokensFile = parsed.text("tokens");
  const words = parsed.positionals.join(" ");
  const isFromStdin = words === "" || words === "-";
  if (parsed.has("list-voices")) return { text: undefined, dialogueFile, tokensFile };
  for (const flag of ["dialogue", "tokens"] as const) {
    if (parsed.text(flag) !== undefined && words !== "")
      throw usageError(`Flag --${flag}: the text comes from the file, expected no other text`, flag);
  }
  if (dialogueFile !== undefined) checkDialogue(parsed);
  const isFromFile = dialogueFile !== undefined || tokensFile !== undefined;
  const isFromTerminal = tokensFile === "-" || (isFromStdin && !isFromFile);
  if (isFromTerminal && io.stdin.isTty) {
    throw usageError(
      'Nothing to say: expected a text, as in voicewire say "Hello", or a pipe: echo Hello | voicewire say',
    );
  }
  return { text: isFromStdin ? undefined : words, dialogueFile, tokensFile };
}

function checkDialogue(parsed: ParsedArguments): void {
  if (parsed.text("tokens") !== undefined)
    throw usageError("Flags --dialogue and --tokens: expected one of them", "tokens");
  if (parsed.text("speed") !== undefined || parsed.text("voice") !== undefined) {
    throw usageError(
      "Flag --dialogue: --voice and --speed do not apply, expected a voice on each line",
      "dialogue",
    );
  }
  if (TEXT_FLAGS.some((flag) => parsed.values.has(flag.name))) {
    throw usageError(
      "Flag --dialogue: its lines are spoken as they are, expected no --clean, --replace or --replacements",
      "dialogue",
    );
  }
}

function speedOf(parsed: ParsedArguments): number | undefined {
  const text = parsed.text("speed");
  if (text === undefined) return undefined;
  const speed = text.trim() === "" ? Number.NaN : Number(text);
  if (speed >= 0.7 && speed <= 1.2) return speed;
  throw usageError(`Flag --speed: "${text}", expected a number from 0.7 to 1.2`, "speed");
}

function choosePlayer(io: Io, parsed: ParsedArguments, isBurst: boolean): readonly string[] | undefined {
  const wanted = parsed.switches.get("play");
  if (wanted === false || isBurst) return undefined;
  if (wanted !== true && (!io.stdout.isTty || parsed.has("json") || parsed.text("format") !== undefined))
    return undefined;
  const player = findPlayer(io.env);
  if (player === undefined && wanted === true) {
    throw usageError(
      "Flag --play: no player found, expected ffplay, aplay, pacat, pw-cat or play (sox) on the PATH",
      "play",
    );
  }
  return player;
}

/** A player dictates its format; without a file any format will do, and mu-law is the cheapest. */
function wireFormat(parsed: ParsedArguments, { out, player }: Pick<SayPlan, "out" | "player">): AudioFormat {
  const wanted = parsed.text("format");
  const format = out?.format ?? (wanted === undefined ? undefined : audioFormat(wanted));
  if (player !== undefined && format !== undefined && format !== PLAYER_FORMAT) {
    throw usageError(
      `Flag --play: players get ${PLAYER_FORMAT}, got ${format}; leave out --play or --format`,
      "play",
    );
  }
  return format ?? (player === undefined ? "ulaw_8000" : PLAYER_FORMAT);
}

function withoutUtteranceFlags(values: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const names = [CONFIG_FLAG, ...UPSTREAM_FLAGS].map((flag) => flag.name);
  return new Map([...values].filter(([name]) => names.includes(name)));
}
