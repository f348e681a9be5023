/**
 * One record of a `with-timestamps` stream, from the bytes of its line. This file is the plain way
 * and the judge of what is allowed; record-fast.ts does the usual shape at byte level and must never differ from it.
 *
 * No error here keeps the JSON parser's own error: its message quotes the line, and the line holds the user's text.
 */
import { GatewayError } from "../../errors.ts";
import type { Alignment, VoiceSegment } from "../../timing/alignment.ts";
import type { SynthesisChunk } from "../types.ts";
import type { ByteRange } from "./json-cursor.ts";
import { type FastRecord, readFastRecord } from "./record-fast.ts";

const NO_AUDIO = Buffer.alloc(0);
const NO_SEGMENTS: readonly VoiceSegment[] = Object.freeze([]);

/** Reads the record in `bytes[start, end)`. Throws upstream_protocol where it is none. */
export function readRecord(bytes: Buffer, range: ByteRange): SynthesisChunk {
  const fast = readFastRecord(bytes, range);
  if (fast === null) return readPlainRecord(bytes, range);
  const { audio, alignment, normalizedAlignment, restStart } = fast;
  if (restStart === -1) {
    return {
      audio,
      alignment: alignment ?? null,
      normalizedAlignment: normalizedAlignment ?? null,
      voiceSegments: NO_SEGMENTS,
    };
  }
  const rest = parseJson(`{${bytes.toString("utf8", restStart, range.end)}`);
  // Where a key comes twice JSON.parse keeps the last one, so that one counts here.
  if (!isObject(rest) || hasAgain(rest, fast)) return readPlainRecord(bytes, range);
  return {
    audio,
    alignment: alignment === undefined ? toAlignment(rest, "alignment") : alignment,
    normalizedAlignment:
      normalizedAlignment === undefined ? toAlignment(rest, "normalized_alignment") : normalizedAlignment,
    voiceSegments: toVoiceSegments(rest.voice_segments),
  };
}

function hasAgain(rest: Record<string, unknown>, fast: FastRecord): boolean {
  return (
    Object.hasOwn(rest, "audio_base64") ||
    (fast.alignment !== undefined && Object.hasOwn(rest, "alignment")) ||
    (fast.normalizedAlignment !== undefined && Object.hasOwn(rest, "normalized_alignment"))
  );
}

/** The same by JSON.parse alone: what readRecord falls back to and is tested and measured against. */
export function readPlainRecord(bytes: Buffer, range: ByteRange): SynthesisChunk {
  const record = parseJson(bytes.toString("utf8", range.start, range.end));
  if (!isObject(record)) throw broken("it is not one JSON object");
  return {
    audio: plainAudio(record),
    alignment: toAlignment(record, "alignment"),
    normalizedAlignment: toAlignment(record, "normalized_alignment"),
    voiceSegments: toVoiceSegments(record.voice_segments),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** audio_base64 is required by the contract; a record that has timing and null or nothing there passes as silent. */
function plainAudio(record: Record<string, unknown>): Buffer {
  const encoded = record.audio_base64;
  if (typeof encoded === "string") return decodeBase64(encoded);
  const hasTiming = ["alignment", "normalized_alignment", "voice_segments"].some((key) =>
    Object.hasOwn(record, key),
  );
  if ((encoded === null || encoded === undefined) && hasTiming) return NO_AUDIO;
  throw broken("audio_base64 is missing or not a string");
}

function decodeBase64(encoded: string): Buffer {
  const padding = encoded.endsWith("==") ? 2 : encoded.endsWith("=") ? 1 : 0;
  const digits = encoded.length - padding;
  const audio = Buffer.from(encoded, "base64");
  // Buffer.from skips what is not base64, which shows in the length (one digit left over encodes nothing).
  if (digits % 4 === 1 || audio.length !== Math.floor((digits * 3) / 4))
    throw broken("audio_base64 is not base64");
  return audio;
}

function toAlignment(record: Record<string, unknown>, key: string): Alignment | null {
  const value = record[key];
  if (value === null || value === undefined) return null;
  if (isAlignment(value)) return value;
  throw broken(`${key} is not three lists: characters, start times, end times`);
}

/** Lists of unequal length and times that are none are for the timing to mend: the audio beside them is good. */
function isAlignment(value: unknown): value is Alignment {
  if (!isObject(value)) return false;
  const characters = value.characters;
  const starts = value.character_start_times_seconds;
  const ends = value.character_end_times_seconds;
  return (
    Array.isArray(characters) &&
    characters.every((item) => typeof item === "string") &&
    Array.isArray(starts) &&
    Array.isArray(ends)
  );
}

function toVoiceSegments(value: unknown): readonly VoiceSegment[] {
  if (value === null || value === undefined) return NO_SEGMENTS;
  if (Array.isArray(value) && value.every(isVoiceSegment)) return value;
  throw broken("voice_segments is not a list of segments with voice_id, times and indices");
}

function isVoiceSegment(value: unknown): value is VoiceSegment {
  return (
    isObject(value) &&
    typeof value.voice_id === "string" &&
    Number.isFinite(value.start_time_seconds) &&
    Number.isFinite(value.end_time_seconds) &&
    Number.isInteger(value.character_start_index) &&
    Number.isInteger(value.character_end_index) &&
    Number.isInteger(value.dialogue_input_index)
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function broken(what: string): GatewayError {
  return new GatewayError("upstream_protocol", `The upstream sent a record that can't be read: ${what}`);
}
