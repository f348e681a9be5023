/** What clients send on `stream-input` and `multi-stream-input`. */
import { z } from "zod";
import { GatewayError } from "../../errors.ts";
import { parseJson, readValue } from "../read-json.ts";
import {
  credentials,
  type DictionaryLocator,
  ignoredIn,
  locatorsOf,
  shared,
  stripped,
} from "./message-json.ts";

/** The upstream judges what is not judged here. */
interface SpeechVoiceSettings {
  readonly stability?: number;
  readonly similarity_boost?: number;
  readonly style?: number;
  readonly use_speaker_boost?: boolean;
  readonly speed?: number;
}

/** What may stand in the first message of a context and must not change afterwards. */
export interface ContextOptions {
  readonly voiceSettings: SpeechVoiceSettings | undefined;
  readonly chunkLengthSchedule: readonly number[] | undefined;
  readonly locators: readonly DictionaryLocator[] | undefined;
}

export interface SpeechMessage {
  /** "" = the default context. */
  readonly contextId: string;
  /** null: none was given. */
  readonly text: string | null;
  readonly flush: boolean;
  readonly closeContext: boolean;
  readonly closeSocket: boolean;
  /** `try_trigger_generation`. */
  readonly triesToStart: boolean;
  readonly options: ContextOptions;
  /** Names of what nothing is done of. */
  readonly ignored: readonly string[];
}

const unit = z.number().min(0).max(1).nullish();
const generationConfig = z.object({ chunk_length_schedule: z.array(z.number()).max(64).nullish() }).nullish();
const schema = z.object({
  ...shared,
  text: z.string().nullish(),
  try_trigger_generation: z.boolean().nullish(),
  voice_settings: z
    .object({
      stability: unit,
      similarity_boost: unit,
      style: z.number().nullish(),
      use_speaker_boost: z.boolean().nullish(),
      speed: z.number().nullish(),
    })
    .nullish(),
  generation_config: generationConfig,
  // As the official SDK spells it.
  generator_config: generationConfig,
});

/** All that a message may have, with contexts and without. */
const known = {
  multi: schema.extend(credentials.shape),
  single: schema
    .omit({ context_id: true, contextId: true, close_context: true, close_socket: true })
    .extend(credentials.shape),
};

/** Throws GatewayError "malformed_json" or "invalid_field". */
export function parseSpeechMessage(json: string, isMulti: boolean): SpeechMessage {
  const value = parseJson(json, "Message");
  const given = readValue(value, schema, "Message");
  const message: SpeechMessage = {
    contextId: (isMulti ? (given.context_id ?? given.contextId) : null) ?? "",
    text: given.text ?? null,
    flush: given.flush ?? false,
    closeContext: (isMulti && given.close_context) ?? false,
    closeSocket: (isMulti && given.close_socket) ?? false,
    triesToStart: given.try_trigger_generation ?? false,
    options: {
      voiceSettings: stripped(given.voice_settings),
      chunkLengthSchedule: scheduleOf(
        (given.generation_config ?? given.generator_config)?.chunk_length_schedule,
      ),
      locators: locatorsOf(given.pronunciation_dictionary_locators),
    },
    ignored: ignoredIn(value, isMulti ? known.multi : known.single),
  };
  const { text, flush, closeContext, closeSocket } = message;
  const says = isMulti ? text !== null || flush || closeContext || closeSocket : text !== null;
  if (says) return message;
  const expected = isMulti ? "text, flush, close_context or close_socket" : "text";
  throw new GatewayError("invalid_field", `Message is not valid: expected ${expected}`, { field: "text" });
}

/** The name of the option that a later message changes; undefined: none. What is absent changes nothing. */
export function changedOption(first: ContextOptions, later: ContextOptions): string | undefined {
  const names = [
    ["voiceSettings", "voice_settings"],
    ["chunkLengthSchedule", "generation_config"],
    ["locators", "pronunciation_dictionary_locators"],
  ] as const;
  return names.find(
    ([key]) => later[key] !== undefined && canonical(later[key]) !== canonical(first[key]),
  )?.[1];
}

function scheduleOf(given: readonly number[] | null | undefined): readonly number[] | undefined {
  return given === null || given === undefined || given.length === 0 ? undefined : given;
}

/** The same for equal values, whatever the order of their keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
