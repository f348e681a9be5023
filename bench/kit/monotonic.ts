/** The clock that all processes of a bench share: CLOCK_MONOTONIC, the same in every process of the machine. */

/** Milliseconds since an origin that is the same for every process of this machine; exact to well under 1 us. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
