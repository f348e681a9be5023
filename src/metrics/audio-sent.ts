/** Audio that was handed to listeners, by its format: a fixed set of names, so that the series are bounded. */

/** What was sent in one format; the hot path adds to it. */
export interface SentAudio {
  bytes: number;
  ms: number;
}

export class AudioSent {
  readonly #byFormat = new Map<string, SentAudio>();

  /** The same object at each call. */
  of(format: string): SentAudio {
    let sent = this.#byFormat.get(format);
    if (sent === undefined) {
      sent = { bytes: 0, ms: 0 };
      this.#byFormat.set(format, sent);
    }
    return sent;
  }

  get byFormat(): ReadonlyMap<string, Readonly<SentAudio>> {
    return this.#byFormat;
  }
}
