/** A response of the server library whose client reads as the test says. */
import type { HttpResponse } from "uWebSockets.js";

export class FakeResponse {
  /** Bytes that the client takes before it blocks. */
  room = Number.POSITIVE_INFINITY;
  status = "";
  readonly headers: Record<string, string> = {};
  /** Each piece in order, the last one of an ended body included. */
  readonly written: Buffer[] = [];
  resumes = 0;
  state: "open" | "ended" | "closed" = "open";
  #writesInCork = 0;
  #writable: () => boolean = () => true;
  #aborted: () => void = () => undefined;

  /** As the code under test takes it. */
  get res(): HttpResponse {
    return this as unknown as HttpResponse;
  }
  get body(): Buffer {
    return Buffer.concat(this.written);
  }
  get text(): string {
    return this.body.toString("utf8");
  }

  /** The client reads: room for so many bytes more. */
  drain(room = Number.POSITIVE_INFINITY): void {
    this.room = room;
    this.#writable();
  }
  /** The client goes away. */
  abort(): void {
    this.#aborted();
  }

  getRemoteAddressAsText(): Uint8Array {
    return Buffer.from("127.0.0.1");
  }
  getProxiedRemoteAddressAsText(): Uint8Array {
    return Buffer.alloc(0);
  }
  cork(action: () => void): this {
    this.#writesInCork = 0;
    action();
    this.#writesInCork = 0;
    return this;
  }
  writeStatus(status: string): void {
    this.status = status;
  }
  writeHeader(name: string, value: string): void {
    this.headers[name] = value;
  }
  write(bytes: Uint8Array): boolean {
    this.#mustBeOpen();
    if (this.status === "") throw new Error("Written before the status");
    if (bytes.length === 0) throw new Error("An empty chunk would end the body");
    this.written.push(Buffer.from(bytes));
    this.room -= bytes.length;
    this.#writesInCork += 1;
    // In the middle of a cork the library counts its own buffer, which is empty again when the cork closes.
    return this.room >= 0 && this.#writesInCork <= 1;
  }
  end(bytes: Uint8Array | string): void {
    this.#mustBeOpen();
    this.written.push(Buffer.from(bytes as Uint8Array));
    this.state = "ended";
  }
  close(): void {
    this.#mustBeOpen();
    this.state = "closed";
  }
  resume(): void {
    this.resumes += 1;
  }
  onWritable(handler: () => boolean): void {
    this.#writable = handler;
  }
  onAborted(handler: () => void): void {
    this.#aborted = handler;
  }

  /** The library faults when a response that is over is touched. */
  #mustBeOpen(): void {
    if (this.state !== "open") throw new Error(`Touched after it was ${this.state}`);
  }
}
