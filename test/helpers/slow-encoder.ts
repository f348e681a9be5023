/** Stands for the Opus encoders' threads: packets come back some turns after their frames have come, with their samples. */
import type { OpusPool } from "../../src/audio/codecs/opus-pool.ts";
import { bytesOf } from "../../src/audio/codecs/pcm.ts";
import { GatewayError } from "../../src/errors.ts";

interface Work {
  readonly turn: number;
  readonly give: () => void;
}

export class SlowEncoder {
  readonly #turns: number;
  readonly #encoders: number;
  #taken = 0;
  #turn = 0;
  #due: Work[] = [];

  readonly pool: OpusPool = {
    acquire: ({ frameSamples }, { packets }) => {
      if (this.#taken === this.#encoders) throw new GatewayError("encoder_failed", "All encoders are taken");
      this.#taken += 1;
      let isTaken = true;
      let work: Work[] = [];
      const forget = (): void => {
        this.#due = this.#due.filter((one) => !work.includes(one));
        work = [];
      };
      return {
        framesInFlight: 0,
        push: (frames) => {
          const made = Array.from({ length: frames.length / frameSamples }, (_, index) =>
            bytesOf(frames.slice(index * frameSamples, (index + 1) * frameSamples)),
          );
          const one = { turn: this.#turn + this.#turns, give: () => packets(made) };
          work.push(one);
          this.#due.push(one);
        },
        release: () => {
          this.#taken -= isTaken ? 1 : 0;
          isTaken = false;
          forget();
        },
      };
    },
    close: () => Promise.resolve(),
  };

  /** `turns`: 1 or more. */
  constructor(turns: number, encoders = Number.POSITIVE_INFINITY) {
    this.#turns = turns;
    this.#encoders = encoders;
  }

  /** Encoders that somebody holds. */
  get taken(): number {
    return this.#taken;
  }

  turn(): void {
    this.#turn += 1;
    const due = this.#due.filter(({ turn }) => turn <= this.#turn);
    this.#due = this.#due.filter(({ turn }) => turn > this.#turn);
    for (const { give } of due) give();
  }
}
