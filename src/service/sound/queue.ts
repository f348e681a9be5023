/** Who may make a sound now: a few at once, some more wait in line, the rest are refused. */

/** A request's right to be served, from its admission until `leave`. */
export interface Place {
  /** Lets another one work while this one waits for its client. */
  pause(): void;
  /** Waits for its turn; after `leave` it resolves at once. */
  resume(): Promise<void>;
  /** Idempotent. */
  leave(): void;
}

export interface QueueLimits {
  /** Sounds made at once. */
  readonly making: number;
  /** Requests that have not begun. */
  readonly waiting: number;
  /** Requests in all, those that wait for their clients included. */
  readonly open: number;
}

interface Entry {
  state: "waiting" | "making" | "paused" | "gone";
  hasBegun: boolean;
  readonly turns: (() => void)[];
}

export class SoundQueue {
  readonly #limits: QueueLimits;
  readonly #line: Entry[] = [];
  #making = 0;
  #open = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /** Requests that hold a place, whatever they do. */
  get open(): number {
    return this.#open;
  }

  get making(): number {
    return this.#making;
  }

  /** Undefined where too many are there already. Call `resume` before working. */
  enter(): Place | undefined {
    const fresh = this.#line.reduce((count, entry) => count + (entry.hasBegun ? 0 : 1), 0);
    const isFull = this.#making >= this.#limits.making && fresh >= this.#limits.waiting;
    if (isFull || this.#open >= this.#limits.open) return undefined;
    this.#open += 1;
    const entry: Entry = { state: "paused", hasBegun: false, turns: [] };
    return {
      pause: () => this.#pause(entry),
      resume: () => this.#resume(entry),
      leave: () => this.#leave(entry),
    };
  }

  #resume(entry: Entry): Promise<void> {
    if (entry.state === "gone" || entry.state === "making") return Promise.resolve();
    if (entry.state === "paused") {
      entry.state = "waiting";
      // Who has begun goes first: its client holds a half-heard sound.
      const at = entry.hasBegun ? this.#line.findIndex((other) => !other.hasBegun) : -1;
      this.#line.splice(at < 0 ? this.#line.length : at, 0, entry);
    }
    return new Promise((resolve) => {
      entry.turns.push(resolve);
      this.#next();
    });
  }

  #pause(entry: Entry): void {
    if (entry.state !== "making") return;
    entry.state = "paused";
    this.#making -= 1;
    this.#next();
  }

  #leave(entry: Entry): void {
    if (entry.state === "gone") return;
    if (entry.state === "making") this.#making -= 1;
    const at = this.#line.indexOf(entry);
    if (at >= 0) this.#line.splice(at, 1);
    entry.state = "gone";
    this.#open -= 1;
    for (const turn of entry.turns.splice(0)) turn();
    this.#next();
  }

  #next(): void {
    while (this.#making < this.#limits.making) {
      const entry = this.#line.shift();
      if (entry === undefined) return;
      entry.state = "making";
      entry.hasBegun = true;
      this.#making += 1;
      for (const turn of entry.turns.splice(0)) turn();
    }
  }
}
