/** A scripted service on a WebSocket: what it is asked is a handshake and messages, what it says are the steps of a body. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { FakeAnswer, FakeStep } from "../../helpers/fake-answer.ts";

export interface SocketRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** As they came. */
  readonly messages: readonly string[];
}

/** What it says to a handshake (no messages yet) or behind a message; null: nothing yet. A status refuses the handshake. */
export type SocketScript = (request: SocketRequest) => SocketAnswer | null;

export interface SocketAnswer extends Omit<FakeAnswer, "body"> {
  readonly body?: readonly (FakeStep | { readonly close: number })[];
}

export interface FakeSocket extends AsyncDisposable {
  readonly url: string;
  /** In the order they came. */
  readonly requests: readonly SocketRequest[];
  readonly open: () => number;
  /** Codes that it was closed with. */
  readonly closeCodes: readonly number[];
}

export async function startFakeSocket(script: SocketScript): Promise<FakeSocket> {
  const requests: SocketRequest[] = [];
  const closeCodes: number[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const server = createServer((_incoming, response) => response.writeHead(404).end());
  server.on("upgrade", (incoming: IncomingMessage, stream: Duplex, head: Buffer) => {
    // Who cuts it off is what a test is about.
    stream.on("error", () => stream.destroy());
    const { pathname, searchParams } = new URL(incoming.url ?? "", "http://localhost");
    const messages: string[] = [];
    const request = { path: pathname, query: searchParams, headers: incoming.headers, messages };
    requests.push(request);
    const refusal = script(request);
    if (refusal !== null) {
      refuse(stream, refusal);
      return;
    }
    sockets.handleUpgrade(incoming, stream, head, (socket) => {
      socket.on("close", (code) => closeCodes.push(code));
      // What breaks is the test's.
      socket.on("error", () => socket.terminate());
      socket.on("message", (data) => {
        messages.push(String(data));
        const answer = script(request);
        if (answer !== null) void say(socket, answer.body ?? [], stream);
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}`,
    requests,
    closeCodes,
    open: () => sockets.clients.size,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function refuse(stream: Duplex, { status = 200, headers = {}, body = [] }: SocketAnswer): void {
  const text = body.filter((step) => typeof step === "string").join("");
  const lines = Object.entries({
    ...headers,
    "content-length": Buffer.byteLength(text),
    connection: "close",
  });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  stream.end(`HTTP/1.1 ${status} Refused\r\n${head}\r\n${text}`);
}

/** Each step is a message; behind the last one it closes, but for a service that has said that it is done. */
async function say(
  socket: WebSocket,
  steps: NonNullable<SocketAnswer["body"]>,
  stream: Duplex,
): Promise<void> {
  for (const step of steps) {
    if (step === "stall") return;
    if (typeof step === "object" && "afterMs" in step)
      await new Promise((go) => setTimeout(go, step.afterMs));
    if (typeof step === "object" && "until" in step) await step.until;
    if (typeof step === "object" && "close" in step) {
      socket.close(step.close);
      return;
    }
    if (step === "reset" || step === "cut") {
      // What was sent before it leaves first.
      setTimeout(() => stream.destroy(), 50);
      return;
    }
    if ((typeof step === "string" && step !== "") || Buffer.isBuffer(step)) socket.send(step);
  }
  socket.close(1000);
}
