/**
 * One span: something that was done, from when to when, and what happened in it. It becomes the JSON of OTLP once, when
 * it ends; behind that nothing of it is kept. Until then it is what it was given: pieces of JSON, which live as long as an
 * utterance, would cost the garbage collector more than all the rest of it.
 */
export type AttributeValue = string | number | boolean | readonly string[];
/** undefined: it is left out. */
export type Attributes = Readonly<Record<string, AttributeValue | null | undefined>>;

/** OTLP's `SpanKind`: who was asked, and who asks. */
export const SPAN_KINDS = { server: 2, client: 3 } as const;
export type SpanKind = keyof typeof SPAN_KINDS;

const STATUS_ERROR = 2;

/** What makes spans, and takes them when they end. */
export interface SpanHost {
  /** Takes the JSON of one that has ended. */
  deliver(json: string): void;
  /** Begins one within another. */
  child(parent: Span, begun: ChildSpan): Span;
}

/** Where a span stands. */
export interface SpanPlace {
  readonly traceId: string;
  readonly spanId: string;
  /** Id of the span in which it stands; null: it is the first of its trace. */
  readonly parentSpanId: string | null;
  /** What the clock's 0 is in Unix time, ms, when its trace began: later changes of the wall clock do not make it longer. */
  readonly epochMs: number;
}

export interface ChildSpan {
  readonly name: string;
  readonly kind: SpanKind;
  /** Clock ms. */
  readonly startMs: number;
  readonly attributes: Attributes;
}

interface SpanEvent {
  readonly name: string;
  readonly atMs: number;
  readonly attributes: Attributes;
}

export class Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly epochMs: number;
  readonly #host: SpanHost;
  readonly #begun: ChildSpan;
  readonly #parentSpanId: string | null;
  #more: Attributes[] | null = null;
  #events: SpanEvent[] | null = null;
  #isEnded = false;

  constructor(host: SpanHost, begun: ChildSpan, { traceId, spanId, parentSpanId, epochMs }: SpanPlace) {
    this.#host = host;
    this.#begun = begun;
    this.traceId = traceId;
    this.spanId = spanId;
    this.#parentSpanId = parentSpanId;
    this.epochMs = epochMs;
  }

  child(begun: ChildSpan): Span {
    return this.#host.child(this, begun);
  }

  /** What is known later. A name is to be said once. */
  set(attributes: Attributes): void {
    if (this.#isEnded) return;
    this.#more ??= [];
    this.#more.push(attributes);
  }

  /** Something that happened at `atMs` of the clock. */
  event(name: string, atMs: number, attributes: Attributes = {}): void {
    if (this.#isEnded) return;
    this.#events ??= [];
    this.#events.push({ name, atMs, attributes });
  }

  /** `error`: a code, no text of a client; null: it went well. The first call counts. */
  end(endMs: number, error: string | null = null): void {
    if (this.#isEnded) return;
    if (error !== null) this.set({ "error.type": error });
    this.#isEnded = true;
    const { name, kind, startMs, attributes: first } = this.#begun;
    const parent = this.#parentSpanId === null ? "" : `"parentSpanId":"${this.#parentSpanId}",`;
    const status = error === null ? "{}" : `{"code":${STATUS_ERROR},"message":${JSON.stringify(error)}}`;
    let attributes = attributesJson(first);
    for (const more of this.#more ?? []) attributes = joined(attributes, attributesJson(more));
    let events = "";
    for (const event of this.#events ?? []) events = joined(events, this.#eventJson(event));
    this.#host.deliver(
      `{"traceId":"${this.traceId}","spanId":"${this.spanId}",${parent}"flags":1,"name":${quoted(name)},` +
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
    const ms = clockMs + this.epochMs;
    const wholeMs = Math.floor(ms);
    const micros = Math.floor((ms - wholeMs) * 1000);
    return `${wholeMs}${String(micros).padStart(3, "0")}000`;
  }
}

/** OTLP's `KeyValue`s, with commas. */
export function attributesJson(attributes: Attributes): string {
  let json = "";
  for (const key in attributes) {
    const value = attributes[key];
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
