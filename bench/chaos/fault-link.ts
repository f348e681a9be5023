/**
 * A TCP link with faults: what comes in on its port goes to another, and what comes back is delayed, held, cut off or cut
 * into pieces, as the request that it answers was given. It passes so many bytes a second, so that each answer has a middle.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext, TLSSocket } from "node:tls";
import type { Pair } from "../../test/helpers/certificate-files.ts";
import { wait } from "../kit/monotonic.ts";
import { HttpCutter } from "./http-cutter.ts";

/** What happens to one answer. `afterBytes` counts from the first byte behind the request. */
export type AnswerFault =
  | { readonly kind: "latency"; readonly ms: number; readonly jitterMs: () => number }
  | { readonly kind: "chunks"; readonly size: () => number }
  | { readonly kind: "stall"; readonly afterBytes: number; readonly ms: number }
  | { readonly kind: "reset"; readonly afterBytes: number }
  /** `proper`: an HTTP answer in chunks ends as if it were whole. */
  | { readonly kind: "truncated"; readonly afterBytes: number; readonly proper: boolean }
  /** Nothing passes any more, either way, and no end comes; after `ms` both sides are reset. */
  | { readonly kind: "half-open"; readonly afterBytes: number; readonly ms: number };

export interface FaultLinkOptions {
  readonly targetPort: number;
  /** Finds the key of a request in what is sent: its first group. */
  readonly marker: RegExp;
  /** Asked once for each request. */
  readonly faultOf: (key: string) => AnswerFault | null;
  /** The fault has come to pass. */
  readonly onStruck: (key: string) => void;
  /** null: as fast as it comes. */
  readonly bytesPerSecond: number | null;
}

/** What new connections get: plain TCP, TLS with a certificate, or a handshake that is cut. */
export type Door = "plain" | "cut" | Pair;

const PART_BYTES = 2048;
/** By then what was written is read. */
const FLIGHT_MS = 10;
/** A marker may lie across two reads. */
const MEMORY_CHARS = 200;

export class FaultLink implements AsyncDisposable {
  readonly #options: FaultLinkOptions;
  readonly #server = createServer((socket) => this.#accept(socket));
  readonly #crossings = new Set<Crossing>();
  door: Door = "plain";

  private constructor(options: FaultLinkOptions) {
    this.#options = options;
  }

  static async open(options: FaultLinkOptions): Promise<FaultLink> {
    const link = new FaultLink(options);
    link.#server.listen(0, "127.0.0.1");
    await once(link.#server, "listening");
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resets all connections; new ones are taken. */
  cut(): void {
    for (const crossing of this.#crossings) crossing.reset();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, "close");
  }

  #accept(socket: Socket): void {
    socket.setNoDelay(true);
    if (this.door === "cut") {
      socket.on("error", () => socket.destroy());
      // Behind the client's first message: in the middle of the handshake.
      socket.once("data", () => resetNow(socket));
      return;
    }
    const crossing = new Crossing(socket, this.door, this.#options);
    this.#crossings.add(crossing);
    crossing.ended.then(() => this.#crossings.delete(crossing));
  }
}

class Crossing {
  readonly ended: Promise<void>;
  readonly #options: FaultLinkOptions;
  readonly #raw: Socket;
  readonly #near: Duplex;
  readonly #far: Socket;
  #memory = "";
  #key = "";
  #fault: AnswerFault | null = null;
  #passed = 0;
  #isStruck = false;
  #isDead = false;
  #cutter: HttpCutter | null = null;

  constructor(socket: Socket, door: Exclude<Door, "cut">, options: FaultLinkOptions) {
    this.#options = options;
    this.#raw = socket;
    this.#near = door === "plain" ? socket : secured(socket, door);
    this.#far = connect(options.targetPort, "127.0.0.1").setNoDelay(true);
    for (const end of new Set<Duplex>([socket, this.#near, this.#far]))
      end.on("error", () => this.#destroy());
    this.#near.on("data", (piece: Buffer) => this.#ask(piece));
    this.#near.on("end", () => this.#far.end());
    socket.once("close", () => this.#far.destroy());
    this.#far.once("close", () => {
      if (!this.#isDead) this.#near.end();
    });
    this.ended = new Promise((resolve) => socket.once("close", () => resolve()));
    // What breaks it off is an end like any other.
    this.#answer().catch(() => this.#destroy());
  }

  /** Both sides see a reset. */
  reset(): void {
    this.#isDead = true;
    for (const socket of [this.#raw, this.#far]) resetNow(socket);
  }

  #destroy(): void {
    this.#isDead = true;
    this.#near.destroy();
    this.#raw.destroy();
    this.#far.destroy();
  }

  #ask(piece: Buffer): void {
    const text = this.#memory + piece.toString("latin1");
    const match = this.#options.marker.exec(text);
    this.#memory = match === null ? text.slice(-MEMORY_CHARS) : "";
    if (match !== null) this.#begin(match[1] ?? "");
    if (!this.#isDead) this.#far.write(piece);
  }

  #begin(key: string): void {
    this.#key = key;
    this.#fault = this.#options.faultOf(key);
    this.#passed = 0;
    this.#isStruck = false;
    this.#cutter = this.#fault?.kind === "truncated" && this.#fault.proper ? new HttpCutter() : null;
  }

  async #answer(): Promise<void> {
    // What is left half-open is not destroyed.
    const pieces: AsyncIterable<Buffer> = this.#far.iterator({ destroyOnReturn: false });
    for await (const piece of pieces) {
      for (let at = 0; at < piece.length; at += PART_BYTES) {
        const part = piece.subarray(at, at + PART_BYTES);
        await this.#pass(part);
        if (this.#isDead) return;
        const { bytesPerSecond } = this.#options;
        if (bytesPerSecond !== null) await wait((part.length / bytesPerSecond) * 1000);
      }
    }
    this.#near.end();
  }

  async #pass(part: Buffer): Promise<void> {
    const fault = this.#fault;
    if (fault === null) return await this.#write(part);
    if (fault.kind === "latency") {
      this.#strike();
      await wait(fault.ms + fault.jitterMs());
      return await this.#write(part);
    }
    if (fault.kind === "chunks") {
      this.#strike();
      return await this.#writeInPieces(part, fault.size);
    }
    const left = fault.afterBytes - this.#passed;
    this.#passed += part.length;
    if (this.#isStruck || left >= part.length) {
      this.#cutter?.take(part);
      return await this.#write(part);
    }
    await this.#breakAt(fault, part, Math.max(0, left));
  }

  async #breakAt(
    fault: Exclude<AnswerFault, { kind: "latency" | "chunks" }>,
    part: Buffer,
    left: number,
  ): Promise<void> {
    if (this.#cutter !== null) {
      const end = this.#cutter.takeToBoundary(part, left);
      if (end === null) return await this.#write(part);
      this.#strike();
      await this.#write(part.subarray(0, end));
      await this.#write(Buffer.from("0\r\n\r\n"));
      this.#endEarly();
      return;
    }
    await this.#write(part.subarray(0, left));
    this.#strike();
    switch (fault.kind) {
      case "stall":
        await wait(fault.ms);
        return await this.#write(part.subarray(left));
      case "reset":
        // What is read together with a reset looks like an end in order to many readers.
        await wait(FLIGHT_MS);
        this.reset();
        return;
      case "truncated":
        this.#endEarly();
        return;
      case "half-open":
        this.#isDead = true;
        setTimeout(() => this.reset(), fault.ms);
        return;
    }
  }

  #endEarly(): void {
    this.#isDead = true;
    this.#near.end(() => this.#destroy());
  }

  #strike(): void {
    if (this.#isStruck) return;
    this.#isStruck = true;
    this.#options.onStruck(this.#key);
  }

  async #writeInPieces(part: Buffer, size: () => number): Promise<void> {
    for (let at = 0; at < part.length && !this.#isDead; ) {
      const length = Math.max(1, size());
      await this.#write(part.subarray(at, at + length));
      at += length;
      // A turn of the loop: each piece is a packet of its own.
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  async #write(bytes: Buffer): Promise<void> {
    if (bytes.length === 0 || this.#near.destroyed || this.#near.writableEnded) return;
    if (this.#near.write(bytes)) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        this.#near.off("drain", done).off("close", done);
        resolve();
      };
      this.#near.once("drain", done).once("close", done);
    });
  }
}

/** Node ends the connection in order first where something was just written: the other side would see no reset. */
function resetNow(socket: Socket): void {
  if (socket.destroyed) return;
  socket.destroySoon = () => socket.destroy();
  socket.resetAndDestroy();
}

function secured(socket: Socket, { certificate, key }: Pair): TLSSocket {
  const secureContext = createSecureContext({ cert: certificate, key });
  return new TLSSocket(socket, { isServer: true, secureContext });
}
