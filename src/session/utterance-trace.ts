/**
 * The span of one utterance, from its acceptance to its end. Those of its requests to the upstream stand in it
 * (synthesis/request-span.ts).
 */
import type { GatewayError } from "../errors.ts";
import { readTraceparent, type TraceContext } from "../kit/traceparent.ts";
import type { Attributes, ChildSpan, Span } from "../tracing/span.ts";
import type { Traced, Tracer } from "../tracing/tracer.ts";
import type { SessionDeps } from "./session-deps.ts";
import { SPEECH_OPERATION } from "./synthesis/request-span.ts";
import type { SegmentStages } from "./synthesis/segment-stages.ts";

interface TracedUtterance {
  readonly sessionId: string;
  readonly utteranceId: string;
  readonly startMs: number;
  /** The client's span; null: it names none. */
  readonly parent: TraceContext | null;
}

/** How an utterance ended. */
interface TracedEnd {
  readonly outcome: string;
  readonly error: GatewayError | null;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** Times of its first segment; undefined: nothing was asked for. */
  readonly stages: SegmentStages | undefined;
}

export class UtteranceTrace implements Traced {
  readonly #tracer: Tracer;
  readonly #traced: TracedUtterance;
  #span: Span | null;
  #isResumed = false;

  constructor(tracer: Tracer, traced: TracedUtterance) {
    this.#tracer = tracer;
    this.#traced = traced;
    this.#span = this.#open(traced.startMs);
  }

  /** For the log; undefined: its trace is not kept, or it is over. */
  get traceId(): string | undefined {
    return this.#span?.traceId;
  }

  begin(begun: ChildSpan): Span | null {
    return this.#span?.child(begun) ?? null;
  }

  /** It was interrupted, and goes on: that is a span of its own. */
  resume(nowMs: number): void {
    this.#isResumed = true;
    this.#span ??= this.#open(nowMs);
  }

  /** Its session ends before it does. */
  abandon(endMs: number): void {
    this.end({ outcome: "abandoned", error: null, endMs, attributes: {}, stages: undefined });
  }

  /** Idempotent until it goes on. */
  end({ outcome, error, endMs, attributes, stages }: TracedEnd): void {
    const span = this.#span;
    if (span === null) return;
    this.#span = null;
    if (stages !== undefined && !this.#isResumed) noteStages(span, stages);
    if (outcome === "interrupted" || outcome === "cancelled") span.event(outcome, endMs);
    span.set({ ...attributes, "vw.outcome": outcome });
    span.end(endMs, error?.code ?? null);
  }

  #open(startMs: number): Span | null {
    const { sessionId, utteranceId, parent } = this.#traced;
    return this.#tracer.begin(parent, {
      name: "tts utterance",
      kind: "server",
      startMs,
      attributes: {
        ...SPEECH_OPERATION,
        "vw.session": sessionId,
        "vw.utterance_id": utteranceId,
        "vw.resumed": this.#isResumed ? true : undefined,
      },
    });
  }
}

function noteStages(span: Span, stages: SegmentStages): void {
  if (stages.firstByteMs > 0) span.event("first_byte", stages.firstByteMs);
  if (stages.firstSoundMs > 0) span.event("first_sound", stages.firstSoundMs);
  if (stages.firstFrameMs > 0) span.event("first_frame", stages.firstFrameMs);
}

/** undefined: nothing is traced. */
export function traceOf(
  { tracer, clock }: Pick<SessionDeps, "tracer" | "clock">,
  { sessionId, utteranceId, traceparent }: Traceable,
): UtteranceTrace | undefined {
  if (tracer === undefined) return undefined;
  const parent = readTraceparent(traceparent);
  return new UtteranceTrace(tracer, { sessionId, utteranceId, startMs: clock.nowMs(), parent });
}

interface Traceable extends Pick<TracedUtterance, "sessionId" | "utteranceId"> {
  /** As the client has it. */
  readonly traceparent: string | undefined;
}
