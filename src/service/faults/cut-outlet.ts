/** A response that breaks off after so many bytes of its body: by a reset connection, or by an end that looks proper. */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Outlet } from "../http/speech/delivery.ts";

interface Cut {
  readonly kind: "reset" | "truncated";
  readonly afterBytes: number;
}

export class CutOutlet implements Outlet {
  readonly #response: ServerResponse;
  readonly #cut: Cut;
  #leftBytes: number;
  #isCut = false;

  constructor(response: ServerResponse, cut: Cut) {
    this.#response = response;
    this.#cut = cut;
    this.#leftBytes = cut.afterBytes;
  }

  get destroyed(): boolean {
    return this.#isCut || this.#response.destroyed;
  }
  get headersSent(): boolean {
    return this.#response.headersSent;
  }

  writeHead(status: number, headers: OutgoingHttpHeaders): void {
    // Chunked: with a length the early end would be seen for what it is.
    const { "content-length": _length, ...others } = headers;
    if (this.#leftBytes > 0 || this.#cut.kind === "truncated") this.#response.writeHead(status, others);
    if (this.#leftBytes === 0) this.#breakOff();
  }

  write(bytes: string | Uint8Array, onWritten: () => void = () => undefined): boolean {
    if (this.#isCut) return true;
    const whole = Buffer.from(bytes);
    if (whole.length < this.#leftBytes) {
      this.#leftBytes -= whole.length;
      return this.#response.write(whole, onWritten);
    }
    const last = whole.subarray(0, this.#leftBytes);
    this.#isCut = true;
    return this.#response.write(last, () => {
      onWritten();
      this.#breakOff();
    });
  }

  end(): void {
    if (!this.#isCut) this.#response.end();
  }

  destroy(): void {
    this.#response.destroy();
  }

  once(event: "close" | "drain", listener: () => void): void {
    this.#response.once(event, listener);
  }
  off(event: "close" | "drain", listener: () => void): void {
    this.#response.off(event, listener);
  }

  #breakOff(): void {
    this.#isCut = true;
    if (this.#cut.kind === "truncated") this.#response.end();
    else this.#response.socket?.resetAndDestroy();
  }
}
