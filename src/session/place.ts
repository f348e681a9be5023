/** Where in a cluster a session is. Whoever joins one asks for its place first. */

/** A session's node: this one, or the process that owns it. */
export type SessionPlace = "here" | { readonly owner: string };

export interface PlaceAsking {
  /** Who asks may open the session. */
  readonly mayOpen: boolean;
  /** Who asks can go on to another node: they have not come from one. */
  readonly mayMove: boolean;
}
