/** Metrics of the phrase cache; none where there is no cache. */
import { Counter, Gauge, type Registry } from "prom-client";

export interface PhraseFigures {
  /** Requests answered from memory; asked of the upstream; that shared one that was on its way. */
  readonly hits: number;
  readonly misses: number;
  readonly shared: number;
  readonly bytes: number;
  readonly entries: number;
}

/** `read` is called when the metrics are asked for; null = no cache. */
export function addPhraseMetrics(registry: Registry, read: () => PhraseFigures | null): void {
  if (read() === null) return;
  const registers = [registry];
  new Counter({
    name: "voicewire_phrases_total",
    help: "Phrases asked of the cache, by what came of it",
    labelNames: ["outcome"] as const,
    registers,
    collect() {
      this.reset();
      const { hits, misses, shared } = read() ?? { hits: 0, misses: 0, shared: 0 };
      for (const [outcome, count] of Object.entries({ hit: hits, miss: misses, shared }))
        this.inc({ outcome }, count);
    },
  });
  new Gauge({
    name: "voicewire_phrase_bytes",
    help: "Memory that kept phrases take",
    registers,
    collect() {
      this.set(read()?.bytes ?? 0);
    },
  });
  new Gauge({
    name: "voicewire_phrases",
    help: "Phrases kept",
    registers,
    collect() {
      this.set(read()?.entries ?? 0);
    },
  });
}
