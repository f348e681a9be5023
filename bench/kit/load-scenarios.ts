/** What the load client does on a group of connections beyond counting: turns of speech, and interruptions. */
import type {
  InterruptArgs,
  InterruptResult,
  InterruptSample,
  TurnArgs,
  TurnResult,
  TurnSample,
} from "./commands.ts";
import type { Connection } from "./connection.ts";
import { monotonicMs, wait } from "./monotonic.ts";

/** Longest wait for the first frame of an utterance that will be interrupted, ms. */
const FIRST_FRAME_DEADLINE_MS = 10_000;

interface Talker {
  readonly connection: Connection;
  readonly index: number;
}

/** Every connection speaks, waits for the end, pauses and speaks again, all at the same time. */
export async function runTurns(connections: readonly Connection[], args: TurnArgs): Promise<TurnResult> {
  const perConnection = await Promise.all(
    connections.map(async (connection, index) => {
      const samples: TurnSample[] = [];
      // Not all at once: a herd would measure its own queue.
      await wait(args.pauseMs * scatter(index, 0) * 2);
      for (let round = 0; round < args.rounds; round += 1) {
        const sample = await takeTurn({ connection, index }, { round, args });
        if (sample !== null) samples.push(sample);
        await wait(args.pauseMs * (0.5 + scatter(index, round)));
      }
      return samples;
    }),
  );
  const samples = perConnection.flat();
  return { samples, failed: connections.length * args.rounds - samples.length };
}

/** null: no frame or no end in time. */
function takeTurn(
  talker: Talker,
  turn: { readonly round: number; readonly args: TurnArgs },
): Promise<TurnSample | null> {
  const { connection } = talker;
  const key = `${talker.index}.${turn.round}`;
  return new Promise((resolve) => {
    let firstFrameMs: number | null = null;
    const sentMs = monotonicMs();
    const finish = (stampMs: number | null): void => {
      clearTimeout(timer);
      connection.onFrame = null;
      connection.onText = null;
      const sample = firstFrameMs === null ? null : { key, round: turn.round, sentMs, firstFrameMs, stampMs };
      resolve(sample);
    };
    const timer = setTimeout(() => {
      firstFrameMs = null;
      finish(null);
    }, turn.args.deadlineMs);
    connection.onFrame = (atMs) => {
      firstFrameMs ??= atMs;
    };
    connection.onText = (text) => {
      if (text.includes('"utterance.done"')) finish(stampOf(text));
    };
    connection.send(speak(turn.args, key));
  });
}

function stampOf(done: string): number | null {
  const event = JSON.parse(done) as { latency?: { first_frame_ms?: number } | null };
  return event.latency?.first_frame_ms ?? null;
}

/** Every connection speaks, is interrupted somewhere on the way, watches what still comes, and again. */
export async function runInterrupts(
  connections: readonly Connection[],
  args: InterruptArgs,
): Promise<InterruptResult> {
  const perConnection = await Promise.all(
    connections.map(async (connection, index) => {
      const samples: InterruptSample[] = [];
      await wait(args.speakMs * scatter(index, 0));
      for (let round = 0; round < args.rounds; round += 1) {
        const sample = await takeInterrupt({ connection, index }, { round, args });
        if (sample !== null) samples.push(sample);
      }
      return samples;
    }),
  );
  const samples = perConnection.flat();
  return { samples, failed: connections.length * args.rounds - samples.length };
}

async function takeInterrupt(
  talker: Talker,
  turn: { readonly round: number; readonly args: InterruptArgs },
): Promise<InterruptSample | null> {
  const { connection } = talker;
  const { args } = turn;
  const key = `${talker.index}.${turn.round}`;
  const hasBegun = nextFrame(connection);
  connection.send(speak(args, key));
  if (!(await hasBegun)) return null;
  await wait(args.speakMs * (1 + scatter(talker.index, turn.round)));
  let lastFrameMs: number | null = null;
  let receiptMs: number | null = null;
  connection.onFrame = (atMs) => {
    lastFrameMs = atMs;
  };
  connection.onText = (text, atMs) => {
    if (text.includes('"interrupted"')) receiptMs ??= atMs;
  };
  const sentMs = monotonicMs();
  connection.send(JSON.stringify({ type: "interrupt" }));
  await wait(args.watchMs);
  connection.onFrame = null;
  connection.onText = null;
  return { key, sentMs, lastFrameMs, receiptMs };
}

function nextFrame(connection: Connection): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (hasCome: boolean): void => {
      clearTimeout(timer);
      connection.onFrame = null;
      resolve(hasCome);
    };
    const timer = setTimeout(() => finish(false), FIRST_FRAME_DEADLINE_MS);
    connection.onFrame = () => finish(true);
  });
}

function speak(args: { readonly text: string; readonly voiceId: string | null }, key: string): string {
  return JSON.stringify({
    type: "speak",
    text: args.text.replace("{key}", `k${key}`),
    ...(args.voiceId === null ? {} : { voice_id: args.voiceId }),
  });
}

/** 0 to 1, the same in every run, without any pattern between neighbours. */
function scatter(index: number, round: number): number {
  const mixed = Math.imul(index + 1, 0x9e3779b1) ^ Math.imul(round + 1, 0x85ebca6b);
  return ((Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) >>> 8) & 0xffff) / 0x10000;
}
