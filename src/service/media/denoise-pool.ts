/** Who may isolate when: a few at once, a bounded queue behind them in the order of arrival, the rest is refused. */
import { GatewayError } from "../../errors.ts";
import { Refusal } from "../http/refusal.ts";
import { Seats } from "../seats.ts";
import type { Denoised } from "./denoise-messages.ts";
import { type DenoiseJob, DenoiseSeat } from "./denoise-seat.ts";

export interface DenoisePoolOptions {
  /** Jobs at once, each in a thread of its own; default 2. */
  readonly workers?: number;
  /** Jobs that may wait for their turn; default 16. */
  readonly maxWaiting?: number;
  /** How long a thread without a job is kept; default 30 s. Starting one takes a quarter of a second. */
  readonly idleMs?: number;
}

interface Idle {
  readonly seat: DenoiseSeat;
  readonly timer: NodeJS.Timeout;
}

export class DenoisePool {
  readonly #seats: Seats;
  readonly #idleMs: number;
  readonly #closing = new AbortController();
  readonly #idle: Idle[] = [];
  readonly #busy = new Set<DenoiseSeat>();

  constructor(options: DenoisePoolOptions = {}) {
    this.#seats = new Seats({ limit: options.workers ?? 2, maxWaiting: options.maxWaiting ?? 16 });
    this.#idleMs = options.idleMs ?? 30_000;
  }

  get stats(): { readonly running: number; readonly waiting: number; readonly threads: number } {
    return {
      running: this.#seats.taken,
      waiting: this.#seats.waiting,
      threads: this.#busy.size + this.#idle.length,
    };
  }

  /** As DenoiseSeat.run; besides, Refusal 429 `system_busy` where too many wait. */
  async *run(job: DenoiseJob): AsyncGenerator<Uint8Array, Denoised> {
    const signal = AbortSignal.any([job.signal, this.#closing.signal]);
    const leaveTurn = await this.#turn(signal);
    let seat: DenoiseSeat | undefined;
    try {
      seat = await this.#seat(signal);
      return yield* seat.run({ ...job, signal });
    } finally {
      if (seat !== undefined) this.#leave(seat);
      leaveTurn();
    }
  }

  /** Ends the threads; jobs fail. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(new GatewayError("draining", "Isolation ended: the service is shutting down"));
    const idle = this.#idle.splice(0);
    for (const { timer } of idle) clearTimeout(timer);
    await Promise.all([...idle.map(({ seat }) => seat.end()), ...[...this.#busy].map((seat) => seat.end())]);
  }

  /** Resolves when it is the job's turn, with what ends it. */
  async #turn(signal: AbortSignal): Promise<() => void> {
    try {
      return await this.#seats.enter(signal);
    } catch (thrown) {
      throw thrown instanceof GatewayError && thrown.code === "queue_full" ? Refusal.busy() : thrown;
    }
  }

  /** One that is idle, or a new one. */
  async #seat(signal: AbortSignal): Promise<DenoiseSeat> {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      clearTimeout(idle.timer);
      if (!idle.seat.isUsable) continue;
      this.#busy.add(idle.seat);
      return idle.seat;
    }
    const seat = new DenoiseSeat();
    this.#busy.add(seat);
    try {
      await seat.ready(signal);
      return seat;
    } catch (thrown) {
      this.#busy.delete(seat);
      await seat.end();
      throw thrown;
    }
  }

  #leave(seat: DenoiseSeat): void {
    this.#busy.delete(seat);
    if (!seat.isUsable) return;
    if (this.#closing.signal.aborted) {
      void seat.end();
      return;
    }
    const timer = setTimeout(() => {
      const at = this.#idle.findIndex((idle) => idle.seat === seat);
      if (at >= 0) this.#idle.splice(at, 1);
      void seat.end();
    }, this.#idleMs);
    timer.unref();
    this.#idle.push({ seat, timer });
  }
}
