import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AnswerFault, FaultLink } from "../../../../bench/chaos/fault-link.ts";
import { until } from "../../../helpers/until.ts";

const HEAD = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const CHUNKS = ["5\r\nhello\r\n", "6\r\n there\r\n", "0\r\n\r\n"];
const ANSWER = `${HEAD}${CHUNKS.join("")}`;

let server: Server;
let struck: string[];

/** Answers each request that it reads, and keeps the connection. */
beforeEach(async () => {
  struck = [];
  server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.on("data", () => socket.write(ANSWER));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => {
  server.close();
});

interface Heard {
  readonly socket: Socket;
  text: string;
  end: "open" | "closed" | "reset";
}

async function ask(fault: AnswerFault | null, key = "7"): Promise<{ heard: Heard; link: FaultLink }> {
  const link = await FaultLink.open({
    targetPort: (server.address() as AddressInfo).port,
    marker: /"seed":(\d+)/,
    faultOf: (asked) => (asked === key ? fault : null),
    onStruck: (asked) => struck.push(asked),
    bytesPerSecond: null,
  });
  const heard: Heard = { socket: connect(link.port, "127.0.0.1"), text: "", end: "open" };
  heard.socket.on("data", (data: Buffer) => {
    heard.text += data.toString();
  });
  heard.socket.on("end", () => {
    heard.end = "closed";
  });
  heard.socket.on("error", () => {
    heard.end = "reset";
  });
  heard.socket.write('{"seed":7}');
  return { heard, link };
}

async function leave({ heard, link }: { heard: Heard; link: FaultLink }): Promise<void> {
  heard.socket.destroy();
  await link[Symbol.asyncDispose]();
}

describe("FaultLink", () => {
  it("passes an answer that has no fault", async () => {
    const asked = await ask(null);
    await until("all of it", () => asked.heard.text === ANSWER);
    expect(struck).toEqual([]);
    await leave(asked);
  });

  it.each<AnswerFault>([
    { kind: "latency", ms: 1, jitterMs: () => 1 },
    { kind: "chunks", size: () => 3 },
    { kind: "stall", afterBytes: 10, ms: 20 },
  ])("$kind changes no byte", async (fault) => {
    const asked = await ask(fault);
    await until("all of it", () => asked.heard.text === ANSWER);
    expect(struck).toEqual(["7"]);
    await leave(asked);
  });

  it("resets the connection after a number of bytes", async () => {
    const asked = await ask({ kind: "reset", afterBytes: 10 });
    await until("it is reset", () => asked.heard.end === "reset");
    expect(ANSWER.startsWith(asked.heard.text)).toBe(true);
    expect(asked.heard.text.length).toBeLessThanOrEqual(10);
    await leave(asked);
  });

  it("closes the connection after a number of bytes", async () => {
    const asked = await ask({ kind: "truncated", afterBytes: 10, proper: false });
    await until("it is closed", () => asked.heard.end === "closed");
    expect(asked.heard.text).toBe(ANSWER.slice(0, 10));
    await leave(asked);
  });

  it("ends an HTTP answer between two chunks as if it were whole", async () => {
    const asked = await ask({ kind: "truncated", afterBytes: HEAD.length + 1, proper: true });
    await until("it is closed", () => asked.heard.end === "closed");
    expect(asked.heard.text).toBe(`${HEAD}${CHUNKS[0]}${CHUNKS[2]}`);
    await leave(asked);
  });

  it("half-open: nothing passes and no end comes, until it is reset", async () => {
    const asked = await ask({ kind: "half-open", afterBytes: 10, ms: 150 });
    await until("it has struck", () => struck.length === 1);
    await until("it is reset", () => asked.heard.end === "reset");
    expect(asked.heard.text).toBe(ANSWER.slice(0, 10));
    await leave(asked);
  });

  it("cuts a handshake behind the first message", async () => {
    const link = await FaultLink.open({
      targetPort: (server.address() as AddressInfo).port,
      marker: /none/,
      faultOf: () => null,
      onStruck: () => undefined,
      bytesPerSecond: null,
    });
    link.door = "cut";
    const socket = connect(link.port, "127.0.0.1");
    const ended = once(socket, "error");
    socket.write("hello");
    await expect(ended).resolves.toMatchObject([{ code: "ECONNRESET" }]);
    await link[Symbol.asyncDispose]();
  });
});
