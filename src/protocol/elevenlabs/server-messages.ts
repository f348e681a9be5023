/**
 * What the gateway says on the vendor's sockets. Text to speech is camelCase, with the context's id
 * spelled both ways (clients read one or the other); dialogue is snake_case.
 */
import type { MessageTiming } from "./frame-timing.ts";
import type { SocketFault } from "./socket-faults.ts";

/** One audio message before it is spelled. */
export interface AudioMessage {
  /** In the format asked for; empty where there is timing only. */
  readonly audio: Uint8Array;
  readonly timing: MessageTiming | null;
  readonly normalizedTiming: MessageTiming | null;
}

/** How a socket spells its messages. `contextId`: "" has none. All JSON. */
export interface Dialect {
  /** The key under which the next message names what nothing is done of. */
  readonly ignoredKey: string;
  audio(message: AudioMessage, contextId: string): string;
  final(contextId: string): string;
  /** All that one flush asked for has been sent; null: the dialect has no such message. */
  flushed(contextId: string): string | null;
  fault(fault: SocketFault, contextId: string): string;
}

export const SPEECH_DIALECT: Dialect = {
  ignoredKey: "ignoredFields",
  audio: ({ audio, timing, normalizedTiming }, contextId) =>
    JSON.stringify({
      audio: base64(audio),
      isFinal: null,
      normalizedAlignment: camelTiming(normalizedTiming),
      alignment: camelTiming(timing),
      ...bothIds(contextId),
    }),
  final: (contextId) =>
    JSON.stringify({
      audio: null,
      isFinal: true,
      normalizedAlignment: null,
      alignment: null,
      ...bothIds(contextId),
      // As the official client's type of the multi-context endpoint has it.
      ...(contextId === "" ? {} : { is_final: true }),
    }),
  flushed: () => null,
  fault: ({ message, error, code }, contextId) =>
    JSON.stringify({ message, error, code, ...bothIds(contextId) }),
};

export const DIALOGUE_DIALECT: Dialect = {
  ignoredKey: "ignored_fields",
  audio: ({ audio, timing }, contextId) =>
    JSON.stringify({
      audio: base64(audio),
      alignment: snakeTiming(timing),
      // Reserved.
      normalized_alignment: null,
      ...snakeId(contextId),
    }),
  final: (contextId) => JSON.stringify({ is_final: true, ...snakeId(contextId) }),
  flushed: (contextId) => JSON.stringify({ is_final_audio_for_turn: true, ...snakeId(contextId) }),
  fault: ({ message, error, code, param }, contextId) =>
    JSON.stringify({
      message,
      error,
      code,
      ...(param === undefined ? {} : { param }),
      ...snakeId(contextId),
    }),
};

/** The message with names of what clients sent and nothing is done of. Both JSON objects with a field at least. */
export function withIgnored(json: string, names: readonly string[], { ignoredKey }: Dialect): string {
  return names.length === 0 ? json : `${json.slice(0, -1)},"${ignoredKey}":${JSON.stringify(names)}}`;
}

function camelTiming(timing: MessageTiming | null): object | null {
  return timing === null
    ? null
    : { chars: timing.chars, charStartTimesMs: timing.startsMs, charDurationsMs: timing.durationsMs };
}

function snakeTiming(timing: MessageTiming | null): object | null {
  return timing === null
    ? null
    : { chars: timing.chars, char_start_times_ms: timing.startsMs, char_durations_ms: timing.durationsMs };
}

function bothIds(contextId: string): object {
  return contextId === "" ? {} : { contextId, context_id: contextId };
}

function snakeId(contextId: string): object {
  return contextId === "" ? {} : { context_id: contextId };
}

function base64(audio: Uint8Array): string | null {
  return audio.length === 0
    ? null
    : Buffer.from(audio.buffer, audio.byteOffset, audio.byteLength).toString("base64");
}
