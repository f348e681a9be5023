/** How long each stage from text to sound takes, as Prometheus histograms: one observation a segment. */
/** Upper bounds of the buckets, ms. */
const BUCKETS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

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
type Stage = keyof typeof STAGES;

interface Histogram {
  /** Observations up to each bound, and beyond the last. */
  readonly counts: number[];
  sumMs: number;
  count: number;
}

export class StageTimes {
  readonly #histograms: Readonly<Record<Stage, Histogram>>;

  constructor() {
    const entries = Object.keys(STAGES).map((stage) => [
      stage,
      { counts: BUCKETS_MS.map(() => 0), sumMs: 0, count: 0 },
    ]);
    this.#histograms = Object.fromEntries(entries) as Record<Stage, Histogram>;
  }

  observe(waterfall: StageDurations): void {
    for (const stage of stageNames()) {
      const histogram = this.#histograms[stage];
      const ms = waterfall[STAGES[stage]];
      const index = BUCKETS_MS.findIndex((bound) => ms <= bound);
      if (index >= 0) histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
      histogram.sumMs += ms;
      histogram.count += 1;
    }
  }

  /** Prometheus text, seconds as its conventions want. */
  render(): string {
    const name = "voicewire_stage_seconds";
    const lines = [
      `# HELP ${name} Stages from the first character of a segment to its first frame`,
      `# TYPE ${name} histogram`,
    ];
    for (const stage of stageNames()) {
      const { counts, sumMs, count } = this.#histograms[stage];
      let below = 0;
      for (const [index, bound] of BUCKETS_MS.entries()) {
        below += counts[index] ?? 0;
        lines.push(`${name}_bucket{stage="${stage}",le="${bound / 1000}"} ${below}`);
      }
      lines.push(`${name}_bucket{stage="${stage}",le="+Inf"} ${count}`);
      lines.push(`${name}_sum{stage="${stage}"} ${sumMs / 1000}`);
      lines.push(`${name}_count{stage="${stage}"} ${count}`);
    }
    return `${lines.join("\n")}\n`;
  }
}

function stageNames(): Stage[] {
  return Object.keys(STAGES) as Stage[];
}
