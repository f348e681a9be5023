/** What the fixture of that name is started with. */
export interface GovernorUpstreamOptions {
  /** Requests of one model that it lets through at once. */
  readonly limit: number;
  /** From a request to the headers and first audio of its answer, and from there to its end, ms. */
  readonly headMs: number;
  readonly restMs: number;
}
