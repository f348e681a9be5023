/**
 * Asterisk's AudioSocket on a TCP port of its own: each connection is a phone call. It begins with a UUID, which has to be one
 * that was announced where the gateway has keys, or carriers have checks. Asterisk plays what it gets at once and keeps no
 * buffer, so a player of ours sends one frame every 20 ms.
 */
import { type BlockList, createServer, type Server, type Socket } from "node:net";
import { ANYBODY } from "../../access/caller.ts";
import type { Door } from "../../access/door.ts";
import type { SendResult } from "../../delivery/listener.ts";
import type { Pacer } from "../../delivery/pacer.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import {
  type AudioSocketEvent,
  AudioSocketReader,
  audioSocketCall,
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
import type { AudioSocketTickets, Ticket } from "./audiosocket-tickets.ts";
import { CallerRights } from "./caller-rights.ts";
import type { CarrierAuth } from "./carrier-auth.ts";
import { isInNetworks } from "./rtp-networks.ts";

/** In the audit log. */
const SURFACE = "audiosocket";
const FRAME_MS = 20;
/** How long a connection may take to say which call it is, ms. */
const UUID_WAIT_MS = 5000;
/** Connections that have not said it yet, beside the calls. */
const MAX_WAITING = 256;
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
  readonly door: Door;
  /** Calls that were announced. */
  readonly tickets: Pick<AudioSocketTickets, "take">;
  /** Whether others may come, too. */
  readonly carrierAuth: Pick<CarrierAuth, "takesStrangers">;
  /** Where calls may come from; null: from everywhere. */
  readonly allow: BlockList | null;
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
    socket.on("error", (thrown) =>
      options.log.debug({ detail: thrown.message }, "AudioSocket connection broke"),
    );
    const address = socket.remoteAddress ?? "";
    if (options.allow === null || isInNetworks(options.allow, address)) awaitCall(socket, options, address);
    else refuse(socket, options, notAllowed(address));
  });
  server.maxConnections = options.calls.maxCalls + MAX_WAITING;
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

/** Takes no room among the calls until it is clear that the connection may be one. */
function awaitCall(socket: Socket, options: AudioSocketOptions, address: string): void {
  const { clock, calls } = options;
  let begun: Buffer = Buffer.alloc(0);
  const timer = clock.at(clock.nowMs() + UUID_WAIT_MS, () => socket.destroy());
  const stopWaiting = (): void => timer.cancel();
  const take = (bytes: Buffer): void => {
    begun = Buffer.concat([begun, bytes]);
    const named = audioSocketCall(begun);
    if (named === null) return;
    stopWaiting();
    socket.off("close", stopWaiting);
    socket.off("data", take);
    try {
      const ticket = ticketFor(named.callId, options, address);
      calls.mustHaveRoom();
      new AudioSocketLine(socket, options, ticket).receive(begun);
    } catch (thrown) {
      refuse(socket, options, thrown);
    }
  };
  socket.on("close", stopWaiting);
  socket.on("data", take);
}

/** Throws forbidden where the call had to be announced, and carrier_protocol where the connection does not name one. */
function ticketFor(callId: string | null, options: AudioSocketOptions, address: string): Ticket {
  const { door, tickets, carrierAuth } = options;
  if (callId === null) {
    throw new GatewayError("carrier_protocol", "Not AudioSocket: the first packet does not name the call");
  }
  const ticket = tickets.take(callId);
  if (ticket !== null) return ticket;
  if (!carrierAuth.takesStrangers("audiosocket")) {
    throw new GatewayError(
      "forbidden",
      "No call was announced by this UUID: POST /carrier/audiosocket first",
    );
  }
  const rights = new CallerRights({ door, caller: ANYBODY, surface: SURFACE, address });
  return { parameters: {}, rights };
}

function notAllowed(address: string): GatewayError {
  return new GatewayError("forbidden", `${address} is outside the networks of the setting audiosocket-allow`);
}

function refuse(socket: Socket, { calls, door }: AudioSocketOptions, thrown: unknown): void {
  door.audit.refused({ thrown, surface: SURFACE, address: socket.remoteAddress ?? "", caller: null });
  calls.stats.of("audiosocket").refused += 1;
  socket.end(audioSocketHangUp());
  socket.destroySoon();
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
  readonly #ticket: Ticket;
  readonly #call: Call;
  #events: CarrierEvent[] = [];
  #callId = "";
  #format: AudioFormat | null = null;
  #formatTimer: Timer | null = null;
  #endTimer: Timer | null = null;

  constructor(socket: Socket, options: AudioSocketOptions, ticket: Ticket) {
    this.#socket = socket;
    this.#options = options;
    this.#ticket = ticket;
    const { rights } = ticket;
    this.#call = options.calls.take(pacedCall("audiosocket", { line: this, codec: this.#codec, rights }));
    socket.on("data", (bytes) => this.#call.receive(bytes));
    socket.on("drain", () => this.#call.drained());
    socket.on("close", () => {
      this.#formatTimer?.cancel();
      this.#endTimer?.cancel();
      this.#codec.hangUp();
      this.#call.closed();
    });
  }

  /** What came before the line was there. */
  receive(bytes: Uint8Array): void {
    this.#call.receive(bytes);
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
      parameters: this.#ticket.parameters,
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
