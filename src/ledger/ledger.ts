/**
 * Usage as JSON lines in a file, one for each entry. Lines wait in memory for up to a second and are written whole. While
 * the disk is full they wait on, up to a bound; behind that new ones are lost and counted. Speech never waits for it.
 */
import { randomBytes } from "node:crypto";
import { type GatewayError, toGatewayError } from "../errors.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { LedgerFigures } from "../metrics/prometheus.ts";
import { LEDGER_VERSION, type LedgerEntry, type LedgerSink, type LineFacts } from "./entries.ts";
import type { LedgerFile } from "./ledger-file.ts";

const FLUSH_MS = 1000;
/** About half an hour of ten utterances a second; some 20 MB. */
const MAX_WAITING = 50_000;
/** Written in one go: what a write may leave torn is small. */
const MAX_BATCH = 500;
const CHECK_FREE_MS = 60_000;
/** Where less is free, an operator has to act. */
const LOW_BYTES = 256 * 1024 * 1024;
/** A clock that goes back by less is waited for: an hour that is over stays over. */
const MAX_HELD_MS = 3_600_000;
const CLOSE_TRIES = 3;
const NEWLINE = 10;

export interface LedgerOptions {
  readonly file: LedgerFile;
  /** What is there ends inside a line. Default false. */
  readonly endsInsideLine?: boolean;
  readonly node: string;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallMs: () => number;
  readonly log: Logger;
  /** Lines that wait at most; for tests. */
  readonly maxWaiting?: number;
}

/** `failing`: lines can't be written now. */
export type LedgerState = "ok" | "low_space" | "failing";

export class Ledger implements LedgerSink {
  readonly #options: LedgerOptions;
  readonly #maxWaiting: number;
  /** Names this process. */
  readonly #run = randomBytes(9).toString("base64url");
  #seq = 0;
  #lastMs = 0;
  #waiting: string[] = [];
  #isTorn: boolean;
  #written = 0;
  #lost = 0;
  #freeBytes: number | null = null;
  #error: GatewayError | null = null;
  #isLowNoted = false;
  #isFullNoted = false;
  #flushTimer: Timer | null = null;
  #checkTimer: Timer | null = null;
  #writing: Promise<void> | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING;
    this.#isTorn = options.endsInsideLine ?? false;
    this.#checkFree();
  }

  get figures(): LedgerFigures {
    return {
      written: this.#written,
      lost: this.#lost,
      waiting: this.#waiting.length,
      freeBytes: this.#freeBytes,
    };
  }

  get state(): LedgerState {
    if (this.#error !== null) return "failing";
    return this.#freeBytes !== null && this.#freeBytes < LOW_BYTES ? "low_space" : "ok";
  }

  add(entry: LedgerEntry): void {
    this.#seq += 1;
    if (this.#closing !== null || this.#waiting.length >= this.#maxWaiting) {
      this.#lose();
      return;
    }
    this.#waiting.push(this.#line(entry));
    this.#flushSoon();
  }

  /** Writes what waits. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  #line(entry: LedgerEntry): string {
    const facts: LineFacts = {
      v: LEDGER_VERSION,
      id: `${this.#run}-${this.#seq}`,
      seq: this.#seq,
      at: new Date(this.#nowMs()).toISOString(),
      node: this.#options.node,
    };
    return `${JSON.stringify({ ...facts, ...entry })}\n`;
  }

  /** Not before the last one, unless the clock was set back for good. */
  #nowMs(): number {
    const nowMs = this.#options.wallMs();
    if (nowMs > this.#lastMs || this.#lastMs - nowMs > MAX_HELD_MS) this.#lastMs = nowMs;
    return this.#lastMs;
  }

  #lose(): void {
    this.#lost += 1;
    if (this.#isFullNoted) return;
    this.#isFullNoted = true;
    this.#options.log.error({ waiting: this.#waiting.length }, "Lines of the ledger are lost: too many wait");
  }

  #flushSoon(): void {
    const { clock } = this.#options;
    this.#flushTimer ??= clock.at(clock.nowMs() + FLUSH_MS, () => {
      this.#flushTimer = null;
      void this.#flush();
    });
  }

  #flush(): Promise<void> {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null;
      if (this.#waiting.length > 0 && this.#closing === null) this.#flushSoon();
    });
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    let hasRoom = true;
    while (hasRoom && this.#waiting.length > 0) hasRoom = await this.#writeBatch();
  }

  /** false: not all of it could be written. What was is not written again, but for a line that was torn. */
  async #writeBatch(): Promise<boolean> {
    const lines = this.#waiting.slice(0, MAX_BATCH);
    const start = this.#isTorn ? "\n" : "";
    const bytes = Buffer.from(start + lines.join(""));
    try {
      const length = await this.#options.file.append(bytes);
      this.#took(bytes.subarray(0, length), start.length);
      if (length < bytes.length) return this.#failed(new Error("the disk is full"));
    } catch (thrown) {
      return this.#failed(thrown);
    }
    this.#recovered();
    return true;
  }

  #took(bytes: Uint8Array, startLength: number): void {
    if (bytes.length === 0) return;
    let whole = 0;
    for (const byte of bytes) if (byte === NEWLINE) whole += 1;
    this.#isTorn = bytes[bytes.length - 1] !== NEWLINE;
    const count = whole - startLength;
    this.#waiting.splice(0, count);
    this.#written += count;
  }

  #failed(thrown: unknown): false {
    const isNew = this.#error === null;
    this.#error = toGatewayError(thrown);
    if (isNew) {
      const detail = thrown instanceof Error ? thrown.message : String(thrown);
      const facts = { detail, waiting: this.#waiting.length, room: this.#maxWaiting };
      this.#options.log.error(facts, "The ledger can't be written: its lines wait in memory");
    }
    return false;
  }

  #recovered(): void {
    if (this.#error !== null) {
      this.#options.log.warn({ lost: this.#lost }, "The ledger is written again");
    }
    this.#error = null;
    this.#isFullNoted = false;
  }

  #checkFree(): void {
    const { clock, file, log } = this.#options;
    this.#checkTimer = clock.at(clock.nowMs() + CHECK_FREE_MS, () => this.#checkFree());
    file.free().then(
      (bytes) => {
        this.#freeBytes = bytes;
        const isLow = bytes < LOW_BYTES;
        if (isLow && !this.#isLowNoted)
          log.warn({ free_bytes: bytes }, "The disk of the ledger is nearly full");
        this.#isLowNoted = isLow;
      },
      (thrown: unknown) => log.debug({ err: thrown }, "Free space of the ledger's disk is not known"),
    );
  }

  async #finish(): Promise<void> {
    this.#flushTimer?.cancel();
    this.#checkTimer?.cancel();
    for (let tries = 0; tries < CLOSE_TRIES && this.#waiting.length > 0; tries += 1) await this.#flush();
    this.#lost += this.#waiting.length;
    if (this.#waiting.length > 0) {
      this.#options.log.error(
        { lost: this.#waiting.length },
        "Lines of the ledger are lost: it can't be written",
      );
    }
    this.#waiting = [];
  }
}
