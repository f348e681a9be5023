/** Runs the calls of the soak side by side on a clock that is turned by hand. */
import type { FakeClock } from "../../test/helpers/fake-clock.ts";
import { MemoryProbe } from "./memory.ts";
import { monotonicMs, wait } from "./monotonic.ts";
import type { Random } from "./random.ts";
import { SoakCall } from "./soak-call.ts";
import type { CountingPool, Engine } from "./soak-engine.ts";
import { SoakTally } from "./soak-tally.ts";

export const CALLS_AT_ONCE = 8;
export const UTTERANCES_A_CALL = 40;
export const SAMPLE_EVERY = 1000;
/** Steps without any end, while something speaks, after which it hangs: some ten minutes on the clock. */
const MAX_IDLE_STEPS = 6000;
/** Frames that may wait for the encoders, in real time, before the clock is turned on. */
const MAX_ENCODER_FRAMES = 200;
const ENCODER_DEADLINE_MS = 10_000;
/** Longer than anything that is kept for a while (grace, resumption). */
const AFTERLIFE_MS = 15 * 60_000;

export interface Sample {
  readonly ends: number;
  readonly heapMb: number;
  readonly rssMb: number;
}

export class Soak {
  readonly #engine: Engine;
  readonly #clock: FakeClock;
  readonly #pool: CountingPool;
  readonly #tally = new SoakTally();
  readonly #random: Random;
  readonly #probe = new MemoryProbe();
  readonly #calls = new Set<SoakCall>();
  readonly samples: Sample[] = [];
  #planned = 0;
  #callCount = 0;

  constructor(parts: {
    readonly engine: Engine;
    readonly clock: FakeClock;
    readonly pool: CountingPool;
    readonly random: Random;
  }) {
    this.#engine = parts.engine;
    this.#clock = parts.clock;
    this.#pool = parts.pool;
    this.#random = parts.random;
  }

  get tally(): SoakTally {
    return this.#tally;
  }
  get callCount(): number {
    return this.#callCount;
  }

  /** Says `utterances` in all. */
  async run(utterances: number): Promise<void> {
    let idleSteps = 0;
    while (this.#planned < utterances || this.#calls.size > 0) {
      this.#openCalls(utterances);
      const before = this.#tally.ends;
      for (const call of this.#calls) call.step();
      await this.#turn();
      this.#clock.advance(20 + this.#random.below(180));
      await this.#turn();
      await this.#encodersCaughtUp();
      this.#closeCalls();
      idleSteps = this.#tally.ends > before ? 0 : idleSteps + 1;
      if (idleSteps > MAX_IDLE_STEPS) {
        const live = [...this.#calls].reduce((total, call) => total + call.liveCount, 0);
        this.#tally.violate("utterances do not end", `${live} of ${this.#calls.size} sessions`);
        for (const call of this.#calls) call.hangUp();
        this.#calls.clear();
      }
      if (Math.floor(this.#tally.ends / SAMPLE_EVERY) > this.samples.length) await this.#sample();
    }
  }

  /** Nobody is there any more: time goes on until everything is forgotten. */
  async settle(): Promise<void> {
    for (let passed = 0; passed < AFTERLIFE_MS; passed += 30_000) {
      this.#clock.advance(30_000);
      await this.#turn();
    }
    await this.#encodersCaughtUp();
  }

  #openCalls(utterances: number): void {
    while (this.#calls.size < CALLS_AT_ONCE && this.#planned < utterances) {
      const count = Math.min(UTTERANCES_A_CALL, utterances - this.#planned);
      this.#planned += count;
      this.#callCount += 1;
      const call = new SoakCall({
        engine: this.#engine,
        id: `call-${this.#callCount}`,
        random: this.#random,
        tally: this.#tally,
        utterances: count,
      });
      this.#calls.add(call);
    }
  }

  #closeCalls(): void {
    for (const call of [...this.#calls]) {
      if (!call.isOver) continue;
      call.hangUp();
      this.#calls.delete(call);
    }
  }

  /** The upstream answers, promises settle. */
  async #turn(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  }

  /** Encoders work in real time: the clock must not run away from them. */
  async #encodersCaughtUp(): Promise<void> {
    const deadlineMs = monotonicMs() + ENCODER_DEADLINE_MS;
    while (this.#pool.framesInFlight > MAX_ENCODER_FRAMES) {
      if (monotonicMs() > deadlineMs) {
        this.#tally.violate("encoders do not answer", `${this.#pool.framesInFlight} frames wait`);
        return;
      }
      await wait(1);
    }
  }

  async #sample(): Promise<void> {
    const { heapBytes, rssBytes } = await this.#probe.take();
    this.samples.push({ ends: this.#tally.ends, heapMb: heapBytes / 2 ** 20, rssMb: rssBytes / 2 ** 20 });
  }
}
