/** Calls to those who listen: what they throw stays theirs. */
import type { Logger } from "../../kit/log.ts";
import type { BusHandle, BusState } from "./bus.ts";

export function callSafely(log: Logger, what: string, call: () => void): void {
  try {
    call();
  } catch (error) {
    log.error({ err: error }, `A listener of the bus threw: ${what}`);
  }
}

/** Who hears of a bus's state, and what it does before it closes. */
export class BusListeners {
  readonly #log: Logger;
  readonly #states = new Set<{ listener: (state: BusState) => void }>();
  readonly #closers = new Set<{ action: () => Promise<void> }>();

  constructor(log: Logger) {
    this.#log = log;
  }

  onState(listener: (state: BusState) => void): BusHandle {
    const added = { listener };
    this.#states.add(added);
    return { close: () => this.#states.delete(added) };
  }

  stateIs(state: BusState): void {
    for (const { listener } of [...this.#states]) callSafely(this.#log, "state", () => listener(state));
  }

  onClose(action: () => Promise<void>): BusHandle {
    const added = { action };
    this.#closers.add(added);
    return { close: () => this.#closers.delete(added) };
  }

  /** Begins them all at once; resolves when they are done, whatever came of them. */
  async runClosers(): Promise<void> {
    const closers = [...this.#closers];
    this.#closers.clear();
    const results = await Promise.allSettled(closers.map(async ({ action }) => action()));
    for (const result of results) {
      if (result.status === "rejected")
        this.#log.warn({ err: result.reason }, "What is done before the bus closes failed");
    }
  }
}
