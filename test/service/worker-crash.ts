/** Ends every thread that was started since: what a service does when its workers crash. */
import type { Worker } from "node:worker_threads";

export class WorkerCrash implements Disposable {
  readonly #workers: Worker[] = [];
  readonly #onWorker = (worker: Worker): void => {
    this.#workers.push(worker);
  };

  constructor() {
    process.on("worker", this.#onWorker);
  }

  /** Threads started since. */
  get started(): number {
    return this.#workers.length;
  }

  async now(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  [Symbol.dispose](): void {
    process.off("worker", this.#onWorker);
  }
}
