/** A real WebSocket server that greets, records commands and answers them as a test says. */
import { createServer, type Server } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";
import type { Command } from "../../../src/protocol/commands.ts";

type Json = Record<string, unknown> & { readonly type: string };

export class ScriptedServer {
  readonly commands: Command[] = [];
  lastUrl = "";
  /** "hello" greets; "silence" says nothing; anything else is the code of an error that refuses. */
  helloCode = "hello";
  /** Of the error that refuses. */
  isRetryable = true;
  /** Fields of the next hello that differ from the usual ones. */
  hello: Record<string, unknown> = {};
  /** Where the first frame of the next connection stands. */
  startMs = 100;
  readonly urls: string[] = [];
  /** Called in the same turn as hello, so that what it sends travels with it. */
  withHello: ((socket: WebSocket) => void) | null = null;
  /** Answer to the next commands; null = what the gateway would say when all is well. */
  answer: ((command: Command) => Json) | null = null;
  readonly #http: Server = createServer();
  readonly #sockets = new WebSocketServer({ server: this.#http });
  #isClosed = false;

  static async start(): Promise<ScriptedServer> {
    const server = new ScriptedServer();
    server.#sockets.on("connection", (socket, request) => {
      server.lastUrl = request.url ?? "";
      server.urls.push(server.lastUrl);
      socket.on("message", (data) => server.#take(JSON.parse(String(data)) as Command));
      server.#greet(socket);
    });
    await new Promise<void>((resolve) => server.#http.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    const address = this.#http.address();
    if (address === null || typeof address === "string") throw new Error("Server is not listening");
    return `http://127.0.0.1:${address.port}`;
  }

  event(event: Json): void {
    this.raw(JSON.stringify({ seq: 1, at_ms: 0, ...event }));
  }

  raw(message: string): void {
    for (const socket of this.#sockets.clients) socket.send(message);
  }

  frame(byte: number): void {
    for (const socket of this.#sockets.clients) socket.send(Buffer.from([byte]));
  }

  done(utterance_id: string, outcome: "done" | "interrupted" | "cancelled" | "failed"): void {
    const error = { code: "upstream_failed", message: "Failed", retryable: true };
    this.event({ type: "utterance.done", utterance_id, outcome, ...(outcome === "failed" ? { error } : {}) });
  }

  dropAll(): void {
    for (const socket of this.#sockets.clients) socket.terminate();
  }

  closeAll(code: number, reason: string): void {
    for (const socket of this.#sockets.clients) socket.close(code, reason);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.dropAll();
    this.#sockets.close();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  #greet(socket: WebSocket): void {
    if (this.helloCode === "silence") return;
    if (this.helloCode !== "hello") {
      this.event({ type: "error", code: this.helloCode, message: "Refused", retryable: this.isRetryable });
      socket.close(4429, this.helloCode);
      return;
    }
    const audio = {
      codec: "pcm_s16le",
      sample_rate: 8000,
      channels: 1,
      frame_ms: 20,
      frame_samples: 160,
      frame_bytes: 320,
      start_ms: this.startMs,
    };
    this.event({
      type: "hello",
      protocol: 1,
      server: "scripted/1",
      session: "s",
      epoch: "e",
      listener_id: "l1",
      resume_token: "t1",
      settings: {},
      audio,
      limits: {},
      ignored: [],
      ...this.hello,
    });
    this.withHello?.(socket);
  }

  #take(command: Command): void {
    this.commands.push(command);
    const id = "utterance_id" in command ? command.utterance_id : undefined;
    if (this.answer !== null) this.event({ utterance_id: id, ...this.answer(command) });
    else if (command.type === "speak" || command.type === "dialogue")
      this.event({ type: "utterance.queued", utterance_id: id, ahead: 0 });
    else if (command.type === "ping") this.event({ type: "pong", id: command.id });
  }
}
