/** Requests that take too long to come in, and too many connections, on bare sockets. */
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { until } from "../helpers/until.ts";
import { type Mounted, mount } from "./mounted.ts";

const REQUEST_TIMEOUT_MS = 300;
const BOUNDARY = "voicewire-test";
const FORM_HEAD = `POST /v1/voices/add HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=${BOUNDARY}\r\n`;

let mounted: Mounted;
const open: Slow[] = [];

beforeAll(async () => {
  const limits = { requestTimeoutMs: REQUEST_TIMEOUT_MS, maxConnections: 3 };
  mounted = await mount({ limits }, () => undefined);
});
afterEach(async () => {
  for (const slow of open.splice(0)) slow.close();
  // The server has counted them out when it takes others.
  await untilRoom();
});
afterAll(() => mounted[Symbol.asyncDispose]());

/** A client that sends piece by piece for as long as it is let. */
class Slow {
  readonly #socket: Socket;
  received = "";
  isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.#socket = connect(Number(new URL(mounted.url).port), "127.0.0.1");
    this.#socket.on("data", (bytes: Buffer) => {
      this.received += bytes.toString();
    });
    // A connection that is cut may end with a reset.
    this.#socket.on("error", () => undefined);
    this.#socket.on("close", () => {
      this.isClosed = true;
      clearInterval(this.#timer);
    });
    open.push(this);
  }

  send(text: string): void {
    this.#socket.write(text);
  }

  /** Sends `piece` again and again, `times` at most, then `last`. */
  drip(piece: string, times = Number.POSITIVE_INFINITY, last = ""): void {
    let sent = 0;
    this.#timer = setInterval(() => {
      sent += 1;
      if (sent <= times) this.#socket.write(piece);
      else {
        clearInterval(this.#timer);
        this.#socket.write(last);
      }
    }, 50);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#socket.destroy();
  }
}

/** The status of a small request on a connection of its own; 0 where it was closed without an answer. */
async function get(): Promise<number> {
  const url = `${new URL(mounted.url).origin}/openapi.json`;
  const answer = await fetch(url, { headers: { connection: "close" } }).catch(() => null);
  await answer?.arrayBuffer();
  return answer?.status ?? 0;
}

/** Ends with the test's own time-out where a connection never gets in. */
async function untilRoom(): Promise<void> {
  while ((await get()) !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
}

function part(name: string, value: string): string {
  return `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
}

describe("a request that takes too long to come in", () => {
  it.each([
    [
      "its body",
      "POST /v1/text-to-dialogue HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n",
      "x",
    ],
    ["its head", "POST /v1/text-to-dialogue HTTP/1.1\r\n", "x: y\r\n"],
    [
      "a body that is no form, for an endpoint with uploads",
      "POST /v1/voices/add HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n",
      "x",
    ],
  ])("is refused and cut: %s", async (_, head, piece) => {
    const slow = new Slow();
    slow.send(head);
    slow.drip(piece);
    await until("it is cut", () => slow.isClosed);
    expect(slow.received).toMatch(/^HTTP\/1\.1 (?:408 Request Timeout|422 Unprocessable Entity)\r\n/);
  });

  it("a connection on which nothing comes is cut", async () => {
    const slow = new Slow();
    await until("it is cut", () => slow.isClosed);
  });

  it("an upload may take longer: it is watched by its own progress", async () => {
    const slow = new Slow();
    const piece = "a".repeat(100);
    const times = 40;
    const [before = "", after = ""] = part("description", "|").split("|");
    const last = `${after}--${BOUNDARY}--\r\n`;
    const length = before.length + piece.length * times + last.length;
    slow.send(`${FORM_HEAD}content-length: ${length}\r\n\r\n${before}`);
    slow.drip(piece, times, last);
    await until("it is answered", () => slow.received !== "" || slow.isClosed);
    // Read to its end: the fields that it lacks are named.
    expect(slow.received).toMatch(/^HTTP\/1\.1 422 /);
    expect(slow.received).toContain('"loc":["body","name"]');
    // And its connection goes on.
    slow.received = "";
    slow.send("GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await until("the next request is answered", () => slow.received.startsWith("HTTP/1.1 200 OK\r\n"));
  });
});

describe("connections", () => {
  it("are refused over the limit, and taken again under it", async () => {
    const slow = Array.from({ length: 3 }, () => new Slow());
    for (const one of slow) one.drip("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await until("all are answered", () => slow.every(({ received }) => received !== ""));
    expect(await get()).toBe(0);
    slow[0]?.close();
    await untilRoom();
    expect(slow.slice(1).every(({ isClosed }) => !isClosed)).toBe(true);
  });
});
