/** What is counted of phone calls, by carrier: a fixed set of names, so that the series are bounded. */
import type { CallVia } from "../protocol/carrier/carrier.ts";

/** A connection whose first messages have not told its carrier yet. */
export type CarrierLabel = CallVia | "unknown";

export interface CarrierCounts {
  /** Connections taken, and those that are over. */
  opened: number;
  closed: number;
  /** Calls that have begun. */
  started: number;
  /** Marks asked for, and those that came back as played. */
  marks: number;
  played: number;
  clears: number;
  /** Messages that did not fit and were survived. */
  odd: number;
  /** Connections ended for what they sent, or did not send in time. */
  refused: number;
  /** Frames of the caller's voice that a speaker was too slow for. */
  callerDropped: number;
  /** RTP packets from other addresses than the peer's. */
  strangers: number;
}

const METRICS: readonly {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly read: (counts: CarrierCounts) => number;
}[] = [
  counter("calls_total", "Phone calls that have begun", (counts) => counts.started),
  {
    name: "voicewire_calls",
    type: "gauge",
    help: "Connections of carriers open now",
    read: (counts) => counts.opened - counts.closed,
  },
  counter("call_marks_total", "Marks asked of carriers", (counts) => counts.marks),
  counter("call_marks_played_total", "Marks that carriers have played", (counts) => counts.played),
  counter(
    "call_clears_total",
    "Times that a carrier was told to throw away audio",
    (counts) => counts.clears,
  ),
  counter("call_odd_messages_total", "Carriers' messages that did not fit", (counts) => counts.odd),
  counter("call_refused_total", "Carriers' connections ended for an error", (counts) => counts.refused),
  counter(
    "call_caller_frames_dropped_total",
    "Frames of callers' voices that speakers were too slow for",
    (counts) => counts.callerDropped,
  ),
  counter(
    "call_strangers_total",
    "RTP packets dropped because they are not from the peer; once the peer is known the system drops most of them uncounted",
    (counts) => counts.strangers,
  ),
];

function counter(name: string, help: string, read: (counts: CarrierCounts) => number) {
  return { name: `voicewire_${name}`, type: "counter", help, read } as const;
}

export class CallStats {
  readonly #byCarrier = new Map<CarrierLabel, CarrierCounts>();

  of(carrier: CarrierLabel): CarrierCounts {
    let counts = this.#byCarrier.get(carrier);
    if (counts === undefined) {
      counts = {
        opened: 0,
        closed: 0,
        started: 0,
        marks: 0,
        played: 0,
        clears: 0,
        odd: 0,
        refused: 0,
        callerDropped: 0,
        strangers: 0,
      };
      this.#byCarrier.set(carrier, counts);
    }
    return counts;
  }

  /** Connections open now, of all carriers. */
  get openCount(): number {
    let open = 0;
    for (const { opened, closed } of this.#byCarrier.values()) open += opened - closed;
    return open;
  }

  /** Prometheus text; a carrier that has never called has no series. */
  render(): string {
    const labels = [...this.#byCarrier.keys()].sort();
    return METRICS.flatMap(({ name, type, help, read }) => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} ${type}`,
      ...labels.map((label) => `${name}{carrier="${label}"} ${read(this.of(label))}`),
    ])
      .map((line) => `${line}\n`)
      .join("");
  }
}
