// Plays the session's PCM frames, and knows which place of the timeline is heard now.

const RATE = 24_000;
/** Frames that come late are played this much behind, so that the next ones are not late again. */
const CUSHION_SECONDS = 0.1;

export class Player {
  #context = new AudioContext({ sampleRate: RATE });
  /** What is scheduled: `startMs` on the timeline, `at` in seconds of the audio clock. */
  #frames = [];
  #nextMs = 0;
  #nextAt = 0;

  /** Browsers let a page sound only after a click. */
  resume() {
    return this.#context.resume();
  }

  /** Where the next frame stands on the timeline. */
  moveTo(startMs) {
    this.#nextMs = startMs;
  }

  skip(ms) {
    this.#nextMs += ms;
  }

  /** One binary message: 16-bit little-endian samples. */
  push(bytes) {
    const view = new DataView(bytes);
    const count = bytes.byteLength >> 1;
    const buffer = this.#context.createBuffer(1, count, RATE);
    const samples = buffer.getChannelData(0);
    for (let i = 0; i < count; i++) samples[i] = view.getInt16(i * 2, true) / 32_768;
    const now = this.#context.currentTime;
    if (this.#nextAt < now) this.#nextAt = now + CUSHION_SECONDS;
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#context.destination);
    source.start(this.#nextAt);
    this.#frames = this.#frames.filter((frame) => frame.at + frame.seconds > now);
    this.#frames.push({ source, at: this.#nextAt, seconds: count / RATE, startMs: this.#nextMs });
    this.#nextAt += count / RATE;
    this.#nextMs += (count / RATE) * 1000;
  }

  /** What was not heard is not to be heard any more; frames go on at `nextMs`. */
  cut(nextMs) {
    for (const { source } of this.#frames) source.stop();
    this.#frames = [];
    this.#nextAt = 0;
    if (nextMs !== null) this.#nextMs = nextMs;
  }

  /** The place on the timeline that is heard now; null in silence. */
  heardMs() {
    const now = this.#context.currentTime;
    const frame = this.#frames.find(({ at, seconds }) => at <= now && now < at + seconds);
    return frame === undefined ? null : frame.startMs + (now - frame.at) * 1000;
  }
}
