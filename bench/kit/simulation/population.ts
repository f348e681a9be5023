/** Sessions and who listens to each: few have many listeners, most have few. */
import type { Random } from "../random.ts";
import { defaultOf } from "./parameters.ts";

/** The listeners of the session on rank r weigh as 1 / (r + 10)^0.9. */
const RANK_SHIFT = 10;
const RANK_EXPONENT = 0.9;
const ROUNDS = 8;

/** Listeners of each session, in no order: one at least, `max-listeners` at most, `listeners` together. */
export function listenersOfSessions(sessions: number, listeners: number, random: Random): Int32Array {
  const most = defaultOf("maxListeners");
  if (listeners > sessions * most)
    throw new RangeError("More listeners than the sessions may have (max-listeners)");
  const counts = new Int32Array(sessions).fill(1);
  const weights = Float64Array.from(counts, (_, rank) => (rank + RANK_SHIFT) ** -RANK_EXPONENT);
  let left = listeners - sessions;
  for (let round = 0; round < ROUNDS && left > 0; round += 1) {
    let total = 0;
    for (let rank = 0; rank < sessions; rank += 1)
      if ((counts[rank] ?? most) < most) total += weights[rank] ?? 0;
    const share = left / total;
    for (let rank = 0; rank < sessions; rank += 1) {
      const room = most - (counts[rank] ?? most);
      const added = Math.min(room, left, Math.floor(share * (weights[rank] ?? 0)));
      counts[rank] = (counts[rank] ?? 0) + added;
      left -= added;
    }
  }
  // What rounding has left goes one by one.
  for (let rank = 0; left > 0; rank = (rank + 1) % sessions) {
    if ((counts[rank] ?? most) >= most) continue;
    counts[rank] = (counts[rank] ?? 0) + 1;
    left -= 1;
  }
  return shuffled(counts, random);
}

function shuffled(counts: Int32Array, random: Random): Int32Array {
  for (let at = counts.length - 1; at > 0; at -= 1) {
    const other = random.below(at + 1);
    const count = counts[at] ?? 0;
    counts[at] = counts[other] ?? 0;
    counts[other] = count;
  }
  return counts;
}
