/**
 * Sends spans to a collector: OTLP over HTTP with JSON (`POST /v1/traces`). One request at a time; what ends meanwhile
 * waits in a bounded queue. A collector that is down or slow costs spans, which are counted, and nothing else.
 */
import { Agent } from "undici";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { SpanFigures } from "../metrics/prometheus.ts";
import { type Attributes, attributesJson } from "./span.ts";
import type { TracingSettings } from "./tracing-settings.ts";

/** What a collector can't do now (OTLP specification, "Retryable response codes"). */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Waits before a batch is sent again; behind the last one it is given up. */
const RETRY_DELAYS_MS = [1000, 2000, 4000, 8000];
const MAX_RETRY_DELAY_MS = 30_000;
/** So much of the collector's answer is read. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** How long the last spans may take when the gateway ends. */
const CLOSE_MS = 2000;
const FIRST_BATCH_BYTES = 64 * 1024;
/** Of UTF-8, for a unit of UTF-16. */
const MAX_BYTES_PER_UNIT = 3;
const OK_STATUS = 200;
const FIRST_ERROR_STATUS = 300;

export interface SpanExporterOptions
  extends Pick<TracingSettings, "url" | "headers" | "timeoutMs" | "delayMs" | "maxQueued" | "maxBatch"> {
  readonly resource: Attributes;
  /** What made the spans. */
  readonly scope: { readonly name: string; readonly version: string };
  readonly clock: Clock;
  readonly log: Logger;
}

export class SpanExporter {
  readonly #options: SpanExporterOptions;
  readonly #head: string;
  /** All but the last are full. */
  #waiting: SpanBatch[] = [];
  #timer: Timer | null = null;
  /** A batch is on its way. */
  #sending: Promise<void> | null = null;
  #underWay = 0;
  #sent = 0;
  #dropped = 0;
  #refused = 0;
  /** Why the last batch did not arrive; null: it did. */
  #trouble: string | null = null;
  /** Of `#dropped`, until the last batch that arrived. */
  #droppedBefore = 0;
  #closing: Promise<void> | null = null;
  readonly #end = new AbortController();
  /** One connection: batches go one by one. */
  readonly #agent = new Agent({ connections: 1 });
  #wake: (() => void) | null = null;

  constructor(options: SpanExporterOptions) {
    this.#options = options;
    const { name, version } = options.scope;
    const scope = `{"name":${JSON.stringify(name)},"version":${JSON.stringify(version)}}`;
    this.#head = `{"resourceSpans":[{"resource":{"attributes":[${attributesJson(options.resource)}]},"scopeSpans":[{"scope":${scope},"spans":[`;
  }

  get figures(): SpanFigures {
    return {
      sent: this.#sent,
      dropped: this.#dropped,
      refused: this.#refused,
      waiting: this.#waitingCount + this.#underWay,
    };
  }

  get #waitingCount(): number {
    return this.#waiting.reduce((sum, { count }) => sum + count, 0);
  }

  push(spanJson: string): void {
    const { maxQueued, maxBatch, delayMs, clock } = this.#options;
    if (this.#closing !== null || this.#waitingCount + this.#underWay >= maxQueued) {
      this.#dropped += 1;
      return;
    }
    let batch = this.#waiting.at(-1);
    if (batch === undefined || batch.count >= maxBatch) {
      batch = new SpanBatch(this.#head);
      this.#waiting.push(batch);
    }
    batch.add(spanJson);
    if (this.#sending !== null) return;
    if (batch.count >= maxBatch) this.#send();
    else this.#timer ??= clock.at(clock.nowMs() + delayMs, () => this.#send());
  }

  /** Sends what waits, for at most two seconds. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    const { clock } = this.#options;
    const deadline = clock.at(clock.nowMs() + CLOSE_MS, () => this.#giveUp());
    // A batch that waits to be sent again goes now.
    this.#wake?.();
    while (this.#sending !== null || this.#waiting.length > 0) {
      if (this.#sending === null) this.#send();
      await this.#sending;
      if (this.#end.signal.aborted) break;
    }
    deadline.cancel();
    this.#dropped += this.#waitingCount;
    this.#waiting = [];
    await this.#agent.destroy();
  }

  #giveUp(): void {
    this.#end.abort();
    this.#wake?.();
  }

  #send(): void {
    this.#timer?.cancel();
    this.#timer = null;
    const batch = this.#waiting.shift();
    if (batch === undefined) return;
    this.#underWay = batch.count;
    this.#sending = this.#deliver(batch.body(), batch.count).finally(() => {
      this.#underWay = 0;
      this.#sending = null;
      this.#goOn();
    });
  }

  #goOn(): void {
    if (this.#closing !== null || this.#waiting.length === 0) return;
    const { clock, delayMs, maxBatch } = this.#options;
    if (this.#waitingCount >= maxBatch) this.#send();
    else this.#timer ??= clock.at(clock.nowMs() + delayMs, () => this.#send());
  }

  async #deliver(body: Uint8Array, count: number): Promise<void> {
    for (const delayMs of [...RETRY_DELAYS_MS, null]) {
      const outcome = await this.#post(body);
      if (outcome.kind === "taken") {
        this.#noteTaken(count, outcome.rejected);
        return;
      }
      this.#noteTrouble(outcome.reason);
      if (outcome.kind === "refused") {
        this.#refused += count;
        return;
      }
      if (delayMs === null || this.#closing !== null) break;
      await this.#sleep(Math.min(MAX_RETRY_DELAY_MS, Math.max(delayMs, outcome.retryAfterMs)));
      if (this.#end.signal.aborted) break;
    }
    this.#dropped += count;
  }

  async #post(body: Uint8Array): Promise<Outcome> {
    const { url, headers, timeoutMs } = this.#options;
    const { origin, pathname, search } = new URL(url);
    try {
      const {
        statusCode,
        headers: answered,
        body: answer,
      } = await this.#agent.request({
        origin,
        path: pathname + search,
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        signal: AbortSignal.any([this.#end.signal, AbortSignal.timeout(timeoutMs)]),
      });
      if (statusCode >= OK_STATUS && statusCode < FIRST_ERROR_STATUS) {
        return { kind: "taken", rejected: rejectedIn(await textOf(answer)) };
      }
      await answer.dump({ limit: MAX_ANSWER_BYTES });
      const reason = `it answers ${statusCode}`;
      if (!RETRYABLE.has(statusCode)) return { kind: "refused", reason };
      return { kind: "failed", reason, retryAfterMs: secondsOf(answered["retry-after"]) * 1000 };
    } catch (thrown) {
      return { kind: "failed", reason: reasonOf(thrown), retryAfterMs: 0 };
    }
  }

  #noteTaken(count: number, rejected: number): void {
    const refused = Math.min(count, rejected);
    this.#sent += count - refused;
    this.#refused += refused;
    if (refused > 0) {
      this.#noteTrouble(`it took ${count - refused} spans of ${count}`);
      return;
    }
    const dropped = this.#dropped - this.#droppedBefore;
    if (this.#trouble !== null) this.#options.log.info({ dropped }, "The collector takes spans again");
    this.#trouble = null;
    this.#droppedBefore = this.#dropped;
  }

  /** Said once until it changes: a collector that is down is no reason to fill a log. */
  #noteTrouble(reason: string): void {
    if (this.#trouble === reason) return;
    this.#trouble = reason;
    this.#options.log.warn({ detail: reason }, "The collector does not take spans: see otlp-endpoint");
  }

  #sleep(ms: number): Promise<void> {
    const { clock } = this.#options;
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel();
        this.#wake = null;
        resolve();
      };
      const timer = clock.at(clock.nowMs() + ms, done);
      this.#wake = done;
    });
  }
}

/** Spans that leave in one request, as bytes: strings that wait would cost the garbage collector more than they do. */
class SpanBatch {
  count = 0;
  #bytes: Buffer = Buffer.allocUnsafeSlow(FIRST_BATCH_BYTES);
  #length = 0;

  constructor(head: string) {
    this.#write(head);
  }

  add(spanJson: string): void {
    this.#write(this.count === 0 ? spanJson : `,${spanJson}`);
    this.count += 1;
  }

  /** Nothing is added behind that. */
  body(): Uint8Array {
    this.#write("]}]}]}");
    return this.#bytes.subarray(0, this.#length);
  }

  #write(text: string): void {
    const needed = this.#length + text.length * MAX_BYTES_PER_UNIT;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    this.#length += this.#bytes.write(text, this.#length);
  }
}

type Outcome =
  | { readonly kind: "taken"; readonly rejected: number }
  | { readonly kind: "failed"; readonly reason: string; readonly retryAfterMs: number }
  | { readonly kind: "refused"; readonly reason: string };

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > MAX_ANSWER_BYTES) return "";
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** `partialSuccess.rejectedSpans` of the answer: 64 bits, as text or number. What can't be read rejects none. */
export function rejectedIn(answer: string): number {
  const found = /"rejectedSpans"\s*:\s*"?(\d+)/.exec(answer)?.[1];
  return found === undefined ? 0 : Number(found);
}

/** Dates are not read: they count as none. */
function secondsOf(header: string | string[] | undefined): number {
  return typeof header === "string" && /^\d{1,6}$/.test(header) ? Number(header) : 0;
}

/** A code where there is one: messages may hold the URL. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "it can't be reached";
  if (thrown.name === "TimeoutError") return "no answer in time";
  const code = "code" in thrown && typeof thrown.code === "string" ? thrown.code : thrown.name;
  return `it can't be reached (${code})`;
}
