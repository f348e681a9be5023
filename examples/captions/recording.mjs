// Keeps what the session says, to be heard again with its captions: silence is not on it, so its times are the timeline's.

/** About an hour. */
const MAX_BYTES = 32e6;

export class Recording {
  #url;
  #parts = [];
  #bytes = 0;
  #startMs = 0;
  #aborter = new AbortController();

  constructor(session) {
    // As it is due and not earlier: nothing is kept of what is interrupted.
    this.#url = `${session}/audio.ogg?wait=true&lead_ms=0`;
  }

  /** Resolves when the session ends, or as much is kept as may be. */
  async run() {
    const response = await fetch(this.#url, { signal: this.#aborter.signal });
    if (!response.ok) throw new Error(`The gateway answered ${response.status}`);
    this.#startMs = Number(response.headers.get("voicewire-start-ms"));
    for (const reader = response.body.getReader(); this.#bytes < MAX_BYTES; ) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#parts.push(value);
      this.#bytes += value.length;
    }
    this.#aborter.abort();
  }

  /** Where it begins on the timeline, ms. */
  get startMs() {
    return this.#startMs;
  }

  get blob() {
    return new Blob(this.#parts, { type: "audio/ogg" });
  }
}
