/**
 * Asterisk's AudioSocket on a TCP port of its own: each connection is a phone call. Asterisk plays what it gets at once
 * and keeps no buffer, so a player of ours sends one frame every 20 ms.
 */
import { createServer, type Server, type Socket } from "node:net";
import type { SendResult } from "../../delivery/listener.ts";
import type { Pacer } from "../../delivery/pacer.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import {
  type AudioSocketEvent,
  AudioSocketReader,
  audioSocketHangUp,
  audioSocketKind,
  audioSocketPackets,
} from "../../protocol/carrier/audiosocket.ts";
import type { CarrierEvent } from "../../protocol/carrier/carrier.ts";
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import type { Call } from "../../telephony/call.ts";
import type { Calls } from "../../telephony/calls.ts";
import type { CallLine } from "../../telephony/carrier-listener.ts";
import { NEWS, PacedCodec, pacedCall } from "../../telephony/paced-codec.ts";
import type { PacedFrame } from "../../telephony/paced-player.ts";

const FRAME_MS = 20;
/** How long the first audio of the caller is waited for, which says the format, ms; then it is 8 kHz. */
const FORMAT_WAIT_MS = 500;
/** How long an Asterisk may take to read the end of its call, ms; then the connection is cut off. */
const END_WAIT_MS = 2000;
/** What an Asterisk that does not read is behind with when it is given up: seconds of sound that nobody hears in time. */
const MAX_BEHIND_BYTES = 64 * 1024;

export interface AudioSocketOptions {
  readonly calls: Calls;
  readonly pacer: Pacer;
  readonly clock: Clock;
  readonly log: Logger;
  readonly host: string;
  /** 0: one that is free. */
  readonly port: number;
}

export interface AudioSocketServer {
  readonly port: number;
  /** Takes no new calls. Idempotent. */
  stopListening(): void;
  /** Ends every connection. Idempotent. */
  close(): void;
}

/** Listens. Rejects with port_in_use. */
export async function startAudioSocket(options: AudioSocketOptions): Promise<AudioSocketServer> {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    try {
      options.calls.mustHaveRoom();
      new AudioSocketLine(socket, options);
    } catch (thrown) {
      options.log.warn({ code: toGatewayError(thrown).code }, "AudioSocket call refused");
      socket.destroy();
    }
  });
  await listen(server, options);
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : options.port,
    stopListening: () => {
      server.close();
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function listen(server: Server, { host, port }: AudioSocketOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => {
      reject(new GatewayError("port_in_use", `Can't listen for AudioSocket on ${host}:${port}`, { cause }));
    });
    server.listen(port, host, resolve);
  });
}

class AudioSocketLine implements CallLine {
  readonly #socket: Socket;
  readonly #options: AudioSocketOptions;
  readonly #codec = new PacedCodec((bytes) => this.#read(bytes));
  readonly #reader = new AudioSocketReader((event) => this.#take(event));
  readonly #call: Call;
  #events: CarrierEvent[] = [];
  #callId = "";
  #format: AudioFormat | null = null;
  #formatTimer: Timer | null = null;
  #endTimer: Timer | null = null;

  constructor(socket: Socket, options: AudioSocketOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#call = options.calls.take(pacedCall("audiosocket", this, this.#codec));
    socket.on("data", (bytes) => this.#call.receive(bytes));
    socket.on("drain", () => this.#call.drained());
    socket.on("error", (thrown) =>
      options.log.debug({ detail: thrown.message }, "AudioSocket connection broke"),
    );
    socket.on("close", () => {
      this.#formatTimer?.cancel();
      this.#endTimer?.cancel();
      this.#codec.hangUp();
      this.#call.closed();
    });
  }

  /** The player sends; the call has nothing to say itself. */
  send(): SendResult {
    return "sent";
  }

  bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  end(): void {
    if (!this.#socket.writable) return;
    this.#socket.end(audioSocketHangUp());
    this.#socket.destroySoon();
    const { clock } = this.#options;
    this.#endTimer = clock.at(clock.nowMs() + END_WAIT_MS, () => this.#socket.destroy());
  }

  #read(bytes: Uint8Array): readonly CarrierEvent[] {
    this.#events = [];
    this.#reader.push(bytes);
    return this.#events;
  }

  #take(event: AudioSocketEvent): void {
    switch (event.kind) {
      case "call":
        this.#callId = event.callId;
        this.#waitForFormat();
        return;
      case "media":
        if (this.#format === null) this.#begin(event.format);
        if (event.format === this.#format) this.#events.push({ kind: "media", audio: event.audio });
        else this.#events.push({ kind: "odd", what: "audio of another rate than before" });
        return;
      default:
        this.#events.push(event);
    }
  }

  #waitForFormat(): void {
    const { clock } = this.#options;
    this.#formatTimer = clock.at(clock.nowMs() + FORMAT_WAIT_MS, () => {
      if (this.#format !== null) return;
      this.#begin("pcm_8000");
      this.#call.receive(NEWS);
    });
  }

  #begin(format: AudioFormat): void {
    this.#formatTimer?.cancel();
    this.#format = format;
    const { pacer, clock } = this.#options;
    const call = {
      callId: this.#callId,
      streamId: this.#callId,
      parameters: {},
      callerFormat: format,
      format,
      frameMs: FRAME_MS,
    };
    this.#codec.begin(call, {
      pacer,
      clock,
      silence: "pcm",
      send: (frame) => this.#write(format, frame),
      // There are no timestamps: what follows is simply played later.
      onSkipped: () => undefined,
      onNews: () => this.#call.receive(NEWS),
    });
  }

  #write(format: AudioFormat, { bytes }: PacedFrame): void {
    if (!this.#socket.writable) return;
    if (this.#socket.writableLength > MAX_BEHIND_BYTES) {
      this.#options.log.warn({ code: "slow_consumer" }, "AudioSocket peer does not read: call ended");
      this.#socket.destroy();
      return;
    }
    this.#socket.write(audioSocketPackets(audioSocketKind(format) ?? 0, [bytes]));
  }
}
