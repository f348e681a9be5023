/** The clients of one surface: many connections at once, each with a conversation that nobody would have. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { ERRORS } from "../../../src/errors.ts";
import { ConnectionScript, type Selection } from "./connection-script.ts";
import type { Frames } from "./conversation-mutator.ts";
import type { FuzzedGateway } from "./fuzzed-gateway.ts";
import type { StreamSurface, Surface, WebSocketSurface } from "./surfaces.ts";
import { frame, OPCODE, WireSocket } from "./web-socket-wire.ts";

/** RFC 6455 section 7.4.1, as far as a server of ours says them; 1005: none was said. */
const STANDARD_CODES = [1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009];
const KNOWN_CODES = new Set([...STANDARD_CODES, ...Object.values(ERRORS).map(({ closeCode }) => closeCode)]);
const INTERNAL = /"code":"internal"|internal_error|"internal: |Internal fault/;
/** An answer to a ping comes at once, but for a gateway that hangs: a busy machine is slow. */
const ANSWER_MS = 60_000;
/** How long a stream without pings may take to answer before its client goes, ms. */
const STREAM_MS = 30;
const MAX_FAULTS = 20;
const LAST = "last";
/** Behind each message: the answer says that it was read. What is sent behind a fault that closes the connection is not. */
const PING = frame({ opcode: OPCODE.ping, payload: Buffer.from("read") });
/** Conversations of one connection; most end earlier, at a message that closes it. */
const ROUNDS = 8;
const RTP_ROUNDS = 200;
/** Messages between two looks at the gateway. */
const LOT = 2000;

export interface CrowdOptions {
  readonly gateway: FuzzedGateway;
  readonly surface: Surface;
  readonly seed: number;
  /** Default 60 s. */
  readonly answerMs?: number;
}

export class Crowd {
  readonly faults: string[] = [];
  /** Messages that the gateway has read; over TCP and UDP those that it was sent. */
  sent = 0;
  connections = 0;
  /** By code: how often connections were closed with it, and errors said. */
  readonly closes = new Map<number, number>();
  readonly codes = new Map<string, number>();
  readonly #options: CrowdOptions;
  readonly #open = new Set<number>();
  /** Numbers of connections that have ended since the gateway was last seen well, and in the lot before. */
  #ended: number[] = [];
  #endedBefore: number[] = [];
  #index = 0;

  constructor(options: CrowdOptions) {
    this.#options = options;
  }

  /** The gateway was well: who breaks it from here on is here, or will come. What was asked meanwhile counts as well. */
  seenWell(): void {
    this.#endedBefore = this.#ended;
    this.#ended = [];
  }

  /** Connections that may have broken the gateway, in the order in which they came. */
  get suspects(): number[] {
    return [...this.#endedBefore, ...this.#ended, ...this.#open].sort((one, other) => one - other);
  }

  /** The next connection, from its beginning to its end. */
  async connection(): Promise<void> {
    const connection = this.#index;
    this.#index += 1;
    await this.again({ connection, messages: null });
  }

  /** How many messages it made. */
  async again(selection: Selection): Promise<number> {
    const { surface, seed } = this.#options;
    const script = new ConnectionScript(surface, seed, selection);
    this.#open.add(script.index);
    if (surface.transport === "websocket") await this.#webSocket(surface, script);
    else if (surface.transport === "tcp") await this.#stream(surface, script);
    else await this.#datagrams(script);
    this.#open.delete(script.index);
    this.#ended.push(script.index);
    this.connections += 1;
    return script.count;
  }

  async #webSocket(surface: WebSocketSurface, script: ConnectionScript): Promise<void> {
    const { gateway, answerMs = ANSWER_MS } = this.#options;
    let wake: () => void = () => undefined;
    let isOver = false;
    const end = (): void => {
      isOver = true;
      wake();
    };
    const { status, socket } = await WireSocket.dial({
      port: gateway.port,
      path: surface.path(script.index),
      subprotocol: surface.subprotocol,
      onText: (text) => this.#judge(text, script.index),
      onPong: (payload) => {
        if (payload === LAST) wake();
        else this.sent += 1;
      },
      onCloseFrame: (code, reason) => {
        // The message that it was closed for.
        this.sent += 1;
        this.#closed(code, reason, script.index);
        end();
      },
      onEnd: end,
    });
    if (socket === null) {
      if (status !== 503 && status !== 429)
        this.#fault(`a good upgrade was answered with ${status}`, script.index);
      return;
    }
    for (let round = 0; round < ROUNDS && !isOver; round += 1) {
      const answered = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const sent = upToUnsound(script.frames());
      const isSound = sent.every((frames) => frames.isSound);
      const pieces = sent.flatMap(({ bytes }) => [bytes, PING]);
      socket.write(Buffer.concat([...pieces, frame({ opcode: OPCODE.ping, payload: Buffer.from(LAST) })]));
      // Behind a frame whose rest never comes no ping is answered: the gateway has to read the end.
      if (!isSound) socket.end();
      const timer = setTimeout(() => {
        this.#fault(`nothing was answered for ${answerMs} ms`, script.index);
        end();
      }, answerMs);
      await answered;
      clearTimeout(timer);
      if (!isSound) break;
    }
    socket.destroy();
  }

  async #stream(surface: StreamSurface, script: ConnectionScript): Promise<void> {
    const port = surface.port === "wyoming" ? "wyoming" : "audiosocket";
    const socket = connect(this.#options.gateway.ports[port], "127.0.0.1");
    const ended = new Promise<void>((resolve) => {
      socket.on("close", () => resolve());
    });
    socket.on("error", () => socket.destroy());
    let tail = "";
    socket.on("data", (data) => {
      tail = (tail + data.toString("latin1")).slice(-4096);
    });
    const messages = script.messages();
    socket.write(Buffer.concat(messages));
    this.sent += messages.length;
    const timer = setTimeout(() => socket.destroy(), STREAM_MS);
    await ended;
    clearTimeout(timer);
    this.#judge(tail, script.index);
  }

  async #datagrams(script: ConnectionScript): Promise<void> {
    const { url } = this.#options.gateway;
    const socket: UdpSocket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    const remote = `127.0.0.1:${socket.address().port}`;
    const answer = await fetch(`${url}/carrier/rtp`, {
      method: "POST",
      body: JSON.stringify({ session: `r${script.index}`, remote, text: "Hello." }),
    });
    const call = (await answer.json()) as { readonly port?: number; readonly call_id?: string };
    if (answer.status !== 201 || call.port === undefined) {
      this.#fault(`a port for RTP was refused: ${answer.status} ${JSON.stringify(call)}`, script.index);
    } else {
      for (let round = 0; round < RTP_ROUNDS; round += 1) {
        const messages = script.messages();
        for (const bytes of messages) socket.send(bytes, call.port, "127.0.0.1");
        this.sent += messages.length;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      const ending = await fetch(`${url}/carrier/rtp/${call.call_id}`, { method: "DELETE" });
      // A port whose peer closed it, or that was silent, is gone.
      if (ending.status !== 200 && ending.status !== 404)
        this.#fault(`a port for RTP was not given back: ${ending.status}`, script.index);
      await ending.arrayBuffer();
    }
    socket.close();
    await once(socket, "close");
  }

  #judge(text: string, index: number): void {
    if (INTERNAL.test(text))
      this.#fault(`the gateway said: ${INTERNAL.exec(text)?.[0]}: ${text.slice(0, 400)}`, index);
    const code = /^\{"type":"error".{0,80}?"code":"(\w+)"/.exec(text)?.[1];
    if (code === undefined) return;
    this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
    if (!Object.hasOwn(ERRORS, code))
      this.#fault(`an error has an unknown code: ${text.slice(0, 400)}`, index);
  }

  #closed(code: number, reason: string, index: number): void {
    this.closes.set(code, (this.closes.get(code) ?? 0) + 1);
    if (!KNOWN_CODES.has(code) || INTERNAL.test(reason) || code === ERRORS.internal.closeCode)
      this.#fault(`a connection was closed with ${code}: ${reason}`, index);
  }

  #fault(what: string, index: number): void {
    if (this.faults.length < MAX_FAULTS) this.faults.push(`connection ${index}: ${what}`);
  }
}

/** What is behind a frame that is not sound may be swallowed: it is not sent. */
function upToUnsound(all: readonly Frames[]): readonly Frames[] {
  const at = all.findIndex(({ isSound }) => !isSound);
  return at < 0 ? all : all.slice(0, at + 1);
}

/**
 * Runs a crowd of so many connections at once until it has sent `inputs` messages, or `isOver`. `look` is asked behind every
 * so many of them: whether the gateway is well, so that nobody who has gone by then is suspected.
 */
export async function runCrowd(
  crowd: Crowd,
  {
    inputs,
    atOnce,
    isOver,
    look,
  }: {
    readonly inputs: number;
    readonly atOnce: number;
    isOver(): boolean;
    look(): Promise<boolean>;
  },
): Promise<void> {
  let isWell = true;
  let lookedAt = crowd.sent;
  const client = async (): Promise<void> => {
    while (isWell && crowd.sent < inputs && !isOver()) {
      await crowd.connection();
      if (crowd.sent - lookedAt < LOT || !isWell) continue;
      lookedAt = crowd.sent;
      isWell = await look();
      if (isWell) crowd.seenWell();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
}

/** A gateway that hangs answers nobody. */
export async function mustAnswer(url: string): Promise<string | null> {
  try {
    const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(ANSWER_MS) });
    await answer.arrayBuffer();
    return answer.status === 200 ? null : `/healthz was answered with ${answer.status}`;
  } catch (thrown) {
    return `/healthz was not answered: ${String(thrown)}`;
  }
}
