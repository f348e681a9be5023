/** The clients of one surface: many connections at once, each with a conversation that nobody would have. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { ERRORS } from "../../../src/errors.ts";
import { Mutator } from "../mutator.ts";
import { ConversationMutator, type Message } from "./conversation-mutator.ts";
import type { FuzzedGateway } from "./fuzzed-gateway.ts";
import type { StreamSurface, Surface, WebSocketSurface } from "./surfaces.ts";
import { frame, OPCODE, WireSocket } from "./web-socket-wire.ts";

/** RFC 6455 section 7.4.1, as far as a server of ours says them; 1005: none was said. */
const STANDARD_CODES = [1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009];
const KNOWN_CODES = new Set([...STANDARD_CODES, ...Object.values(ERRORS).map(({ closeCode }) => closeCode)]);
const INTERNAL = /"code":"internal"|internal_error|"internal: |Internal fault/;
/** An answer to a ping comes at once, but for a gateway that hangs. */
const ANSWER_MS = 30_000;
const SWALLOWED_MS = 150;
/** How long a stream without pings may take to answer before its client goes, ms. */
const STREAM_MS = 30;
const MAX_FAULTS = 20;
const LAST = "last";
/** Behind each message: the answer says that it was read. What is sent behind a fault that closes the connection is not. */
const PING = frame({ opcode: OPCODE.ping, payload: Buffer.from("read") });
/** Conversations of one connection. */
const ROUNDS = 3;
const RTP_ROUNDS = 200;

export interface CrowdOptions {
  readonly gateway: FuzzedGateway;
  readonly surface: Surface;
  readonly seed: number;
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
  readonly #mutator: Mutator;
  readonly #conversations: ConversationMutator;
  #index = 0;

  constructor(options: CrowdOptions) {
    this.#options = options;
    this.#mutator = new Mutator(options.seed, options.surface.words);
    this.#conversations = new ConversationMutator(this.#mutator);
  }

  /** One connection of `next`, from its beginning to its end. */
  async connection(): Promise<void> {
    const { surface } = this.#options;
    const index = this.#index;
    this.#index += 1;
    if (surface.transport === "websocket") await this.#webSocket(surface, index);
    else if (surface.transport === "tcp") await this.#stream(surface, index);
    else await this.#datagrams(surface, index);
    this.connections += 1;
  }

  async #webSocket(surface: WebSocketSurface, index: number): Promise<void> {
    let wake: () => void = () => undefined;
    let isOver = false;
    const end = (): void => {
      isOver = true;
      wake();
    };
    const { status, socket } = await WireSocket.dial({
      port: this.#options.gateway.port,
      path: surface.path(index),
      subprotocol: surface.subprotocol,
      onText: (text) => this.#judge(text),
      onPong: (payload) => {
        if (payload === LAST) wake();
        else this.sent += 1;
      },
      onCloseFrame: (code, reason) => {
        // The message that it was closed for.
        this.sent += 1;
        this.#closed(code, reason);
        end();
      },
      onEnd: end,
    });
    if (socket === null) {
      if (status !== 503 && status !== 429) this.#fault(`a good upgrade was answered with ${status}`);
      return;
    }
    for (let round = 0; round < ROUNDS && !isOver; round += 1) {
      const answered = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const pieces = this.#mutated(surface, index).flatMap((message) => [
        this.#conversations.frames(message),
        PING,
      ]);
      socket.write(Buffer.concat([...pieces, frame({ opcode: OPCODE.ping, payload: Buffer.from(LAST) })]));
      // A frame whose rest never comes swallows the ping: what is behind it is not for the gateway to answer.
      const timer = setTimeout(end, SWALLOWED_MS);
      await answered;
      clearTimeout(timer);
    }
    socket.destroy();
  }

  async #stream(surface: StreamSurface, index: number): Promise<void> {
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
    const messages = this.#mutated(surface, index);
    socket.write(Buffer.concat(messages.map(({ bytes }) => bytes)));
    this.sent += messages.length;
    const timer = setTimeout(() => socket.destroy(), STREAM_MS);
    await ended;
    clearTimeout(timer);
    this.#judge(tail);
  }

  async #datagrams(surface: StreamSurface, index: number): Promise<void> {
    const { url } = this.#options.gateway;
    const socket: UdpSocket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    const remote = `127.0.0.1:${socket.address().port}`;
    const answer = await fetch(`${url}/carrier/rtp`, {
      method: "POST",
      body: JSON.stringify({ session: `r${index}`, remote, text: "Hello." }),
    });
    const call = (await answer.json()) as { readonly port?: number; readonly call_id?: string };
    if (answer.status !== 201 || call.port === undefined) {
      this.#fault(`a port for RTP was refused: ${answer.status} ${JSON.stringify(call)}`);
    } else {
      for (let round = 0; round < RTP_ROUNDS; round += 1) {
        const messages = this.#mutated(surface, index * RTP_ROUNDS + round);
        for (const { bytes } of messages) socket.send(bytes, call.port, "127.0.0.1");
        this.sent += messages.length;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      const ending = await fetch(`${url}/carrier/rtp/${call.call_id}`, { method: "DELETE" });
      // A port whose peer closed it, or that was silent, is gone.
      if (ending.status !== 200 && ending.status !== 404)
        this.#fault(`a port for RTP was not given back: ${ending.status}`);
      await ending.arrayBuffer();
    }
    socket.close();
    await once(socket, "close");
  }

  #mutated({ others, conversation }: Surface, index: number): Message[] {
    const mutator = this.#mutator;
    const good = this.#conversations.conversation(conversation(index), others);
    // Mostly one message alone: what is behind a fault that closes the connection is not read.
    const chosen = mutator.next(good.length);
    const isEach = mutator.next(4) === 0;
    return good.map((message, at) =>
      at === chosen || (isEach && mutator.next(2) === 0)
        ? this.#conversations.message(message, mutator.pick(others) ?? message)
        : message,
    );
  }

  #judge(text: string): void {
    if (INTERNAL.test(text))
      this.#fault(`the gateway said: ${INTERNAL.exec(text)?.[0]}: ${text.slice(0, 400)}`);
    const code = /^\{"type":"error".{0,80}?"code":"(\w+)"/.exec(text)?.[1];
    if (code === undefined) return;
    this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
    if (!Object.hasOwn(ERRORS, code)) this.#fault(`an error has an unknown code: ${text.slice(0, 400)}`);
  }

  #closed(code: number, reason: string): void {
    this.closes.set(code, (this.closes.get(code) ?? 0) + 1);
    if (!KNOWN_CODES.has(code) || INTERNAL.test(reason) || code === ERRORS.internal.closeCode)
      this.#fault(`a connection was closed with ${code}: ${reason}`);
  }

  #fault(what: string): void {
    if (this.faults.length < MAX_FAULTS) this.faults.push(what);
  }
}

/** Runs a crowd of so many connections at once until it has sent `inputs` messages, or `isOver`. */
export async function runCrowd(
  crowd: Crowd,
  { inputs, atOnce, isOver }: { readonly inputs: number; readonly atOnce: number; isOver(): boolean },
): Promise<void> {
  const client = async (): Promise<void> => {
    while (crowd.sent < inputs && !isOver()) {
      await crowd.connection();
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
