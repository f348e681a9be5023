/** The body of a request that is passed on: small JSON whole, so that it can be sent again; everything else as it comes. */

import type { HttpResponse } from "uWebSockets.js";
import { Readable } from "node:stream";

/** Longer JSON streams, too. */
export const MAX_WHOLE_BYTES = 1_048_576;
/** Bytes of an upload that wait for the upstream. */
export const UPLOAD_BYTES = 262_144;
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

/** What is no JSON is the upstream's to refuse. */
function modelOf(json: string): string | undefined {
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

/** What the client sends, on its way: its socket is paused while the upstream takes no more. */
export class UploadBody extends Readable {
  readonly #res: HttpResponse;
  #isPaused = false;
  /** The response may not be touched any more. */
  isOver = false;

  /** `onPiece`: something has come. */
  constructor(res: HttpResponse, onPiece: () => void) {
    super({ highWaterMark: UPLOAD_BYTES });
    this.#res = res;
    // The upstream wants no more of it: whoever waits for that learns it by other means.
    this.on("error", () => undefined);
    res.onData((chunk, isLast) => {
      onPiece();
      if (this.destroyed) return;
      // The chunk's memory is taken back when this returns.
      const bytes = Buffer.from(chunk.slice(0));
      const hasRoom = bytes.length === 0 || this.push(bytes);
      if (isLast) this.push(null);
      else if (!hasRoom && !this.isOver) {
        this.#isPaused = true;
        res.pause();
      }
    });
  }

  override _read(): void {
    this.goOn();
  }

  /** Reads from the client again: what nobody wants is read to its end, or the client could not read the answer. */
  goOn(): void {
    if (!this.#isPaused || this.isOver) return;
    this.#isPaused = false;
    this.#res.resume();
  }
}
