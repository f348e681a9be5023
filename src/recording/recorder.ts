/** Writes down what passes the seam of one session (session/tape/tape.ts), a line an entry. */
import type { Delivery } from "../delivery/listener.ts";
import { toGatewayError } from "../errors.ts";
import type { Clock } from "../kit/clock.ts";
import type { OffsetUnit } from "../protocol/vocabulary.ts";
import type { EntryName, Tape } from "../session/tape/tape.ts";
import { Deliveries, deliveredJson } from "./deliveries.ts";
import type { Encoder } from "./encode.ts";
import type { EndReason } from "./format.ts";
import type { Json } from "./json.ts";

/** Takes lines; nothing is taken once it has ended. */
export interface LineSink {
  readonly isOver: boolean;
  line(json: string): void;
  end(reason: EndReason): void;
}

export interface RecorderOptions {
  readonly clock: Clock;
  readonly encoder: Encoder;
  readonly isRedacted: boolean;
  readonly sink: LineSink;
}

/** Entries that bring texts of clients, with what is asked for them. */
const BRING_TEXT: ReadonlySet<string> = new Set(["command", "speak", "restore"]);

/** `inside`: the session runs; `outside`: it has called somebody who has not returned. */
type Where = "idle" | "inside" | "outside";

export class Recorder implements Tape {
  readonly #options: RecorderOptions;
  readonly #deliveries = new Deliveries();
  #where: Where = "idle";
  #nowMs = 0;
  #callbacks = 0;
  /** What the entry that runs has asked and told so far. */
  #items: Json[] = [];

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  nowMs(): number {
    return this.#where === "idle" ? this.#options.clock.nowMs() : this.#nowMs;
  }

  enter<T>(name: EntryName, says: readonly unknown[], run: () => T): T {
    return this.#enter(name, says, run);
  }

  callback<A extends readonly unknown[]>(name: string, run: (...args: A) => void): (...args: A) => void {
    this.#callbacks += 1;
    const numbered = `${name}#${this.#callbacks}`;
    return (...args) => this.#enter(numbered, args, () => run(...args));
  }

  tell<T>(name: string, says: readonly unknown[], answer: () => T): T {
    if (this.#where !== "inside" || this.#options.sink.isOver) return answer();
    return this.#ask(
      [name, this.#saysOf(name, says)],
      answer,
      (value) => value === undefined || value === "sent",
    );
  }

  read<T>(name: string, usual: T, answer: () => T): T {
    if (this.#where !== "inside" || this.#options.sink.isOver) return answer();
    const item: Json[] = [name, null];
    const at = this.#items.length;
    const value = this.#ask(item, answer, (got) => got === usual);
    if (item.length === 2 && this.#items.length === at + 1) this.#items.pop();
    return value;
  }

  #enter<T>(name: string, says: readonly unknown[], run: () => T): T {
    const { sink, encoder } = this.#options;
    if (sink.isOver || this.#where === "inside") return run();
    if (BRING_TEXT.has(name) && asksForNoTrace(says)) {
      sink.end("zero_retention");
      return run();
    }
    const before = { where: this.#where, items: this.#items };
    if (before.where === "idle") this.#nowMs = this.#roundedMs();
    const items: Json[] = [];
    this.#items = items;
    this.#where = "inside";
    // What is lent for the call may be gone behind it.
    const parts = encoder.parts(says);
    const entry: Json[] = [name, parts, items];
    try {
      return run();
    } catch (thrown) {
      entry.push(toGatewayError(thrown).code);
      throw thrown;
    } finally {
      this.#where = before.where;
      this.#items = before.items;
      if (before.where === "idle") sink.line(JSON.stringify([this.#nowMs, ...entry]));
      else this.#items.push({ in: entry });
    }
  }

  #ask<T>(item: Json[], answer: () => T, isUsual: (value: T) => boolean): T {
    this.#items.push(item);
    this.#where = "outside";
    try {
      const value = answer();
      if (!isUsual(value)) item.push(this.#options.encoder.value(value));
      return value;
    } catch (thrown) {
      item.push({ thrown: this.#options.encoder.error(thrown) });
      throw thrown;
    } finally {
      this.#where = "inside";
    }
  }

  #saysOf(name: string, says: readonly unknown[]): Json {
    const { encoder, isRedacted } = this.#options;
    if (name === "deliver") {
      const [connection, batch, offsets] = says as readonly [number, readonly Delivery[], OffsetUnit];
      const delivered = this.#deliveries.of(batch, offsets);
      if (!isRedacted) return deliveredJson(connection, delivered);
      // The hash of what can be guessed says what it is.
      const events = delivered.events.map((json) => JSON.stringify(encoder.value(JSON.parse(json))));
      return deliveredJson(connection, { ...delivered, hash: "", events });
    }
    if (name === "wave" && isRedacted) return [];
    return encoder.parts(says);
  }

  /** In whole microseconds, up: a timer never runs before its time. */
  #roundedMs(): number {
    return Math.max(this.#nowMs, Math.ceil(this.#options.clock.nowMs() * 1000) / 1000);
  }
}

/** A text with `enable_logging: false`, wherever it stands in what was said. */
function asksForNoTrace(value: unknown): boolean {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return false;
  if (Array.isArray(value)) return value.some(asksForNoTrace);
  return Object.entries(value).some(
    ([key, field]) => (key === "enable_logging" && field === false) || asksForNoTrace(field),
  );
}
