/**
 * A node that drains gives its sessions to its buddy: those where nothing is spoken at once, others at the end of an utterance,
 * those with phone calls only at the deadline, as a carrier does not call again.
 */
import { type Clock, sleep } from "../../kit/clock.ts";

/** A session of this node, as far as its time to go is concerned. */
export interface LeavingSession {
  readonly id: string;
  readonly isIdle: boolean;
  /** A phone call is in it. */
  readonly hasCalls: boolean;
  /** The first utterance that is not over; null: none. */
  readonly currentId: string | null;
}

export interface HandOverOptions {
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly sessions: () => Iterable<LeavingSession>;
  /** Phone calls that came in here, whoever has their sessions. */
  readonly callCount: () => number;
  /** Whether another node takes them: where all drain, none does, and speech is heard to its end here. */
  readonly isTaken: () => boolean;
  /** No more is to be said here. Idempotent. */
  readonly refuseMore: () => void;
  /** Gives one away, or ends it. */
  readonly move: (sessionId: string) => Promise<void>;
}

/** So often it is looked whose time has come, ms. */
const LOOK_MS = 50;
/** Sessions that go at a time: their clients come back to other nodes spread over seconds, not all at once. */
const MOVED_AT_ONCE = 50;

/** Resolves when all have gone, and whoever has them now has answered. Calls with other nodes' sessions are waited for, too. */
export async function handOverAll(options: HandOverOptions): Promise<void> {
  const { clock, sessions, move } = options;
  const endMs = clock.nowMs() + options.deadlineMs;
  /** What was spoken of when it was looked first. */
  const spoken = new Map<string, string | null>();
  const moving = new Set<Promise<void>>();
  for (;;) {
    const isLate = clock.nowMs() >= endMs;
    const isTaken = options.isTaken();
    if (!isTaken) options.refuseMore();
    const left = [...sessions()];
    if (left.length === 0 && (isLate || options.callCount() === 0)) break;
    let moved = 0;
    for (const { id, isIdle, hasCalls, currentId } of left) {
      if (!spoken.has(id)) spoken.set(id, currentId);
      const isBetween = isIdle || (isTaken && spoken.get(id) !== currentId);
      if (!isLate && (hasCalls || !isBetween || moved >= MOVED_AT_ONCE)) continue;
      const going = move(id).finally(() => moving.delete(going));
      moving.add(going);
      moved += 1;
    }
    await sleep(clock, LOOK_MS);
  }
  await Promise.all(moving);
}
