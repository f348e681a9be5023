/** Asterisk's end of an AudioSocket call. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import {
  type AudioSocketEvent,
  AudioSocketReader,
  audioSocketPackets,
} from "../../src/protocol/carrier/audiosocket.ts";
import { until } from "../helpers/until.ts";

const ANY_UUID = "01234567-89ab-cdef-0123-456789abcdef";

/** What Asterisk's app does: names the call, sends the caller's voice, plays what comes. */
export class FakeAsterisk implements AsyncDisposable {
  readonly socket: Socket;
  readonly frames: Buffer[] = [];
  isHungUp = false;
  isClosed = false;
  readonly #reader = new AudioSocketReader((event) => this.#take(event));

  constructor(socket: Socket) {
    this.socket = socket;
    // The reader wants a call's name first, which only Asterisk sends.
    this.#reader.push(nameOf(ANY_UUID));
    socket.on("data", (bytes) => this.#reader.push(bytes));
    socket.on("close", () => {
      this.isClosed = true;
    });
    socket.on("error", () => undefined);
  }

  static async dial(port: number, uuid: string): Promise<FakeAsterisk> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    const asterisk = new FakeAsterisk(socket);
    socket.write(nameOf(uuid));
    return asterisk;
  }

  /** Everything that came, silence included. */
  get audio(): Buffer {
    return Buffer.concat(this.frames);
  }
  /** The last frames are silence. */
  get isSilent(): boolean {
    return this.frames.slice(-3).every((frame) => frame.every((byte) => byte === 0));
  }
  /** From the first sample of speech on. */
  get speech(): Buffer {
    const first = this.frames.findIndex((frame) => frame.some((byte) => byte !== 0));
    return first < 0 ? Buffer.alloc(0) : Buffer.concat(this.frames.slice(first));
  }

  say(value: number): void {
    this.socket.write(audioSocketPackets(0x10, [new Uint8Array(320).fill(value)]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    await until("the socket is closed", () => this.isClosed);
  }

  #take(event: AudioSocketEvent): void {
    if (event.kind === "media") this.frames.push(Buffer.from(event.audio));
    if (event.kind === "stopped") this.isHungUp = true;
    if (event.kind === "odd") throw new Error(`Asterisk would drop the call: ${event.what}`);
  }
}

export function nameOf(uuid: string): Buffer {
  return Buffer.concat([Buffer.of(1, 0, 16), Buffer.from(uuid.replaceAll("-", ""), "hex")]);
}
