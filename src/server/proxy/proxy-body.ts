/** The body of a request that is passed on: small JSON whole, so that it can be sent again; everything else as it comes. */

import type { HttpResponse } from "uWebSockets.js";
import { Readable } from "node:stream";
import type { Clock, Timer } from "../../kit/clock.ts";

/** Longer JSON streams, too. */
export const MAX_WHOLE_BYTES = 1_048_576;
/** Bytes of an upload that wait for the upstream. */
export const UPLOAD_BYTES = 262_144;
/** The server library takes a socket that is paused for 10 s for a silent one: its clock is set back so often, ms. */
const PAUSED_MS = 4000;
/** What plans limit by concurrency. */
const GENERATION =
  /^\/v1\/(text-to-speech|text-to-dialogue|sound-generation|speech-to-speech|audio-isolation)(\/|$)/;

type Headers = readonly (readonly [name: string, value: string])[];

/** Whether the body is worth holding until it is whole. */
export function isWholeJson(headers: Headers): boolean {
  const type = headerOf(headers, "content-type")?.split(";")[0]?.trim().toLowerCase();
  const length = Number(headerOf(headers, "content-length") ?? Number.NaN);
  return type === "application/json" && length <= MAX_WHOLE_BYTES;
}

/** Bytes that the client says are to come; null where it does not say. */
export function lengthOf(headers: Headers): number | null {
  const length = headerOf(headers, "content-length");
  return length === undefined || !/^\d{1,15}$/.test(length) ? null : Number(length);
}

/** Whether the body may have files: the speech service keeps them on its disk until it has answered. */
export function isForm(headers: Headers): boolean {
  return /^multipart\/form-data(?:;|\s|$)/i.test(headerOf(headers, "content-type") ?? "");
}

/** Requests of one group share the upstream's limit: the model where it is known, else the kind; "" = no generation. */
export function groupOf(method: string, path: string, json: string | null): string {
  const kind = method === "POST" ? GENERATION.exec(path.split("?")[0] ?? "")?.[1] : undefined;
  if (kind === undefined) return "";
  return (json === null ? undefined : modelOf(json)) ?? kind;
}

/** undefined: it names none. What is no JSON is the upstream's to refuse. */
export function modelOf(json: string): string | undefined {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== "object" || value === null || !("model_id" in value)) return undefined;
    return typeof value.model_id === "string" ? value.model_id.slice(0, 100) : undefined;
  } catch {
    return undefined;
  }
}

function headerOf(headers: Headers, name: string): string | undefined {
  return headers.find(([key]) => key === name)?.[1];
}

export interface UploadOptions {
  readonly clock: Clock;
  /** Something has come. */
  readonly onPiece: () => void;
  /** So many bytes have come: how long the next ones have to wait, ms. */
  readonly pass: (bytes: number) => number;
  readonly onSlowed: () => void;
}

/** What the client sends, on its way: its socket is paused while the upstream takes no more, or it sends more than it may. */
export class UploadBody extends Readable {
  readonly #res: HttpResponse;
  readonly #options: UploadOptions;
  #isFull = false;
  /** While the client has sent more than it may; null: it has not. */
  #slowTimer: Timer | null = null;
  /** While its socket is paused; null: it is not. */
  #pausedTimer: Timer | null = null;
  /** An answer has come: the client is not slowed any more. */
  #isAnswered = false;
  #isOver = false;

  constructor(res: HttpResponse, options: UploadOptions) {
    super({ highWaterMark: UPLOAD_BYTES });
    this.#res = res;
    this.#options = options;
    // The upstream wants no more of it: whoever waits for that learns it by other means.
    this.on("error", () => undefined);
    res.onData((chunk, isLast) => {
      options.onPiece();
      const waitMs = options.pass(chunk.byteLength);
      if (!isLast && waitMs > 0) this.#slow(waitMs);
      if (this.destroyed) return;
      // The chunk's memory is taken back when this returns.
      const bytes = Buffer.from(chunk.slice(0));
      const hasRoom = bytes.length === 0 || this.push(bytes);
      if (isLast) this.push(null);
      else if (!hasRoom) {
        this.#isFull = true;
        this.#pause();
      }
    });
  }

  override _read(): void {
    this.#isFull = false;
    this.#resume();
  }

  /** Reads from the client again: what nobody wants is read to its end, or the client could not read the answer. */
  goOn(): void {
    this.#isAnswered = true;
    this.#slowTimer?.cancel();
    this.#slowTimer = null;
    this._read();
  }

  /** The response may not be touched any more. Idempotent. */
  end(): void {
    this.#isOver = true;
    this.#slowTimer?.cancel();
    this.#pausedTimer?.cancel();
  }

  #slow(waitMs: number): void {
    if (this.#isAnswered || this.#isOver) return;
    this.#options.onSlowed();
    this.#pause();
    this.#slowTimer?.cancel();
    this.#waitUntil(this.#options.clock.nowMs() + waitMs);
  }

  #waitUntil(endMs: number): void {
    const { clock, onPiece } = this.#options;
    this.#slowTimer = clock.at(Math.min(endMs, clock.nowMs() + PAUSED_MS), () => {
      this.#slowTimer = null;
      // Its client is held back, and not silent.
      onPiece();
      if (clock.nowMs() >= endMs) this.#resume();
      else this.#waitUntil(endMs);
    });
  }

  #pause(): void {
    if (this.#pausedTimer !== null || this.#isOver) return;
    this.#res.pause();
    this.#stayPaused();
  }

  /** Its client is not silent, as the library's own timeout would have it. How long the upstream may read nothing is the proxy's. */
  #stayPaused(): void {
    const { clock } = this.#options;
    this.#pausedTimer = clock.at(clock.nowMs() + PAUSED_MS, () => {
      // Nothing is read in between.
      this.#res.resume();
      this.#res.pause();
      this.#stayPaused();
    });
  }

  #resume(): void {
    if (this.#pausedTimer === null || this.#isFull || this.#slowTimer !== null || this.#isOver) return;
    this.#pausedTimer.cancel();
    this.#pausedTimer = null;
    this.#res.resume();
  }
}
