/** A telephone with a UDP port of its own: it keeps every packet, and sends what a test says. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { RtpPacketizer, rtpPayload } from "../../src/audio/containers/rtp.ts";
import { parseRtp, type RtpPacket } from "../../src/audio/containers/rtp-reader.ts";
import { until } from "../helpers/until.ts";

const PCMU_SILENCE = 0xff;
const LAST = "the last datagram";

export class RtpPhone implements AsyncDisposable {
  readonly packets: RtpPacket[] = [];
  readonly socket: Socket = createSocket("udp4");
  readonly #streams = new Map<number, RtpPacketizer>();
  #lasts = 0;
  #isClosed = false;

  static async open(port = 0): Promise<RtpPhone> {
    const phone = new RtpPhone();
    phone.socket.on("message", (bytes) => {
      if (bytes.toString() === LAST) phone.#lasts += 1;
      const packet = parseRtp(new Uint8Array(bytes));
      if (packet !== null) phone.packets.push(packet);
    });
    phone.socket.bind(port, "127.0.0.1");
    await once(phone.socket, "listening");
    return phone;
  }

  get port(): number {
    return this.socket.address().port;
  }
  /** As `remote` names it. */
  get address(): string {
    return `127.0.0.1:${this.port}`;
  }
  /** From the first packet that is not silence. */
  get speech(): Buffer {
    const first = this.packets.findIndex(({ payload }) => payload.some((byte) => byte !== PCMU_SILENCE));
    return first < 0
      ? Buffer.alloc(0)
      : Buffer.concat(this.packets.slice(first).map(({ payload }) => payload));
  }

  /** 20 ms of mu-law. */
  say(port: number, value: number, ssrc = 99, address = "127.0.0.1"): void {
    this.socket.send(this.#stream(ssrc).wrap(new Uint8Array(160).fill(value), false), port, address);
  }

  send(port: number, bytes: Uint8Array | string): void {
    this.socket.send(bytes, port, "127.0.0.1");
  }

  /** Resolves when all that has been sent to it so far has come in: loopback keeps the order. */
  async settled(): Promise<void> {
    const lasts = this.#lasts + 1;
    const sender = createSocket("udp4");
    sender.send(LAST, this.port, "127.0.0.1");
    await until("the last datagram comes", () => this.#lasts === lasts);
    sender.close();
  }

  /** Its port answers with ICMP from then on. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.socket.close();
    await once(this.socket, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #stream(ssrc: number): RtpPacketizer {
    let stream = this.#streams.get(ssrc);
    if (stream === undefined) {
      // Its numbers wrap soon.
      stream = new RtpPacketizer({
        ...rtpPayload("ulaw_8000"),
        samplesPerFrame: 160,
        ssrc,
        sequence: 65_534,
        timestamp: 5,
      });
      this.#streams.set(ssrc, stream);
    }
    return stream;
  }
}
