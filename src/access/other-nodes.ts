/** What the door asks of the other nodes of a cluster. Alone there are none: nobody is asked, and nothing waits. */
export interface OtherNodes {
  /**
   * Takes a single-use token for this node: true for one of all that ask. Rejects with bus_lost, bus_timeout, bus_full,
   * each with a time after which it is worth trying again.
   */
  claimToken(name: string, untilMs: number): Promise<boolean>;
  /** It was not used here after all. */
  releaseToken(name: string): void;
}
