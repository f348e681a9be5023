/** Waiting for something to become true, with a deadline, instead of sleeping. */

export interface UntilOptions {
  /** Default 5000. */
  readonly deadlineMs?: number;
}

/** Resolves once `condition` holds; rejects at the deadline with `what` it was that never came. */
export async function until(
  what: string,
  condition: () => boolean,
  options: UntilOptions = {},
): Promise<void> {
  const { deadlineMs = 5000 } = options;
  const startMs = performance.now();
  while (!condition()) {
    if (performance.now() - startMs > deadlineMs)
      throw new Error(`Never came within ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
