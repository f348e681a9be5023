/** Sends what `voicewire say` speaks: a whole text as one command, tokens as they come, a dialogue at once. */
import type { Connection } from "../../client/index.ts";
import type { QueueOptions, TextOptions, VoiceOptions } from "../../protocol/commands.ts";
import { usageError } from "../exit.ts";
import type { SayPlan } from "./say-plan.ts";
import { type EndOfUtterance, type FedText, TextFeeder } from "./text-feeder.ts";

/** What is said. */
export type SayText =
  | { readonly kind: "whole"; readonly text: string; readonly voiceId: string | undefined }
  | {
      readonly kind: "tokens";
      readonly tokens: AsyncIterable<string>;
      readonly voiceId: string | undefined;
      /** Language of the text, where its source names it and the command line does not. */
      readonly language?: string | undefined;
    }
  | { readonly kind: "dialogue"; readonly lines: readonly SpokenLine[] };

export interface SpokenLine {
  /** As the file names it. */
  readonly voice: string;
  readonly voiceId: string;
  readonly text: string;
}

export interface FeedOptions {
  readonly connection: Connection;
  readonly plan: SayPlan;
  /** Called with each piece before it is sent. */
  show(piece: FedText): void;
  /** Called with text between the pieces that is shown and not spoken. */
  decorate(text: string): void;
  /** A command was refused: the gateway's reason. */
  refused(error: Error): void;
  /** Resolves when more text may be sent: few utterances are queued, and the gateway has paused none. */
  room(): Promise<void>;
}

/** JSON may write one UTF-16 unit as six bytes. */
const BYTES_PER_CHAR = 6;
/** Left for the rest of a message. */
const MESSAGE_OVERHEAD_BYTES = 512;

/** Resolves when all of the text is sent. Throws `invalid_config` where there is nothing to say. */
export async function feed(text: SayText, options: FeedOptions): Promise<void> {
  if (text.kind === "dialogue") {
    feedDialogue(text.lines, options);
    return;
  }
  const { connection, plan } = options;
  const language = text.kind === "tokens" ? text.language : undefined;
  const how: SpeechOptions = {
    ...voiceOptions(plan, text.voiceId, language),
    ...plan.textOptions,
    ...plan.queueOptions,
  };
  if (text.kind === "whole" && text.text.length <= connection.hello.limits.text_chars) {
    const utteranceId = connection.newUtteranceId();
    options.show({ utteranceId, start: 0, text: text.text });
    connection.speak({ text: text.text, utterance_id: utteranceId, ...how }).catch(options.refused);
    return;
  }
  await feedTokens(text.kind === "whole" ? [text.text] : text.tokens, { ...options, how });
}

type SpeechOptions = VoiceOptions & TextOptions & QueueOptions;
type TokenOptions = FeedOptions & { readonly how: SpeechOptions };

async function feedTokens(
  tokens: AsyncIterable<string> | Iterable<string>,
  options: TokenOptions,
): Promise<void> {
  const { connection, show, decorate, how, room } = options;
  const {
    text_chars: maxUtteranceChars,
    message_bytes: messageBytes,
    // A gateway of an older version names none and never pauses.
    credit_chars: creditChars = Number.POSITIVE_INFINITY,
  } = connection.hello.limits;
  const overheadBytes = MESSAGE_OVERHEAD_BYTES + Buffer.byteLength(JSON.stringify(how));
  let hasWords = false;
  let unconfirmedChars = 0;
  const send = async (next: FedText | EndOfUtterance): Promise<void> => {
    if (next.text === null) {
      connection.end(next.utteranceId);
      return;
    }
    await room();
    if (hasWords && next.start === 0) decorate(" ");
    hasWords = true;
    show(next);
    connection.text(next.text, { utterance_id: next.utteranceId, ...(next.start === 0 ? how : {}) });
    unconfirmedChars += next.text.length;
    if (unconfirmedChars < creditChars) return;
    // A file on stdin is here at once: what the gateway says to this much of it must be read before more is sent.
    await connection.ping();
    unconfirmedChars = 0;
  };
  const feeder = new TextFeeder({
    maxUtteranceChars,
    maxPieceChars: Math.max(
      2,
      Math.min(Math.floor((messageBytes - overheadBytes) / BYTES_PER_CHAR), creditChars),
    ),
    newUtteranceId: () => connection.newUtteranceId(),
  });
  for await (const token of tokens) for (const next of feeder.push(token)) await send(next);
  for (const next of feeder.end()) await send(next);
  if (!hasWords) throw usageError("Nothing to say: the input was empty, expected text");
}

function feedDialogue(lines: readonly SpokenLine[], options: FeedOptions): void {
  const { connection, plan, show, decorate } = options;
  const utteranceId = connection.newUtteranceId();
  let start = 0;
  for (const [index, line] of lines.entries()) {
    decorate(`${index === 0 ? "" : "\n"}${line.voice}: `);
    show({ utteranceId, start, text: line.text });
    start += line.text.length;
  }
  connection
    .dialogue({
      utterance_id: utteranceId,
      inputs: lines.map((line) => ({ text: line.text, voice_id: line.voiceId, ...speakerOf(line) })),
      ...(plan.model === undefined ? {} : { model_id: plan.model }),
      ...(plan.language === undefined ? {} : { language_code: plan.language }),
      ...plan.queueOptions,
    })
    .catch(options.refused);
}

/** Longest name of a speaker, code points: the protocol's bound. A voice's name may be longer. */
const MAX_SPEAKER_CHARS = 64;

/** The name that captions have for who says it, on one line: none where the file has only a voice's id. */
function speakerOf({ voice, voiceId }: SpokenLine): { readonly speaker?: string } {
  if (voice === voiceId) return {};
  const line = voice.replace(/[\p{Cc}\u2028\u2029]+/gu, " ").trim();
  const speaker = [...line].slice(0, MAX_SPEAKER_CHARS).join("");
  return speaker === "" ? {} : { speaker };
}

function voiceOptions(
  { model, language: asked, speed }: SayPlan,
  voiceId: string | undefined,
  named: string | undefined,
): VoiceOptions {
  const language = asked ?? named;
  return {
    ...(voiceId === undefined ? {} : { voice_id: voiceId }),
    ...(model === undefined ? {} : { model_id: model }),
    ...(language === undefined ? {} : { language_code: language }),
    ...(speed === undefined ? {} : { voice_settings: { speed } }),
  };
}

/** UTF-8 as it comes: a character that two chunks share is held until it is whole. */
export async function* decoded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of chunks) {
    const text = decoder.decode(chunk, { stream: true });
    if (text !== "") yield text;
  }
  const rest = decoder.decode();
  if (rest !== "") yield rest;
}
