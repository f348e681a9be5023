/** What clients send on the text-to-dialogue sockets. */
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

export interface DialogueInput {
  readonly text: string;
  readonly voiceId: string;
  readonly isNewTurn: boolean;
}

export interface DialogueMessage {
  /** null: none was given. */
  readonly contextId: string | null;
  /** Voice ids; null: none were given. */
  readonly voices: readonly string[] | null;
  readonly settings: { readonly stability?: number } | undefined;
  readonly locators: readonly DictionaryLocator[] | undefined;
  readonly inputs: readonly DialogueInput[];
  readonly flush: boolean;
  readonly closeContext: boolean;
  readonly closeSocket: boolean;
  /** Names of what nothing is done of. */
  readonly ignored: readonly string[];
}

const MAX_VOICE_CHARS = 128;
const MAX_INPUTS = 100;
const voice = z.string().min(1).max(MAX_VOICE_CHARS);
const schema = z.object({
  ...shared,
  voices: z.array(voice).min(1).max(MAX_INPUTS).nullish(),
  voice_settings: z.object({ stability: z.number().min(0).max(1).nullish() }).nullish(),
  inputs: z
    .array(z.object({ text: z.string(), voice_id: voice, new_turn: z.boolean().nullish() }))
    .max(MAX_INPUTS)
    .nullish(),
  keep_alive: z.boolean().nullish(),
});

/** All that a message may have, with contexts and without. */
const known = {
  multi: schema.extend(credentials.shape),
  single: schema.omit({ context_id: true, contextId: true, close_context: true }).extend(credentials.shape),
};

/** Throws GatewayError "malformed_json" or "invalid_field". */
export function parseDialogueMessage(json: string, isMulti: boolean): DialogueMessage {
  const value = parseJson(json, "Message");
  const given = readValue(value, schema, "Message");
  const message: DialogueMessage = {
    contextId: isMulti ? (given.context_id ?? given.contextId ?? null) : "",
    voices: given.voices ?? null,
    settings: stripped(given.voice_settings),
    locators: locatorsOf(given.pronunciation_dictionary_locators),
    inputs: (given.inputs ?? []).map(({ text, voice_id, new_turn }) => ({
      text,
      voiceId: voice_id,
      isNewTurn: new_turn ?? false,
    })),
    flush: given.flush ?? false,
    closeContext: (isMulti && given.close_context) ?? false,
    closeSocket: given.close_socket ?? false,
    ignored: ignoredIn(value, isMulti ? known.multi : known.single),
  };
  if (!message.contextId && isMulti && !message.closeSocket) {
    throw new GatewayError("invalid_field", "Message is not valid: context_id is missing", {
      field: "context_id",
    });
  }
  return message;
}
