/** Ends of phone calls for the benches: they count and time what comes, and check nothing else. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import WebSocket from "ws";
import { monotonicMs } from "./monotonic.ts";

const BYTES_PER_FRAME = 160;
const SAMPLES_PER_MS = 8;
/** A phone that sends nothing for 30 s loses its call. */
const KEEP_ALIVE_MS = 10_000;
/** How a message of audio begins on the wire. */
const MEDIA = '{"event":"media"';

/** What a process full of phones is told to do. */
export interface PhonesCommands {
  /** Twilio calls, one for each session. */
  dialTwilio(args: CallArgs): Promise<null>;
  /** RTP calls, one for each session. */
  callRtp(args: CallArgs): Promise<null>;
  /** Forgets what came of RTP so far: calls have only begun. */
  restartBeat(): null;
  beat(): BeatSummary;
  hangUp(): null;
}

interface CallArgs {
  /** The gateway's. */
  readonly port: number;
  readonly sessions: readonly string[];
}

/** When RTP packets came, all calls together. */
export interface BeatSummary {
  readonly packets: number;
  /** How far a packet is from 20 ms after the one before it, ms. */
  readonly offP50Ms: number;
  readonly offP99Ms: number;
  /** Packets that came in one burst with the one before. */
  readonly backToBack: number;
  /** RFC 3550 section 6.4.1, the 99th percentile over the calls, ms. */
  readonly jitterMs: number;
  readonly sequenceErrors: number;
  /** Frames that were left out because the sender was held up. */
  readonly skipped: number;
}

/** The application's end: speaks, and interrupts. */
export class Speaker {
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static async join(port: number, session: string): Promise<Speaker> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/live/${session}?role=speaker&events=none`);
    await once(socket, "open");
    return new Speaker(socket);
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  /** From just before a `ping` is written to its `pong`, ms: what any answer takes on the way. */
  async ping(): Promise<number> {
    const answered = new Promise<number>((resolve) => {
      const onMessage = (data: Buffer): void => {
        if (!data.toString().startsWith('{"type":"pong"')) return;
        this.#socket.off("message", onMessage);
        resolve(monotonicMs());
      };
      this.#socket.on("message", onMessage);
    });
    const startMs = monotonicMs();
    this.send({ type: "ping" });
    return (await answered) - startMs;
  }

  close(): void {
    this.#socket.terminate();
  }
}

/** What listens to a session's speech, 20 ms of mu-law a frame. */
export interface Ear {
  readonly frames: number;
  close(): void;
}

/** A listener of the native protocol that is sent as far ahead as a call. */
export async function nativeEar(port: number, session: string, leadMs: number): Promise<Ear> {
  const query = `role=listener&wait=true&format=ulaw_8000&events=none&lead_ms=${leadMs}`;
  const socket = new WebSocket(`ws://127.0.0.1:${port}/live/${session}?${query}`);
  let frames = 0;
  socket.on("message", (_, isBinary) => {
    if (isBinary) frames += 1;
  });
  await once(socket, "open");
  return {
    get frames() {
      return frames;
    },
    close: () => socket.terminate(),
  };
}

/** Twilio's end: plays nothing, and says at once that every mark was played. */
export class TwilioEar implements Ear {
  readonly #socket: WebSocket;
  readonly #streamSid: string;
  #bytes = 0;
  #marks = 0;
  /** When what has come is played, monotonic ms. */
  #playedMs: number | null = null;
  /** When the phone had nothing to play: behind how much audio, and for how long. */
  readonly gaps: { readonly heardMs: number; readonly ms: number }[] = [];
  isClosed = false;
  #onClear: (atMs: number) => void = () => undefined;

  private constructor(socket: WebSocket, streamSid: string) {
    this.#socket = socket;
    this.#streamSid = streamSid;
    socket.on("message", (data) => this.#take(String(data)));
    socket.on("close", () => {
      this.isClosed = true;
    });
  }

  static async dial(port: number, session: string, index: number): Promise<TwilioEar> {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/carrier/twilio`);
    await once(socket, "open");
    const id = index.toString(16).padStart(32, "0");
    const ear = new TwilioEar(socket, `MZ${id}`);
    socket.send(JSON.stringify({ event: "connected", protocol: "Call", version: "1.0.0" }));
    const start = {
      streamSid: `MZ${id}`,
      accountSid: `AC${id}`,
      callSid: `CA${id}`,
      tracks: ["inbound"],
      customParameters: { session },
      mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 },
    };
    ear.#send({ event: "start", start });
    return ear;
  }

  get frames(): number {
    return this.#bytes / BYTES_PER_FRAME;
  }

  /** When the next `clear` has come, by the monotonic clock, ms. */
  cleared(): Promise<number> {
    return new Promise((resolve) => {
      this.#onClear = resolve;
    });
  }

  close(): void {
    this.#socket.terminate();
  }

  #take(text: string): void {
    if (text.startsWith(MEDIA)) {
      const payload = text.slice(text.indexOf('"payload":"') + 11, text.lastIndexOf('"'));
      this.#play(Buffer.byteLength(payload, "base64"));
      return;
    }
    const message = JSON.parse(text) as { event: string; mark?: { name: string } };
    if (message.event === "clear") this.#onClear(monotonicMs());
    else if (message.event === "mark") this.#send({ event: "mark", mark: message.mark });
  }

  #play(bytes: number): void {
    const nowMs = monotonicMs();
    const heardMs = this.#bytes / SAMPLES_PER_MS;
    const fromMs = Math.max(nowMs, this.#playedMs ?? nowMs);
    if (this.#playedMs !== null && fromMs > this.#playedMs) {
      this.gaps.push({ heardMs, ms: fromMs - this.#playedMs });
    }
    this.#playedMs = fromMs + bytes / SAMPLES_PER_MS;
    this.#bytes += bytes;
  }

  #send(message: object): void {
    this.#marks += 1;
    const sequenceNumber = String(this.#marks);
    this.#socket.send(JSON.stringify({ sequenceNumber, streamSid: this.#streamSid, ...message }));
  }
}

/** An RTP phone: when each packet came, and what was wrong with their numbers. */
export class RtpEar {
  intervalsMs: number[] = [];
  packets = 0;
  sequenceErrors = 0;
  /** Frames that the sender left out because it was held up. */
  skipped = 0;
  /** Interarrival jitter as RFC 3550 section 6.4.1 counts it, ms. */
  jitterMs = 0;
  readonly #socket: Socket;
  #signOfLife: NodeJS.Timeout | null = null;
  #last: { readonly atMs: number; readonly sequence: number; readonly timestamp: number } | null = null;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("message", (packet) => this.#take(packet));
  }

  static async call(port: number, session: string): Promise<RtpEar> {
    const socket = createSocket({ type: "udp4", recvBufferSize: 1_048_576 }).bind(0, "127.0.0.1");
    await once(socket, "listening");
    const ear = new RtpEar(socket);
    const remote = `127.0.0.1:${socket.address().port}`;
    const body = JSON.stringify({ session, remote });
    const answer = await fetch(`http://127.0.0.1:${port}/carrier/rtp`, { method: "POST", body });
    if (answer.status !== 201) throw new Error(`RTP port was refused with ${answer.status}, expected 201`);
    const taken = (await answer.json()) as { readonly port: number };
    ear.#keepAlive(taken.port);
    return ear;
  }

  /** Counts from here on; the numbers go on. */
  restart(): void {
    this.intervalsMs = [];
    this.packets = 0;
    this.sequenceErrors = 0;
    this.skipped = 0;
    this.jitterMs = 0;
  }

  close(): void {
    if (this.#signOfLife !== null) clearInterval(this.#signOfLife);
    this.#socket.close();
  }

  /** Who never sends is sent to for 5 s and no longer. */
  #keepAlive(port: number): void {
    // PCMU without a payload.
    const packet = Buffer.alloc(12);
    packet.writeUInt8(0x80);
    const send = (): void => this.#socket.send(packet, port, "127.0.0.1");
    send();
    this.#signOfLife = setInterval(send, KEEP_ALIVE_MS);
  }

  #take(packet: Buffer): void {
    const now = {
      atMs: monotonicMs(),
      sequence: packet.readUInt16BE(2),
      timestamp: packet.readUInt32BE(4),
    };
    const last = this.#last;
    this.#last = now;
    this.packets += 1;
    if (last === null) return;
    const apartMs = now.atMs - last.atMs;
    const samples = (now.timestamp - last.timestamp) >>> 0;
    this.intervalsMs.push(apartMs);
    if (now.sequence !== ((last.sequence + 1) & 0xffff)) this.sequenceErrors += 1;
    this.skipped += samples / BYTES_PER_FRAME - 1;
    this.jitterMs += (Math.abs(apartMs - samples / SAMPLES_PER_MS) - this.jitterMs) / 16;
  }
}
