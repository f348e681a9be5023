/** What connect() says where HTTP answers in the place of a WebSocket. */
import { createServer } from "node:http";
import { WebSocket as StandardWebSocket } from "undici";
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { connect, type WebSocketConstructor, type WebSocketLike } from "../../../src/client/index.ts";
import { listening } from "../../helpers/listening.ts";

interface Refusing extends AsyncDisposable {
  readonly url: string;
  /** Sockets that are open. */
  count(): Promise<number>;
}

/** Answers each upgrade with this; without an end: the body goes on. */
async function refusing(status: number, body: string, isEnded = true): Promise<Refusing> {
  const server = createServer();
  server.on("upgrade", (_request, socket) => {
    socket.on("error", () => undefined);
    socket.resume().on("end", () => socket.destroy());
    socket.write(
      `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n${body}`,
    );
    if (isEnded) socket.end();
  });
  return Object.assign(await listening(server), {
    count: () => new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count))),
  });
}

function join({ url }: Refusing, socket: unknown = WebSocket, timeoutMs = 5000): Promise<unknown> {
  return connect({ baseUrl: url, session: "s", WebSocket: socket as WebSocketConstructor, timeoutMs });
}

const FULL = {
  code: "session_limit",
  message: "Full",
  retryable: true,
  retry_after_ms: 1500,
  field: "session",
};

describe("a refused upgrade", () => {
  it("rejects with the error of the body, with the socket of the package ws", async () => {
    await using server = await refusing(503, JSON.stringify({ error: FULL }));
    await expect(join(server)).rejects.toMatchObject({
      code: "session_limit",
      message: "Full",
      isRetryable: true,
      retryAfterMs: 1500,
      field: "session",
      isFromGateway: true,
    });
  });

  it.each([
    ["no JSON", "<h1>Bad gateway</h1>"],
    ["JSON without an error", "{}"],
    ["JSON null", "null"],
    ["an error without a code", '{"error":{}}'],
  ])("says the status where the body is %s", async (_name, body) => {
    await using server = await refusing(502, body);
    await expect(join(server)).rejects.toMatchObject({
      code: "connect_failed",
      message: "Connection: HTTP 502 in place of a WebSocket",
      isFromGateway: false,
    });
  });

  it("reads no more of a body without end than an error can have, and leaves no socket open", async () => {
    await using server = await refusing(502, "x".repeat(20_000), false);
    await expect(join(server)).rejects.toMatchObject({ message: expect.stringContaining("HTTP 502") });
    await expect.poll(() => server.count()).toBe(0);
  });

  it("ends at the deadline where its body stops in the middle", async () => {
    await using server = await refusing(502, "x", false);
    await expect(join(server, WebSocket, 100)).rejects.toMatchObject({ code: "connect_timeout" });
    await expect.poll(() => server.count()).toBe(0);
  });

  it("says what shows the answer, with a socket that does not", async () => {
    await using server = await refusing(503, JSON.stringify({ error: FULL }));
    await expect(join(server, StandardWebSocket)).rejects.toMatchObject({
      code: "connect_failed",
      message: expect.stringMatching(
        /^Connection: closed with 1006 before hello.*in Node the WebSocket of the package ws$/,
      ),
    });
  });
});

/** As Node 22's own class where no WebSocket came about. */
class ClosingSilently implements WebSocketLike {
  binaryType = "";
  readonly readyState = 0;
  readonly send = () => undefined;
  readonly close = () => undefined;
  addEventListener(type: string, listener: (event: never) => void): void {
    const error = { message: "Received network error or non-101 status code." };
    if (type === "error") queueMicrotask(() => listener(error as never));
  }
}

it("a socket that sends an error and no close is not waited for until the deadline", async () => {
  const gone = connect({ baseUrl: "http://a.test", session: "s", WebSocket: ClosingSilently });
  await expect(gone).rejects.toMatchObject({
    code: "connect_failed",
    message: expect.stringContaining("before hello: Received network error or non-101 status code; "),
  });
});

it("a gateway that is not there is named with the reason of the network", async () => {
  let url: string;
  {
    await using server = await refusing(503, "");
    url = server.url;
  }
  const gone = connect({ baseUrl: url, session: "s", WebSocket });
  await expect(gone).rejects.toMatchObject({
    code: "connect_failed",
    message: expect.stringMatching(
      /^Connection: closed with 1006 before hello: connect ECONNREFUSED 127\.0\.0\.1:\d+$/,
    ),
  });
});
