/** Where a server's playhead is, asked of it: frames are then held against its own timeline. */
import type { AnchorResult } from "./commands.ts";
import type { Connection } from "./connection.ts";
import { monotonicMs } from "./monotonic.ts";

/** The quickest answer of these is believed. */
const TRIES = 3;
/** Connections that are asked at the same time: a herd would measure its own queue. */
const AT_ONCE = 10;
const DEADLINE_MS = 5000;

interface Answer {
  readonly roundTripMs: number;
  readonly originMs: number;
}

export async function anchorAll(connections: readonly Connection[]): Promise<AnchorResult> {
  const left = [...connections];
  let anchored = 0;
  let worstRoundTripMs = 0;
  const work = async (): Promise<void> => {
    for (let connection = left.pop(); connection !== undefined; connection = left.pop()) {
      const best = await bestAnswer(connection);
      if (best === null) continue;
      connection.anchor(best.originMs);
      anchored += 1;
      worstRoundTripMs = Math.max(worstRoundTripMs, best.roundTripMs);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { anchored, worstRoundTripMs };
}

async function bestAnswer(connection: Connection): Promise<Answer | null> {
  let best: Answer | null = null;
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const answer = await ask(connection);
    if (answer !== null && (best === null || answer.roundTripMs < best.roundTripMs)) best = answer;
  }
  return best;
}

/** The origin is taken at the time of asking: no later than it is, so that no frame is called early that is not. */
function ask(connection: Connection): Promise<Answer | null> {
  return new Promise((resolve) => {
    const sentMs = monotonicMs();
    const finish = (answer: Answer | null): void => {
      clearTimeout(timer);
      connection.onText = null;
      resolve(answer);
    };
    const timer = setTimeout(() => finish(null), DEADLINE_MS);
    connection.onText = (text, atMs) => {
      if (!text.includes('"pong"')) return;
      const { at_ms: playheadMs } = JSON.parse(text) as { at_ms: number };
      finish({ roundTripMs: atMs - sentMs, originMs: sentMs - playheadMs });
    };
    connection.send(JSON.stringify({ type: "ping" }));
  });
}
