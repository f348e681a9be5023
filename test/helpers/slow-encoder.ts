/** Stands for the Opus encoders' threads: packets come back some turns after their frames have come, with their samples. */
import type { OpusPool } from "../../src/audio/opus-pool.ts";
import { bytesOf } from "../../src/audio/pcm.ts";

interface Work {
  readonly turn: number;
  readonly give: () => void;
}

export class SlowEncoder {
  readonly #turns: number;
  #turn = 0;
  #due: Work[] = [];

  readonly pool: OpusPool = {
    acquire: ({ frameSamples }, { packets }) => {
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
        reset: forget,
        release: forget,
      };
    },
    close: () => Promise.resolve(),
  };

  /** `turns`: 1 or more. */
  constructor(turns: number) {
    this.#turns = turns;
  }

  turn(): void {
    this.#turn += 1;
    const due = this.#due.filter(({ turn }) => turn <= this.#turn);
    this.#due = this.#due.filter(({ turn }) => turn > this.#turn);
    for (const { give } of due) give();
  }
}
