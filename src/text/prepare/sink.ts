/** Takes a text piece by piece, in order and without holes, with what becomes of each piece. */
export interface CleanSink {
  /** Stays as it is. */
  keep(text: string): void;
  /** Becomes `spoken`, which is not empty; `clientLength` units, 0 = inserted. */
  put(spoken: string, clientLength: number): void;
  /** Goes. */
  drop(clientLength: number): void;
  /** Markup for the speech service: stays as it is, and nothing may be replaced in it. */
  tag(text: string): void;
  /** What stands before and what follows are apart: no replacement may span both. */
  part(): void;
}
