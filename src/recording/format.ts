/**
 * The file of a recording: lines of `HASH JSON`. Each hash is that of the one before it and of its own line, so an edited line, one
 * that is missing or a file that was cut are found. The first line says what was recorded, the last one why the recording ended.
 *
 *   {"voicewire_recording":2, ...}         Head
 *   [t, name, says, items, error]   an entry: see session/tape/tape.ts
 *   {"end":"closed", ...}                  the last line
 *
 * Items of an entry: `[name, says, answer]` is what was told or read in it, `{"in":[name, says, items, error]}` is an entry that was
 * made while somebody was told something.
 */
import { GatewayError } from "../errors.ts";
import { isList, type Json } from "./json.ts";

/** The form of a recording that this version writes and reads. */
export const RECORDING_VERSION = 2;
export const RECORDING_SUFFIX = ".voicewire";

export const HASH_CHARS = 16;
/** A chunk of an upstream may be a second of sound. The recorder writes no longer line than this. */
export const MAX_LINE_CHARS = 64 * 1024 * 1024;

/** Why a recording ended. `lost`: it could not be written as fast as the session went on. */
export const END_REASONS = [
  "closed",
  "session_full",
  "folder_full",
  "disk",
  "lost",
  "zero_retention",
  "shutdown",
] as const;
export type EndReason = (typeof END_REASONS)[number];

/** For people: why it ended, and what is not in it. null: the file has no last line. */
export function endSentence(end: EndReason | null): string {
  return end === null ? WITHOUT_END : END_SENTENCES[end];
}

const WITHOUT_END =
  "Without a last line: its gateway was killed, or still writes it. What came then is not in it";
const WENT_ON = "The session went on, and what came then is not in it";
const END_SENTENCES: Readonly<Record<EndReason, string>> = {
  closed: "With its session: all of it is there",
  session_full: `At the bound of one session's recording (record-mb). ${WENT_ON}`,
  folder_full: `At the bound of all recordings (record-folder-mb). ${WENT_ON}`,
  disk: `With the disk full, or nearly so. ${WENT_ON}`,
  lost: `On a disk that was slower than the session. ${WENT_ON}`,
  zero_retention: `Before a text that nobody may keep (enable_logging false). ${WENT_ON}`,
  shutdown: "With its gateway. Where another node went on with the session, its part is in a file there",
};

export interface Head {
  readonly voicewire_recording: number;
  /** Version of voicewire that recorded it. */
  readonly version: string;
  /** ISO 8601. */
  readonly at: string;
  /** The session's time then, ms. */
  readonly at_ms: number;
  readonly session: string;
  readonly epoch: string;
  readonly server: string;
  /** `hashed`: texts and audio are not in it. */
  readonly text: "kept" | "hashed";
  readonly settings: Json;
}

/** An entry. */
export interface Entry {
  readonly line: number;
  /** The session's time, ms. */
  readonly atMs: number;
  /** See EntryName; a callback's has its number behind it. */
  readonly name: string;
  readonly says: readonly Json[];
  readonly items: readonly Json[];
  /** The code with which it was refused. */
  readonly error: string | null;
}

export interface Recording {
  readonly head: Head;
  readonly entries: readonly Entry[];
  /** null: the file ends without its last line, as of a gateway that was killed. */
  readonly end: EndReason | null;
}

/** Reads a recording line by line. Browsers run this, too. */
export class RecordingReader {
  readonly #hashOf: ((json: string) => string) | null;
  readonly #entries: Entry[] = [];
  #head: Head | null = null;
  #end: EndReason | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;
  #number = 0;

  /** `hashOf`: the hash that the next line is to have, see Chain; null: nobody looks whether lines were edited. */
  constructor(hashOf: ((json: string) => string) | null) {
    this.#hashOf = hashOf;
  }

  /** The next line, without its end. Throws recording_unreadable, recording_version. */
  line(line: string): void {
    this.#number += 1;
    const number = this.#number;
    if (this.#end !== null) throw unreadable(number, "something stands behind its last line");
    const json = signed(line, { hashOf: this.#hashOf, number });
    if (this.#head === null) this.#head = headOf(json);
    else if (isList(json)) this.#entry(entryOf(json, number));
    else this.#end = endOf(json, number);
  }

  /** What runs it again waits for no time that goes back or has no end. Throws recording_unreadable. */
  #entry(entry: Entry): void {
    const { atMs, line } = entry;
    if (!Number.isFinite(atMs) || atMs < this.#lastMs)
      throw unreadable(line, "its time is before that of the line before, or none");
    this.#lastMs = atMs;
    this.#entries.push(entry);
  }

  /** Nothing follows. Throws recording_unreadable. */
  done(): Recording {
    if (this.#head === null) throw unreadable(1, "it is empty");
    return { head: this.#head, entries: this.#entries, end: this.#end };
  }
}

interface Signed {
  readonly hashOf: ((json: string) => string) | null;
  readonly number: number;
}

function signed(line: string, { hashOf, number }: Signed): Json {
  const text = line.slice(HASH_CHARS + 1);
  if (number === 1 && !/^[\w-]{16} \{"voicewire_recording":/.test(line))
    throw unreadable(1, "it is no recording of voicewire");
  // Another form may have other hashes.
  if (number === 1) checkForm(text);
  const hash = line.slice(0, HASH_CHARS);
  if ((hashOf !== null && hash !== hashOf(text)) || line[HASH_CHARS] !== " ")
    throw unreadable(
      number,
      "the line was edited, or one before it is missing; expected the file as it was written",
    );
  return jsonIn(text, number);
}

/** Throws recording_version, recording_unreadable. */
function checkForm(firstLine: string): void {
  if (firstLine.startsWith(`{"voicewire_recording":${RECORDING_VERSION},`)) return;
  const { voicewire_recording: form, version } = fieldsOf(jsonIn(firstLine, 1)) ?? {};
  throw new GatewayError(
    "recording_version",
    `Recording is of form ${String(form)}, expected ${RECORDING_VERSION}: run the voicewire that wrote it (${String(version)})`,
  );
}

function jsonIn(text: string, line: number): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (cause) {
    throw unreadable(line, "the line is no JSON", cause);
  }
}

function headOf(json: Json): Head {
  const { voicewire_recording: version, ...head } = fieldsOf(json) ?? {};
  const names = ["version", "at", "session", "epoch", "server", "text"] as const;
  const isWhole = names.every((name) => typeof head[name] === "string") && typeof head.at_ms === "number";
  if (!isWhole || fieldsOf(head.settings ?? null) === null)
    throw unreadable(1, "its first line lacks a field");
  return { ...head, voicewire_recording: version } as unknown as Head;
}

function entryOf(json: readonly Json[], line: number): Entry {
  const [atMs, name, says, items, error = null] = json;
  const isWhole = typeof atMs === "number" && typeof name === "string" && isArray(says) && isArray(items);
  if (!isWhole || (error !== null && typeof error !== "string")) throw unreadable(line, "it is no entry");
  return { line, atMs, name, says, items, error };
}

function endOf(json: Json, line: number): EndReason {
  const said = fieldsOf(json)?.end;
  const reason = END_REASONS.find((known) => known === said);
  if (reason === undefined) throw unreadable(line, "it is no line of a recording");
  return reason;
}

function isArray(json: Json | undefined): json is readonly Json[] {
  return Array.isArray(json);
}

function fieldsOf(json: Json): Readonly<Record<string, Json>> | null {
  return typeof json === "object" && json !== null && !isList(json) ? json : null;
}

export function unreadable(line: number, why: string, cause?: unknown): GatewayError {
  return new GatewayError("recording_unreadable", `Recording can't be read at line ${line}: ${why}`, {
    ...(cause === undefined ? {} : { cause }),
  });
}
