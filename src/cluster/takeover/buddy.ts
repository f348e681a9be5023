/** Which node goes on with another one's sessions when that has died. */
import { createHash } from "node:crypto";
import { takesSessions } from "../bus/heartbeat.ts";
import type { NodeView } from "../bus/node-registry.ts";

/**
 * The incarnation of the node that is told of `incarnation`'s sessions; null where there is no other. One of another machine is
 * better, as both may die with theirs. Each pair of nodes has a rank (rendezvous hashing): nodes are shared out, and one that
 * comes becomes the buddy of few, who have to tell it all.
 */
export function chooseBuddy(
  incarnation: string,
  nodes: readonly NodeView[],
  current: string | null,
): string | null {
  const machine = nodes.find((node) => node.incarnation === incarnation)?.facts.machine;
  // One that is late for a moment is not given up: it may be the bus.
  const others = nodes.filter(
    (node) =>
      node.incarnation !== incarnation &&
      takesSessions(node.facts) &&
      (node.state === "alive" || (node.state === "suspect" && node.incarnation === current)),
  );
  const elsewhere = others.filter((node) => node.facts.machine !== machine);
  let best: { readonly rank: string; readonly incarnation: string } | null = null;
  for (const { incarnation: candidate } of elsewhere.length > 0 ? elsewhere : others) {
    const rank = createHash("sha256").update(`${incarnation} ${candidate}`).digest("hex");
    if (best === null || rank > best.rank) best = { rank, incarnation: candidate };
  }
  return best?.incarnation ?? null;
}
