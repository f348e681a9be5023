/** Begins spans, where their trace is to be kept, and gives them to the exporter when they end. */
import type { Clock } from "../kit/clock.ts";
import type { TraceContext } from "../kit/traceparent.ts";
import type { Sampler } from "./sampler.ts";
import { type ChildSpan, Span } from "./span.ts";
import { TraceIds } from "./trace-ids.ts";

/** Within what a span stands. */
export interface Traced {
  /** null: its trace is not kept, or it is over. */
  begin(begun: ChildSpan): Span | null;
}

export interface TracerOptions {
  readonly clock: Clock;
  readonly sampler: Sampler;
  /** Unix ms. */
  readonly wallMs: () => number;
  readonly deliver: (spanJson: string) => void;
}

export class Tracer {
  readonly #options: TracerOptions;
  readonly #ids = new TraceIds();

  constructor(options: TracerOptions) {
    this.#options = options;
  }

  /** `parent` null: its trace begins here. null: its trace is not kept. */
  begin(parent: TraceContext | null, begun: ChildSpan): Span | null {
    const traceId = parent?.traceId ?? this.#ids.traceId();
    if (!this.#options.sampler(traceId, parent)) return null;
    const { clock, wallMs } = this.#options;
    return this.#span(begun, {
      traceId,
      parentSpanId: parent?.spanId ?? null,
      epochMs: wallMs() - clock.nowMs(),
    });
  }

  /** `parent` null: each span begins a trace. */
  within(parent: TraceContext | null): Traced {
    return { begin: (begun) => this.begin(parent, begun) };
  }

  #span(begun: ChildSpan, place: { traceId: string; parentSpanId: string | null; epochMs: number }): Span {
    const { traceId, parentSpanId, epochMs } = place;
    return new Span({
      ...begun,
      context: { traceId, spanId: this.#ids.spanId(), isSampled: true },
      parentSpanId,
      epochMs,
      deliver: this.#options.deliver,
      child: ({ context }, childBegun) =>
        this.#span(childBegun, { traceId, parentSpanId: context.spanId, epochMs }),
    });
  }
}
