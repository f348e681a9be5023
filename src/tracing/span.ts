/**
 * One span: something that was done, from when to when, and what happened in it. It becomes the JSON of OTLP once, when
 * it ends; behind that nothing of it is kept. Until then it is what it was given: pieces of JSON, which live as long as an
 * utterance, would cost the garbage collector more than all the rest of it.
 */
import type { TraceContext } from "../kit/traceparent.ts";

export type AttributeValue = string | number | boolean | readonly string[];
/** undefined: it is left out. */
export type Attributes = Readonly<Record<string, AttributeValue | null | undefined>>;

/** OTLP's `SpanKind`: who was asked, and who asks. */
export const SPAN_KINDS = { server: 2, client: 3 } as const;
export type SpanKind = keyof typeof SPAN_KINDS;

const STATUS_ERROR = 2;

export interface SpanOptions {
  readonly name: string;
  readonly kind: SpanKind;
  readonly context: TraceContext;
  /** Id of the span in which it stands; null: it is the first of its trace. */
  readonly parentSpanId: string | null;
  /** Clock ms. */
  readonly startMs: number;
  /** What the clock's 0 is in Unix time, ms, when it began: later changes of the wall clock do not make it longer. */
  readonly epochMs: number;
  readonly attributes: Attributes;
  /** Takes its JSON. */
  readonly deliver: (json: string) => void;
  /** Begins a span within this one. */
  readonly child: (parent: Span, begun: ChildSpan) => Span;
}

export interface ChildSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly startMs: number;
  readonly attributes: Attributes;
}

interface SpanEvent {
  readonly name: string;
  readonly atMs: number;
  readonly attributes: Attributes;
}

export class Span {
  readonly #options: SpanOptions;
  readonly #attributes: Attributes[];
  readonly #events: SpanEvent[] = [];
  #isEnded = false;

  constructor(options: SpanOptions) {
    this.#options = options;
    this.#attributes = [options.attributes];
  }

  get context(): TraceContext {
    return this.#options.context;
  }

  child(begun: ChildSpan): Span {
    return this.#options.child(this, begun);
  }

  /** What is known later. A name is to be said once. */
  set(attributes: Attributes): void {
    if (!this.#isEnded) this.#attributes.push(attributes);
  }

  /** Something that happened at `atMs` of the clock. */
  event(name: string, atMs: number, attributes: Attributes = {}): void {
    if (!this.#isEnded) this.#events.push({ name, atMs, attributes });
  }

  /** `error`: a code, no text of a client; null: it went well. The first call counts. */
  end(endMs: number, error: string | null = null): void {
    if (this.#isEnded) return;
    if (error !== null) this.set({ "error.type": error });
    this.#isEnded = true;
    const { name, kind, context, parentSpanId, startMs } = this.#options;
    const parent = parentSpanId === null ? "" : `"parentSpanId":"${parentSpanId}",`;
    const status = error === null ? "{}" : `{"code":${STATUS_ERROR},"message":${JSON.stringify(error)}}`;
    const attributes = this.#attributes.reduce((json, more) => joined(json, attributesJson(more)), "");
    const events = this.#events.map((event) => this.#eventJson(event)).join(",");
    this.#options.deliver(
      `{"traceId":"${context.traceId}","spanId":"${context.spanId}",${parent}"flags":1,"name":${quoted(name)},` +
        `"kind":${SPAN_KINDS[kind]},"startTimeUnixNano":"${this.#nanos(startMs)}",` +
        `"endTimeUnixNano":"${this.#nanos(Math.max(startMs, endMs))}",` +
        `"attributes":[${attributes}],"events":[${events}],"status":${status}}`,
    );
  }

  #eventJson({ name, atMs, attributes }: SpanEvent): string {
    return `{"timeUnixNano":"${this.#nanos(atMs)}","name":${quoted(name)},"attributes":[${attributesJson(attributes)}]}`;
  }

  /** Unix time, ns. It does not fit into a number. */
  #nanos(clockMs: number): string {
    const ms = clockMs + this.#options.epochMs;
    const wholeMs = Math.floor(ms);
    const micros = Math.floor((ms - wholeMs) * 1000);
    return `${wholeMs}${String(micros).padStart(3, "0")}000`;
  }
}

/** OTLP's `KeyValue`s, with commas. */
export function attributesJson(attributes: Attributes): string {
  let json = "";
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue;
    json += `${json === "" ? "" : ","}{"key":${quoted(key)},"value":${valueJson(value)}}`;
  }
  return json;
}

/** OTLP's `AnyValue`. Whole numbers are text in it, as they may have 64 bits. */
function valueJson(value: AttributeValue): string {
  if (typeof value === "string") return `{"stringValue":${quoted(value)}}`;
  if (typeof value === "boolean") return `{"boolValue":${value}}`;
  if (typeof value !== "number") {
    return `{"arrayValue":{"values":[${value.map((each) => valueJson(each)).join(",")}]}}`;
  }
  if (Number.isSafeInteger(value)) return `{"intValue":"${value}"}`;
  return Number.isFinite(value) ? `{"doubleValue":${value}}` : `{"stringValue":"${value}"}`;
}

/** As JSON. Most need no escaping, and looking for that is cheaper than `JSON.stringify`. */
function quoted(text: string): string {
  return /^[\w .:/-]*$/.test(text) ? `"${text}"` : JSON.stringify(text);
}

function joined(some: string, more: string): string {
  return some === "" || more === "" ? some + more : `${some},${more}`;
}
