/** Where a session is, in a cluster: asked before anything joins it or opens it. */
import type { Cluster } from "../cluster/cluster.ts";
import type { PlaceAsking, SessionPlace } from "../session/place.ts";
import { checkId } from "../session/sessions.ts";

/** What the other nodes are asked. */
export type LiveCluster = Pick<Cluster, "known" | "place" | "connect" | "serve">;

/**
 * Calls `enter` with the session's place, at once where that is known. Where it is nowhere and may be opened, `enter` may open it here.
 * Rejects with invalid_field for an id that can't be one, with what `enter` throws, and as `Cluster.place` does.
 */
export async function enterSession<T>(
  cluster: LiveCluster | null,
  { sessionId, ...asking }: PlaceAsking & { readonly sessionId: string },
  enter: (place: SessionPlace) => T,
): Promise<T> {
  const known = cluster === null ? "here" : cluster.known(checkId(sessionId));
  if (cluster === null || known !== undefined) return enter(known ?? "here");
  return cluster.place(sessionId, asking, enter);
}
