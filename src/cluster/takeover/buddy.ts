/** Which node goes on with another one's sessions when that has died. */
import { createHash } from "node:crypto";
import type { NodeView } from "../bus/node-registry.ts";

/**
 * The incarnation of the node that is told of `incarnation`'s sessions; null where there is no other. It stays as long as it may,
 * or all would be told again; a new one is chosen by its hash, so that nodes are shared out.
 */
export function chooseBuddy(
  incarnation: string,
  nodes: readonly NodeView[],
  current: string | null,
): string | null {
  const able = nodes
    .filter((node) => node.incarnation !== incarnation && node.state === "alive" && !node.facts.isDraining)
    .map((node) => node.incarnation);
  // One that is late for a moment is not given up: it may be the bus.
  const isKept = nodes.some(
    (node) => node.incarnation === current && node.state === "suspect" && !node.facts.isDraining,
  );
  if (current !== null && (isKept || able.includes(current))) return current;
  let best: { readonly rank: string; readonly incarnation: string } | null = null;
  for (const candidate of able) {
    const rank = createHash("sha256").update(`${incarnation} ${candidate}`).digest("hex");
    if (best === null || rank > best.rank) best = { rank, incarnation: candidate };
  }
  return best?.incarnation ?? null;
}
