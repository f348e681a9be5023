/** What is rare enough to be put into buckets at once: answers to pings, and receipts of interruptions. */
import { Histogram, Registry } from "prom-client";

/** Upper bounds of the buckets, seconds. */
const ROUND_TRIP_S = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const RECEIPT_BOUND_S = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];

/** How it is known what a listener has heard, as receipts say it. */
const SOURCES = ["mark", "ack", "estimate"] as const;

export class Histograms {
  readonly #registry = new Registry();
  readonly #roundTrip = new Histogram({
    name: "voicewire_client_round_trip_seconds",
    help: "Times from a ping to a client of the native socket until its answer",
    buckets: ROUND_TRIP_S,
    registers: [this.#registry],
  });
  readonly #receiptBound = new Histogram({
    name: "voicewire_receipt_bound_seconds",
    help: "How far off receipts of interrupted utterances may be, by how it is known what was heard",
    labelNames: ["source"] as const,
    buckets: RECEIPT_BOUND_S,
    registers: [this.#registry],
  });

  constructor() {
    for (const source of SOURCES) this.#receiptBound.zero({ source });
  }

  observeRoundTrip(ms: number): void {
    this.#roundTrip.observe(ms / 1000);
  }

  observeReceipt(source: (typeof SOURCES)[number], boundMs: number): void {
    this.#receiptBound.observe({ source }, boundMs / 1000);
  }

  /** Prometheus text. */
  render(): Promise<string> {
    return this.#registry.metrics();
  }
}
