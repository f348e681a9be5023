/** Begins spans, where their trace is to be kept, and gives them to the exporter when they end. */
import type { Clock } from "../kit/clock.ts";
import type { TraceContext } from "../kit/traceparent.ts";
import type { Sampler } from "./sampler.ts";
import { type ChildSpan, Span, type SpanHost } from "./span.ts";
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

export class Tracer implements SpanHost {
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
    return new Span(this, begun, {
      traceId,
      spanId: this.#ids.spanId(),
      parentSpanId: parent?.spanId ?? null,
      epochMs: wallMs() - clock.nowMs(),
    });
  }

  child({ traceId, spanId: parentSpanId, epochMs }: Span, begun: ChildSpan): Span {
    return new Span(this, begun, { traceId, spanId: this.#ids.spanId(), parentSpanId, epochMs });
  }

  deliver(json: string): void {
    this.#options.deliver(json);
  }

  /** `parent` null: each span begins a trace. */
  within(parent: TraceContext | null): Traced {
    return { begin: (begun) => this.begin(parent, begun) };
  }
}
