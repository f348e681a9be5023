/**
 * Where decoded samples go: to the loudspeaker through Web Audio, or, until the person has touched the page, nowhere,
 * at the same pace, so that the captions run without the sound.
 *
 * Scheduled buffer sources and no AudioWorklet: they start on exact samples, keep playing while the main thread is
 * busy, and work where the page is not a secure context (a phone that opens http://192.168.x.x), where worklets do not.
 */

export const SAMPLE_RATE = 48_000;
/** Fade at a cut: short enough to feel immediate, long enough not to click. */
const FADE_S = 0.012;

export interface AudioOut {
  /** The clock that `schedule` goes by, seconds. */
  nowS(): number;
  /** The moment of that clock that is played right now, seconds: behind `nowS` by the device's latency. */
  playedS(): number;
  schedule(samples: Float32Array<ArrayBuffer>, startS: number): void;
  /** Stops everything scheduled, with a short fade. */
  silence(): void;
  /** Level of what is played now, 0-1 (root mean square). */
  level(): number;
  close(): void;
}

export class SilentOut implements AudioOut {
  nowS(): number {
    return performance.now() / 1000;
  }
  playedS(): number {
    return this.nowS();
  }
  schedule(): void {
    // Nobody listens yet.
  }
  silence(): void {
    // Nothing is sounding.
  }
  level(): number {
    return 0;
  }
  close(): void {
    // Nothing is held.
  }
}

export class SpeakerOut implements AudioOut {
  readonly #context: AudioContext;
  readonly #analyser: AnalyserNode;
  readonly #scope: Float32Array<ArrayBuffer>;
  readonly #sources = new Set<AudioBufferSourceNode>();
  #gain: GainNode;
  #latestPlayedS = 0;

  /** `context` is running: see `openSpeaker`. */
  constructor(context: AudioContext) {
    this.#context = context;
    this.#analyser = context.createAnalyser();
    this.#analyser.fftSize = 1024;
    this.#scope = new Float32Array(this.#analyser.fftSize);
    this.#analyser.connect(context.destination);
    this.#gain = this.#newGain();
  }

  nowS(): number {
    return this.#context.currentTime;
  }

  playedS(): number {
    const { contextTime = 0, performanceTime = 0 } = this.#context.getOutputTimestamp?.() ?? {};
    const playedS =
      contextTime > 0 && performanceTime > 0
        ? contextTime + (performance.now() - performanceTime) / 1000
        : this.#context.currentTime - (this.#context.outputLatency || this.#context.baseLatency || 0);
    // The extrapolation overshoots while the context is suspended, and browsers correct it backwards at times.
    this.#latestPlayedS = Math.max(this.#latestPlayedS, Math.min(playedS, this.#context.currentTime));
    return this.#latestPlayedS;
  }

  schedule(samples: Float32Array<ArrayBuffer>, startS: number): void {
    const buffer = this.#context.createBuffer(1, samples.length, SAMPLE_RATE);
    buffer.copyToChannel(samples, 0);
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain);
    source.addEventListener("ended", () => {
      source.disconnect();
      this.#sources.delete(source);
    });
    this.#sources.add(source);
    source.start(startS);
  }

  silence(): void {
    const nowS = this.#context.currentTime;
    const old = this.#gain;
    old.gain.setValueAtTime(1, nowS);
    old.gain.linearRampToValueAtTime(0, nowS + FADE_S);
    for (const source of this.#sources) source.stop(nowS + FADE_S);
    this.#gain = this.#newGain();
  }

  level(): number {
    this.#analyser.getFloatTimeDomainData(this.#scope);
    let sum = 0;
    for (const sample of this.#scope) sum += sample * sample;
    return Math.sqrt(sum / this.#scope.length);
  }

  close(): void {
    for (const source of this.#sources) source.stop();
    this.#context.close().catch(() => undefined);
  }

  #newGain(): GainNode {
    const gain = this.#context.createGain();
    gain.connect(this.#analyser);
    return gain;
  }
}

/** Opens the loudspeaker; call it from a gesture. null where the browser still refuses to make a sound. */
export async function openSpeaker(): Promise<SpeakerOut | null> {
  const context = new AudioContext({ sampleRate: SAMPLE_RATE, latencyHint: "interactive" });
  // Without a gesture resume() stays pending instead of failing.
  const patience = new Promise((resolve) => setTimeout(resolve, 1500));
  await Promise.race([context.resume(), patience]);
  if (context.state === "running") return new SpeakerOut(context);
  context.close().catch(() => undefined);
  return null;
}
