/** What a node tells its buddy of its sessions, so that the buddy can go on with them: only what has changed. JSON; pure. */
import { z } from "zod";
import { parseCommand } from "../../protocol/commands.ts";
import type { SavedConnection, SavedPlaces, SavedUtterance } from "../../session/saved-session.ts";

export interface ReplicaMessage {
  /** The process whose sessions these are. */
  readonly from: string;
  /** 0: forget all that came before; else one more than that of the message before. */
  readonly seq: number;
  readonly sessions: readonly SessionUpdate[];
  /** Sessions that have ended. */
  readonly ended: readonly string[];
  /** Of a session, by its number: where the speech is that is being sent. */
  readonly places: readonly (readonly [number, readonly SavedPlaces[]])[];
  /** Pairs: number of a session, end of the audio that its listeners were sent, ms. */
  readonly sent: readonly (readonly [number, number])[];
}

/** A session is given away with no more connections. The others join as if they were new. */
export const MAX_GIVEN_CONNECTIONS = 8000;

export interface SessionUpdate {
  readonly id: string;
  /** In `sent`. */
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
const subject = z.object({ id: z.string(), maxPlaces });

const places = {
  id: z.string(),
  startMs: ms.nullable(),
  heard: z.array(z.object({ end: count, ms })),
};

const utterance = z.object({
  ...places,
  command: command.exactOptional(),
  from: count,
  text: z.string(),
  half: z.string(),
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

const message = z.object({
  from: z.string(),
  seq: count,
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
  places: z.array(z.tuple([count, z.array(z.object(places))])),
  sent: z.array(z.tuple([count, ms])),
});

export function encodeReplica(replica: ReplicaMessage): Uint8Array {
  const sessions = replica.sessions.map((session) => ({
    ...session,
    connections: session.connections.map(rowOf),
  }));
  return new TextEncoder().encode(JSON.stringify({ ...replica, sessions }));
}

/** Undefined for what is none: of another program, or of a version to come. */
export function decodeReplica(bytes: Uint8Array): ReplicaMessage | undefined {
  try {
    return message.safeParse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))).data;
  } catch {
    // Not JSON, or not text.
    return undefined;
  }
}
