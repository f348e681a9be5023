/** Which request gets which faults: those of its own header, else those of the setting. */
import { type Fault, type FaultSetting, faultsAreOff, readHeader } from "./fault.ts";

interface RequestFaults {
  readonly faults: readonly Fault[];
  readonly wantsTruth: boolean;
}

const NO_FAULTS: RequestFaults = { faults: [], wantsTruth: false };

interface Active {
  readonly setting: FaultSetting;
  readonly random: () => number;
  /** Requests that may still get the faults; Infinity without a count. */
  left: number;
  /** How often each fault with `times` may still come. */
  readonly timesLeft: Map<Fault, number>;
}

/** As `FaultBoard.next`; without a board (null) a request that asks for faults is refused: ApiError 400. */
export function nextFaults(
  board: FaultBoard | null,
  header: string | readonly string[] | undefined,
): RequestFaults {
  if (board !== null) return board.next(header);
  if (header !== undefined) throw faultsAreOff();
  return NO_FAULTS;
}

export class FaultBoard {
  #active: Active | null = null;

  set(setting: FaultSetting): void {
    const timesLeft = new Map<Fault, number>();
    for (const fault of setting.faults) {
      if (fault.kind === "status" && fault.times !== undefined) timesLeft.set(fault, fault.times);
    }
    const left = setting.count ?? Number.POSITIVE_INFINITY;
    this.#active = { setting, random: createRandom(setting.seed), left, timesLeft };
  }

  clear(): void {
    this.#active = null;
  }

  /** For GET: the setting as it is in force, and how many requests are left of its count. */
  describe(): object {
    if (this.#active === null) return { faults: [] };
    const { setting, left } = this.#active;
    return { ...setting, ...(setting.count === undefined ? {} : { left }) };
  }

  /** For one speech request; `header` is its own. Throws ApiError 400 for a header that can't be read. */
  next(header: string | readonly string[] | undefined): RequestFaults {
    if (header === undefined && this.#active === null) return NO_FAULTS;
    const wantsTruth = this.#active?.setting.truth ?? false;
    if (header !== undefined) return { faults: readHeader([header].flat().join(";")), wantsTruth };
    return { faults: this.#draw(), wantsTruth };
  }

  #draw(): readonly Fault[] {
    const active = this.#active;
    if (active === null || active.left === 0) return [];
    const { setting, timesLeft } = active;
    if (active.random() >= setting.probability) return [];
    active.left -= 1;
    return setting.faults.filter((fault) => {
      const times = timesLeft.get(fault);
      if (times !== undefined) timesLeft.set(fault, Math.max(0, times - 1));
      return times !== 0;
    });
  }
}

/** Mulberry32: numbers from 0 up to 1, the same for the same seed. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
