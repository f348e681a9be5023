/** Items that are pushed on one side and awaited on the other, in order. Unbounded: the two sides agree on a bound. */
export class AsyncQueue<T> {
  readonly #items: T[] = [];
  #failure: { readonly reason: unknown } | null = null;
  #wake: () => void = () => undefined;

  push(item: T): void {
    this.#items.push(item);
    this.#wake();
  }

  /** `next` rejects with it once all items are taken. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#wake();
  }

  /** Rejects with the signal's reason where it is aborted, even before items. One call at a time. */
  async next(signal?: AbortSignal): Promise<T> {
    for (;;) {
      signal?.throwIfAborted();
      const item = this.#items.shift();
      if (item !== undefined) return item;
      if (this.#failure !== null) throw this.#failure.reason;
      await this.#woken(signal);
    }
  }

  #woken(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      this.#wake = wake;
      signal?.addEventListener("abort", wake);
    });
  }
}
