/**
 * What a node tells its buddy of its sessions, so that the buddy can go on with them: only what has changed. Pure. What changes
 * with each word are bytes, all numbers big-endian; what is accepted is JSON, and comes after that.
 *
 *   message | number u48 | bytes of the sender u8, the sender | bytes of the records u32 | record ... | JSON or nothing
 *
 *   sent    | 1 u8 | session u32 | ms f64                end of the audio that its listeners were sent
 *   places  | 2 u8 | session u32 | utterance u32 | its beginning, ms f64 | places u32 | end u32, ms f64 | ...
 *   over    | 3 u8 | session u32 | utterance u32
 *
 * A session is named by its number, an utterance by its place among those of the session that the buddy knows.
 */
import { z } from "zod";
import { parseCommand } from "../../protocol/commands.ts";
import type { HeardUpTo, SavedConnection, SavedPlaces, SavedUtterance } from "../../session/saved-session.ts";

export interface ReplicaMessage {
  /** The process whose sessions these are. */
  readonly from: string;
  /** 0: forget all that came before; else one more than that of the message before. */
  readonly seq: number;
  /** These come first: they are of sessions as the messages before have them. */
  readonly records: readonly ReplicaRecord[];
  readonly sessions: readonly SessionUpdate[];
  /** Sessions that have ended. */
  readonly ended: readonly string[];
}

export type ReplicaRecord =
  | { readonly kind: "sent"; readonly session: number; readonly sentMs: number }
  | {
      readonly kind: "places";
      readonly session: number;
      readonly utterance: number;
      readonly places: NewPlaces;
    }
  | { readonly kind: "over"; readonly session: number; readonly utterance: number };

export type NewPlaces = Pick<SavedPlaces, "startMs" | "heard">;

/** A session is given away with no more connections. The others join as if they were new. */
export const MAX_GIVEN_CONNECTIONS = 8000;

export interface SessionUpdate {
  readonly id: string;
  /** In records. */
  readonly number: number;
  readonly epoch: string;
  readonly sentMs: number;
  /** All that are not over, in their order. */
  readonly utterances: readonly UtteranceUpdate[];
  /** Those that have come, or have begun or ended texts. */
  readonly connections: readonly SavedConnection[];
  /** Tokens of those that have gone. */
  readonly disconnected: readonly string[];
}

/** As SavedUtterance, but that only its text from `from` on is there. */
export interface UtteranceUpdate extends Omit<SavedUtterance, "command"> {
  readonly from: number;
  /** The first time only. */
  readonly command?: SavedUtterance["command"] | undefined;
}

const ms = z.number().min(0);
const count = z.number().int().min(0);

const command = z.record(z.string(), z.unknown()).transform((value, context): SavedUtterance["command"] => {
  try {
    const parsed = parseCommand(JSON.stringify(value)).command;
    if (parsed.type === "speak" || parsed.type === "text" || parsed.type === "dialogue") return parsed;
    context.addIssue({ code: "custom", message: "not a command that speaks" });
  } catch (thrown) {
    context.addIssue({ code: "custom", message: String(thrown) });
  }
  return z.NEVER;
});

/** JSON has no Infinity. */
const maxPlaces = z
  .number()
  .nullable()
  .transform((value) => value ?? Number.POSITIVE_INFINITY);
const payer = z.object({ key: z.string(), tenant: z.string() });
const subject = z.object({ id: z.string(), maxPlaces, payer: payer.exactOptional() });

const utterance = z.object({
  id: z.string(),
  startMs: ms.nullable(),
  heard: z.array(z.object({ end: count, ms })),
  command: command.exactOptional(),
  from: count,
  text: z.string(),
  half: z.string(),
  // Nodes that are older do not say it.
  leftOut: count.default(0),
  isEnded: z.boolean(),
  subject: subject.nullable(),
  holder: z.string(),
  heardMs: ms,
  marks: z.array(z.string()),
});

/** Most listeners have begun no text, and nobody has to be told from them. */
type ConnectionRow = readonly [
  token: string,
  listenerId: string,
  holder?: string,
  currentId?: string | null,
  ...openIds: string[],
];

const connection = z
  .tuple([z.string(), z.string(), z.string().default(""), z.string().nullable().default(null)], z.string())
  .transform(
    ([token, listenerId, holder, currentId, ...openIds]): SavedConnection => ({
      token,
      listenerId,
      holder,
      openIds,
      currentId,
    }),
  );

function rowOf({ token, listenerId, holder, openIds, currentId }: SavedConnection): ConnectionRow {
  if (openIds.length > 0 || currentId !== null) return [token, listenerId, holder, currentId, ...openIds];
  return holder === "" ? [token, listenerId] : [token, listenerId, holder];
}

const accepted = z.object({
  sessions: z.array(
    z.object({
      id: z.string(),
      number: count,
      epoch: z.string(),
      sentMs: ms,
      utterances: z.array(utterance),
      connections: z.array(connection),
      disconnected: z.array(z.string()),
    }),
  ),
  ended: z.array(z.string()),
});

const KIND = { sent: 1, places: 2, over: 3 } as const;
const SENT_BYTES = 13;
const PLACES_BYTES = 21;
const PLACE_BYTES = 12;
const OVER_BYTES = 9;
/** Bytes of a message beside the sender, the records and the JSON. */
const HEAD_BYTES = 11;
const SEQ_BYTES = 6;
const FIRST_BYTES = 16 * 1024;

/** Gathers records for one message. */
export class RecordWriter {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #used = 0;

  get length(): number {
    return this.#used;
  }

  sent(session: number, sentMs: number): void {
    const at = this.#reserve(SENT_BYTES, KIND.sent, session);
    this.#bytes.writeDoubleBE(sentMs, at);
  }

  places(session: number, utterance: number, { startMs, heard }: NewPlaces): void {
    let at = this.#reserve(PLACES_BYTES + PLACE_BYTES * heard.length, KIND.places, session);
    at = this.#bytes.writeUInt32BE(utterance, at);
    at = this.#bytes.writeDoubleBE(startMs, at);
    at = this.#bytes.writeUInt32BE(heard.length, at);
    for (const { end, ms } of heard) {
      at = this.#bytes.writeUInt32BE(end, at);
      at = this.#bytes.writeDoubleBE(ms, at);
    }
  }

  over(session: number, utterance: number): void {
    const at = this.#reserve(OVER_BYTES, KIND.over, session);
    this.#bytes.writeUInt32BE(utterance, at);
  }

  /** A view that is good until more is written. */
  take(): Uint8Array {
    const used = this.#bytes.subarray(0, this.#used);
    this.#used = 0;
    return used;
  }

  #reserve(length: number, kind: number, session: number): number {
    const at = this.#used;
    this.#used += length;
    if (this.#used > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(this.#used, 2 * this.#bytes.length));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
    }
    this.#bytes[at] = kind;
    return this.#bytes.writeUInt32BE(session, at + 1);
  }
}

export interface ReplicaParts extends Omit<ReplicaMessage, "records"> {
  /** Made by a RecordWriter. */
  readonly records: Uint8Array;
}

export function encodeReplica({ from, seq, records, sessions, ended }: ReplicaParts): Uint8Array {
  const rows = sessions.map((session) => ({ ...session, connections: session.connections.map(rowOf) }));
  const json = sessions.length + ended.length === 0 ? "" : JSON.stringify({ sessions: rows, ended });
  const sender = Buffer.from(from);
  const bytes = Buffer.allocUnsafeSlow(HEAD_BYTES + sender.length + records.length + Buffer.byteLength(json));
  let at = bytes.writeUIntBE(seq, 0, SEQ_BYTES);
  at = bytes.writeUInt8(sender.length, at);
  bytes.set(sender, at);
  at = bytes.writeUInt32BE(records.length, at + sender.length);
  bytes.set(records, at);
  bytes.write(json, at + records.length);
  return bytes;
}

/** Undefined for what is none: of another program, or of a version to come. */
export function decodeReplica(bytes: Uint8Array): ReplicaMessage | undefined {
  try {
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const fromAt = SEQ_BYTES + 1;
    const fromEnd = fromAt + view.readUInt8(SEQ_BYTES);
    const recordsEnd = fromEnd + 4 + view.readUInt32BE(fromEnd);
    if (recordsEnd > view.length) return undefined;
    const from = textOf(view.subarray(fromAt, fromEnd));
    const records = recordsOf(view.subarray(fromEnd + 4, recordsEnd));
    const json = view.subarray(recordsEnd);
    const { data } = json.length === 0 ? NOTHING : accepted.safeParse(JSON.parse(textOf(json)));
    return data === undefined ? undefined : { from, seq: view.readUIntBE(0, SEQ_BYTES), records, ...data };
  } catch {
    // Not JSON, not text, or too short.
    return undefined;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });
const NOTHING = { data: { sessions: [], ended: [] } };

function textOf(bytes: Uint8Array): string {
  return UTF8.decode(bytes);
}

/** Throws where they are none. */
function recordsOf(bytes: Buffer): ReplicaRecord[] {
  const records: ReplicaRecord[] = [];
  for (let at = 0; at < bytes.length; ) {
    const kind = bytes.readUInt8(at);
    const session = bytes.readUInt32BE(at + 1);
    if (kind === KIND.sent) {
      records.push({ kind: "sent", session, sentMs: msAt(bytes, at + 5) });
      at += SENT_BYTES;
      continue;
    }
    const utterance = bytes.readUInt32BE(at + 5);
    if (kind === KIND.over) {
      records.push({ kind: "over", session, utterance });
      at += OVER_BYTES;
    } else if (kind === KIND.places) {
      const startMs = msAt(bytes, at + 9);
      const heard: HeardUpTo[] = [];
      const count = bytes.readUInt32BE(at + 17);
      at += PLACES_BYTES;
      for (let place = 0; place < count; place += 1, at += PLACE_BYTES) {
        heard.push({ end: bytes.readUInt32BE(at), ms: msAt(bytes, at + 4) });
      }
      records.push({ kind: "places", session, utterance, places: { startMs, heard } });
    } else throw new RangeError("No such record");
  }
  return records;
}

function msAt(bytes: Buffer, at: number): number {
  const value = bytes.readDoubleBE(at);
  if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) throw new RangeError("Not a time");
  return value;
}
