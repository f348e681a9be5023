/** How long each stage from text to sound takes, as Prometheus histograms: one observation a segment. */
import { Histogram, Registry } from "prom-client";

/** Upper bounds of the buckets, seconds. */
const BUCKETS_S = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

/** The stages of one segment, ms: what the protocol calls its waterfall. */
export interface StageDurations {
  readonly text_ms: number;
  readonly queued_ms: number;
  readonly connected_ms: number;
  readonly headers_ms: number;
  readonly first_byte_ms: number;
  readonly first_sound_ms: number;
  readonly first_frame_ms: number;
  readonly total_ms: number;
}

const STAGES = {
  text: "text_ms",
  queued: "queued_ms",
  connected: "connected_ms",
  headers: "headers_ms",
  first_byte: "first_byte_ms",
  first_sound: "first_sound_ms",
  first_frame: "first_frame_ms",
  total: "total_ms",
} as const satisfies Record<string, keyof StageDurations>;

export class StageTimes {
  readonly #registry = new Registry();
  readonly #histogram = new Histogram({
    name: "voicewire_stage_seconds",
    help: "Stages from the first character of a segment to its first frame",
    labelNames: ["stage"] as const,
    buckets: BUCKETS_S,
    registers: [this.#registry],
  });

  constructor() {
    for (const stage of Object.keys(STAGES)) this.#histogram.zero({ stage });
  }

  observe(waterfall: StageDurations): void {
    for (const [stage, key] of Object.entries(STAGES)) {
      this.#histogram.observe({ stage }, waterfall[key] / 1000);
    }
  }

  /** Prometheus text. */
  render(): Promise<string> {
    return this.#registry.metrics();
  }
}
