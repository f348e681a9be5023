/** Where in a cluster a session is. Whoever joins one, or opens it, asks for its place first. */
import { checkId } from "./sessions.ts";

/** A session's node: this one, or the process that owns it. */
export type SessionPlace = "here" | { readonly owner: string };

export interface PlaceAsking {
  /** Who asks may open the session. */
  readonly mayOpen: boolean;
  /** Who asks can go on to another node: they have not come from one. */
  readonly mayMove: boolean;
}

/** Knows at which node each session is. */
export interface SessionDirectory {
  /** As far as it is known here; undefined: it has to be asked for. */
  known(sessionId: string): SessionPlace | undefined;
  /** See Cluster.place. */
  place(sessionId: string, asking: PlaceAsking, enter: (place: SessionPlace) => void): Promise<void>;
}

/**
 * Calls `enter` with the session's place. Where that is known, `enter` is called at once, throws at once, and null is given. Else
 * the directory is asked, and gives when it has been called: it rejects with what `enter` throws, and as `Cluster.place` does.
 * Where a session is nowhere and may be opened, `enter` may open it here. Throws invalid_field for an id that can't be one.
 * `directory` null: this node is alone.
 */
export function enterSession(
  directory: SessionDirectory | null,
  { sessionId, ...asking }: PlaceAsking & { readonly sessionId: string },
  enter: (place: SessionPlace) => void,
): Promise<void> | null {
  const known = directory === null ? "here" : directory.known(checkId(sessionId));
  if (directory !== null && known === undefined) return directory.place(sessionId, asking, enter);
  enter(known ?? "here");
  return null;
}
