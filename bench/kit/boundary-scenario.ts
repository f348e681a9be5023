/** What the load client does for the text boundary: tokens up to a sentence's end, timed at the one that ends it. */
import type { SegmentWaterfall } from "../../src/protocol/events.ts";
import type { BoundaryArgs, BoundaryResult, BoundarySample } from "./commands.ts";
import type { Connection } from "./connection.ts";
import { monotonicMs, wait } from "./monotonic.ts";

/** One utterance after the other on the group's first connection. */
export async function runBoundaries(
  connections: readonly Connection[],
  args: BoundaryArgs,
): Promise<BoundaryResult> {
  const [connection] = connections;
  if (connection === undefined) throw new Error("No connection for the boundary: expected an open one");
  const samples: BoundarySample[] = [];
  for (let round = 0; round < args.rounds; round += 1) {
    const sample = await takeRound(connection, round, args);
    if (sample !== null) samples.push(sample);
  }
  return { samples, failed: args.rounds - samples.length };
}

/** null: the utterance did not end in time. */
async function takeRound(
  connection: Connection,
  round: number,
  args: BoundaryArgs,
): Promise<BoundarySample | null> {
  const key = String(round);
  const id = `b${round}`;
  const isSpeak = args.isSpeak === true;
  const messages = args.tokens.map((token, index) =>
    JSON.stringify({
      type: isSpeak ? "speak" : "text",
      text: token.replace("{key}", `k${key}`),
      utterance_id: id,
      ...(index === 0 ? { voice_id: args.voiceId } : {}),
    }),
  );
  const isDone = utteranceDone(connection, isSpeak ? null : id, args.deadlineMs);
  for (const message of messages.slice(0, -1)) connection.send(message);
  // The tokens before are dealt with: what is timed is the one that completes the sentence.
  await wait(args.pauseMs);
  const sentMs = monotonicMs();
  connection.send(messages.at(-1) ?? "");
  if (!isSpeak) {
    await wait(args.pauseMs);
    connection.send(JSON.stringify({ type: "end", utterance_id: id }));
  }
  const done = await isDone;
  return done === null ? null : { key, sentMs, gatewayMs: gatewayMsOf(done) };
}

/** What the bench reads of the gateway's `utterance.done`. */
interface Done {
  readonly segments?: readonly SegmentWaterfall[];
}

function gatewayMsOf({ segments }: Done): number | null {
  const first = segments?.[0];
  return first === undefined ? null : first.queued_ms + first.connected_ms;
}

/** `id`: null where ends are told without it. Resolves with the event; null = it did not come in time. */
function utteranceDone(connection: Connection, id: string | null, deadlineMs: number): Promise<Done | null> {
  return new Promise((resolve) => {
    const finish = (done: Done | null): void => {
      clearTimeout(timer);
      connection.onText = null;
      resolve(done);
    };
    const timer = setTimeout(() => finish(null), deadlineMs);
    connection.onText = (text) => {
      if (text.includes('"utterance.done"') && (id === null || text.includes(`"${id}"`)))
        finish(JSON.parse(text) as Done);
    };
  });
}
