/** A gateway over real sockets that says what a test wants: for what a healthy one would not do on demand. */
import { createServer, type Server } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";
import type { Command } from "../../../src/protocol/commands.ts";

type Json = Record<string, unknown> & { readonly type: string };

export class Joined {
  readonly query: URLSearchParams;
  readonly #socket: WebSocket;
  #seq: number;

  constructor(socket: WebSocket, query: URLSearchParams, seq: number) {
    this.#socket = socket;
    this.query = query;
    this.#seq = seq;
  }

  hello(
    fields: { epoch?: string; startMs?: number; leadMs?: number; resumed?: boolean; limits?: object } = {},
  ): void {
    const { epoch = "e1", startMs = 0, leadMs = 0, resumed, limits = {} } = fields;
    this.send({
      type: "hello",
      protocol: 1,
      server: "scripted/1",
      session: "s",
      epoch,
      listener_id: "l1",
      resume_token: "t1",
      ...(resumed === undefined ? {} : { resumed }),
      settings: { lead_ms: leadMs },
      audio: {
        codec: "pcm_s16le",
        sample_rate: 8000,
        channels: 1,
        frame_ms: 20,
        frame_samples: 160,
        frame_bytes: 320,
        start_ms: startMs,
      },
      limits: { message_bytes: 65_536, text_chars: 1000, credit_chars: 1000, ...limits },
      ignored: [],
    });
  }

  /** An event to this connection only: it repeats the session's latest number. */
  send(event: Json): void {
    this.#socket.send(JSON.stringify({ seq: this.#seq, at_ms: 0, ...event }));
  }

  /** An event of the session, with the next number. */
  event(event: Json): void {
    this.#seq += 1;
    this.send(event);
  }

  /** Frames of 20 ms of pcm_8000, every sample `value`. */
  frames(values: readonly number[]): void {
    for (const value of values) this.#socket.send(new Uint8Array(new Int16Array(160).fill(value).buffer));
  }

  drop(): void {
    this.#socket.terminate();
  }
  close(code: number): void {
    this.#socket.close(code);
  }
}

export class ScriptedGateway implements AsyncDisposable {
  readonly commands: Command[] = [];
  readonly joined: Joined[] = [];
  readonly #http: Server;
  readonly #sockets: WebSocketServer;

  private constructor(http: Server) {
    this.#http = http;
    this.#sockets = new WebSocketServer({ server: http });
  }

  /** `onJoin` gets how many have joined before, `onCommand` each command. Lists `voices`, where it has them. */
  static async start(script: {
    onJoin(joined: Joined, index: number): void;
    onCommand?(command: Command, joined: Joined): void;
    readonly voices?: readonly { readonly voice_id: string; readonly name: string }[];
  }): Promise<ScriptedGateway> {
    const { voices } = script;
    const http = createServer((_, response) => {
      response.writeHead(voices === undefined ? 404 : 200).end(JSON.stringify({ voices }));
    });
    const gateway = new ScriptedGateway(http);
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    gateway.#sockets.on("connection", (socket, request) => {
      const query = new URL(request.url ?? "", "ws://host").searchParams;
      const index = gateway.joined.length;
      const joined = new Joined(socket, query, index * 100);
      gateway.joined.push(joined);
      socket.on("message", (data) => {
        const command = JSON.parse(String(data)) as Command;
        gateway.commands.push(command);
        if (command.type === "ping") joined.send({ type: "pong", id: command.id });
        script.onCommand?.(command, joined);
      });
      script.onJoin(joined, index);
    });
    return gateway;
  }

  get url(): string {
    const address = this.#http.address();
    if (address === null || typeof address === "string") throw new Error("Server is not listening");
    return `http://127.0.0.1:${address.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    this.#sockets.close();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }
}
