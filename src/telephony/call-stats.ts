/** What is counted of phone calls, by carrier: a fixed set of names, so that the series are bounded. */
import type { CallVia } from "../protocol/carrier/carrier.ts";

/** A connection whose carrier its first messages have not shown yet: `unknown`. */
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

const NONE: Readonly<CarrierCounts> = {
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

/** Names of the counters, behind `voicewire_`, what they say, and what they show. */
const COUNTERS: readonly (readonly [name: string, help: string, count: keyof CarrierCounts])[] = [
  ["calls_total", "Phone calls that have begun", "started"],
  ["call_marks_total", "Marks asked of carriers", "marks"],
  ["call_marks_played_total", "Marks that carriers have played", "played"],
  ["call_clears_total", "Times that a carrier was asked to throw away audio", "clears"],
  ["call_odd_messages_total", "Carriers' messages that did not fit", "odd"],
  ["call_refused_total", "Carriers' connections ended for an error", "refused"],
  [
    "call_caller_frames_dropped_total",
    "Frames of callers' voices that speakers were too slow for",
    "callerDropped",
  ],
  [
    "call_strangers_total",
    "RTP packets dropped because they are not from the peer; once the peer is known the system drops most of them uncounted",
    "strangers",
  ],
];

export class CallStats {
  readonly #byCarrier = new Map<CarrierLabel, CarrierCounts>();

  of(carrier: CarrierLabel): CarrierCounts {
    let counts = this.#byCarrier.get(carrier);
    if (counts === undefined) {
      counts = { ...NONE };
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
    const open = this.#metric("calls", "gauge", {
      help: "Connections of carriers open now",
      read: ({ opened, closed }) => opened - closed,
    });
    const counters = COUNTERS.map(([name, help, count]) =>
      this.#metric(name, "counter", { help, read: (counts) => counts[count] }),
    );
    return [open, ...counters].join("");
  }

  #metric(
    name: string,
    type: "counter" | "gauge",
    { help, read }: { readonly help: string; readonly read: (counts: CarrierCounts) => number },
  ): string {
    const series = [...this.#byCarrier]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([label, counts]) => `voicewire_${name}{carrier="${label}"} ${read(counts)}\n`);
    return `# HELP voicewire_${name} ${help}\n# TYPE voicewire_${name} ${type}\n${series.join("")}`;
  }
}
