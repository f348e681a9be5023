/**
 * One caller: says a text while a fault comes, and says another one behind it until that is whole. It uses the client that
 * programs use, which comes back by itself.
 */
import WebSocket from "ws";
import {
  type Connection,
  connect,
  VoicewireError,
  type WebSocketConstructor,
} from "../../src/client/index.ts";
import { monotonicMs, wait } from "../kit/monotonic.ts";
import { Hearing, type Item } from "./hearing.ts";
import { tokensOf } from "./texts.ts";
import { type End, FRAME_MS, INTERRUPTED, judge, type Verdict } from "./verdict.ts";

export interface Call {
  /** New for each call of a gateway. */
  readonly session: string;
  readonly text: string;
  readonly seed: number;
  readonly pace: "realtime" | "burst";
  /** As one message, or word by word. */
  readonly isStreamed: boolean;
  /** The client's own interruption, ms behind the first frame. */
  readonly interruptMs: number | null;
  readonly truth: Uint8Array | null;
  readonly baseUrl: () => string;
  /** When the fault struck; null: not yet, or never. */
  readonly struckMs: () => number | null;
}

export interface Run extends Verdict {
  readonly session: string;
  readonly isStruck: boolean;
  /** From the fault until speech came again that is whole in the end; null: it never did. */
  readonly wellMs: number | null;
}

const END_DEADLINE_MS = 45_000;
const WELL_DEADLINE_MS = 45_000;
const LAST_FRAME_MS = 5000;
const DONE_BEHIND_ERROR_MS = 2000;
const RETRY_MS = 200;
const CAME_TO_ITS_END = new Set(["whole", INTERRUPTED, "gap"]);
const NEXT_TEXT = "All is well again.";
const RECONNECT = { firstDelayMs: 100, maxDelayMs: 1000, maxTries: 40 };
/** Text is sent faster than it is spoken. */
const TOKEN_MS = 15;

export async function makeCall(call: Call): Promise<Run> {
  const first = await joined(call, call.session);
  const hearing = new Hearing(first);
  try {
    const { end, interruptedAt } = await say(first, hearing, call);
    if (end.kind === "done" && end.event.outcome === "done") await lastFrame(hearing, end.event.end_ms);
    const said = { ...call, utteranceId: "first", interruptedAt };
    const verdict = judge(hearing.items, said, end);
    const struckMs = call.struckMs();
    const nextMs = await firstFrameOfNext(first, hearing, call);
    return {
      ...verdict,
      session: call.session,
      isStruck: struckMs !== null,
      wellMs: struckMs === null ? null : wellAfter({ verdict, items: hearing.items, struckMs, nextMs }),
    };
  } finally {
    await left(first);
  }
}

/** `utterance.done` does not wait for frames: over a slow connection it may come before the last ones. */
async function lastFrame(hearing: Hearing, endMs: number): Promise<void> {
  const isHere = (): boolean =>
    hearing.items.some((item) => item.kind === "frame" && item.atMs + FRAME_MS >= endMs);
  for (let waitedMs = 0; waitedMs < LAST_FRAME_MS && !isHere(); waitedMs += FRAME_MS) await wait(FRAME_MS);
}

/** A gateway that is just being started again is asked until it is there. */
async function joined({ pace, baseUrl }: Call, session: string): Promise<Connection> {
  const endMs = monotonicMs() + WELL_DEADLINE_MS;
  for (;;) {
    try {
      return await connect({
        baseUrl: baseUrl(),
        session,
        settings: { format: "ulaw_8000", events: ["words"], pace, policy: "lossless" },
        WebSocket: WebSocket as unknown as WebSocketConstructor,
        reconnect: RECONNECT,
        timeoutMs: 3000,
      });
    } catch (thrown) {
      if (monotonicMs() > endMs) throw thrown;
      await wait(RETRY_MS);
    }
  }
}

async function left(connection: Connection): Promise<void> {
  await Promise.race([connection.close(), wait(2000)]);
}

/** `sent`: characters of the text so far. `interruptedAt`: the same when it was interrupted; null where it was not. */
interface Progress {
  sent: number;
  interruptedAt: number | null;
}

type Said = Pick<Progress, "interruptedAt"> & { readonly end: End };

async function say(connection: Connection, hearing: Hearing, call: Call): Promise<Said> {
  const progress: Progress = { sent: 0, interruptedAt: null };
  const refusal = call.isStreamed
    ? stream(connection, hearing, call, progress)
    : speak(connection, call, progress);
  if (call.interruptMs !== null) void interruptLater(connection, hearing, call.interruptMs, progress);
  const end = hearing.first((items) => endOf(items, "first"), END_DEADLINE_MS);
  // An answer that is lost with its socket leaves open whether the utterance was taken.
  const refused = refusal.then(async (code): Promise<End | null> => {
    if (code === null) return await end;
    const later =
      code === "connection_lost" ? await hearing.first((items) => endOf(items, "first"), 1) : null;
    return later ?? { kind: "refused", code };
  });
  const first = (await Promise.race([end, refused])) ?? { kind: "never" };
  return { end: first, interruptedAt: progress.interruptedAt };
}

/** The code with which it is refused or given up; null: its `utterance.done` tells. */
async function speak(
  connection: Connection,
  { text, seed }: Call,
  progress: Progress,
): Promise<string | null> {
  try {
    progress.sent = text.length;
    await connection.say({ text, seed, utterance_id: "first" });
    return null;
  } catch (thrown) {
    return codeOf(thrown);
  }
}

async function stream(
  connection: Connection,
  hearing: Hearing,
  { text, seed }: Call,
  progress: Progress,
): Promise<string | null> {
  try {
    for (const token of tokensOf(text)) {
      connection.text(token, { utterance_id: "first", seed });
      progress.sent += token.length;
      await wait(TOKEN_MS);
    }
    connection.end("first");
  } catch (thrown) {
    return codeOf(thrown);
  }
  return await refusalOf(hearing);
}

/** A failure has its `utterance.done` behind its error, a refusal has none; null: nothing was refused. */
async function refusalOf(hearing: Hearing): Promise<string | null> {
  const refusal = (items: readonly Item[]): string | null => {
    for (const item of items) {
      if (item.kind !== "event") continue;
      const { event } = item;
      if (event.type === "error" && event.utterance_id === "first") return event.code;
      if (event.type === "utterance.done" && event.utterance_id === "first") return "";
    }
    return null;
  };
  const code = await hearing.first(refusal, END_DEADLINE_MS);
  if (code === null || code === "") return null;
  const end = await hearing.first((items) => endOf(items, "first"), DONE_BEHIND_ERROR_MS);
  return end === null ? code : null;
}

function codeOf(thrown: unknown): string {
  if (thrown instanceof VoicewireError) return thrown.code;
  throw thrown;
}

async function interruptLater(
  connection: Connection,
  hearing: Hearing,
  ms: number,
  progress: Progress,
): Promise<void> {
  await hearing.first((items) => (items.some(({ kind }) => kind === "frame") ? true : null), END_DEADLINE_MS);
  await wait(ms);
  // What has ended meanwhile can't be interrupted: that is no fault.
  if (!connection.isOpen) return;
  progress.interruptedAt = progress.sent;
  await connection.interrupt({ utterance_id: "first" }).catch(codeOf);
}

function endOf(items: readonly Item[], utteranceId: string): End | null {
  for (const item of items) {
    if (item.kind === "event") {
      const { event } = item;
      if (event.type === "utterance.done" && event.utterance_id === utteranceId)
        return { kind: "done", event };
    } else if (item.kind === "joined" && isForgotten(item))
      return { kind: "refused", code: "connection_lost" };
  }
  return null;
}

/** The session is another one: nothing of the utterance comes any more, and the client says so. */
function isForgotten(item: Extract<Item, { kind: "joined" }>): boolean {
  return item.gapMs === null && !item.isTakenOver;
}

/** Says the next text until it is whole; returns when its first frame came, null: it never was. */
async function firstFrameOfNext(first: Connection, heard: Hearing, call: Call): Promise<number | null> {
  const endMs = monotonicMs() + WELL_DEADLINE_MS;
  let [connection, hearing] = [first, heard];
  let isClosed = false;
  void first.closed.then(() => {
    isClosed = true;
  });
  for (let tries = 1; monotonicMs() < endMs; tries += 1) {
    if (isClosed) {
      connection = await joined(call, `${call.session}-${tries}`);
      hearing = new Hearing(connection);
      isClosed = false;
      void connection.closed.then(() => {
        isClosed = true;
      });
    }
    const from = hearing.items.length;
    const utteranceId = `next-${tries}`;
    const saying = connection.say({ text: NEXT_TEXT, utterance_id: utteranceId }).then(() => null, codeOf);
    const code = await Promise.race([saying, wait(endMs - monotonicMs()).then(() => "never ended")]);
    const items = hearing.items.slice(from);
    const end = endOf(items, utteranceId);
    if (code === null && end !== null) {
      const verdict = judge(items, { utteranceId, text: NEXT_TEXT, truth: null, interruptedAt: null }, end);
      if (verdict.outcome === "whole" && verdict.shortfalls.length === 0) {
        if (connection !== first) await left(connection);
        return items.find(({ kind }) => kind === "frame")?.wallMs ?? null;
      }
    }
    await wait(RETRY_MS);
  }
  return null;
}

/** An utterance that came to its end: its longest silence behind the fault. Any other one: until the next is heard. */
function wellAfter(of: {
  readonly verdict: Verdict;
  readonly items: readonly Item[];
  readonly struckMs: number;
  readonly nextMs: number | null;
}): number | null {
  const { verdict, items, struckMs, nextMs } = of;
  if (nextMs === null) return null;
  if (!CAME_TO_ITS_END.has(verdict.outcome)) return Math.max(0, nextMs - struckMs);
  const done = items.find(isDone) ?? null;
  let lastMs = struckMs;
  let longestMs = 0;
  for (const { kind, wallMs } of items) {
    if (kind !== "frame" || wallMs < struckMs || (done !== null && wallMs > done.wallMs)) continue;
    longestMs = Math.max(longestMs, wallMs - lastMs);
    lastMs = wallMs;
  }
  return longestMs;
}

function isDone(item: Item): boolean {
  return item.kind === "event" && item.event.type === "utterance.done" && item.event.utterance_id === "first";
}
