/** Requests follow one another on a connection as long as each answer's end is known. */
import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Listening, listening } from "../../helpers/listening.ts";
import { KeptConnection } from "./kept-connection.ts";

let server: Server;
let place: Listening;
let connections = 0;

beforeEach(async () => {
  connections = 0;
  server = createServer((request, response) => {
    if (request.url === "/chunks") {
      response.write("one");
      response.end("two");
    } else if (request.url === "/stream") {
      response.setHeader("content-type", "text/event-stream");
      response.write("data: 1\n\n");
    } else if (request.url !== "/silent") response.setHeader("content-length", "4").end("here");
  });
  server.on("connection", () => {
    connections += 1;
  });
  place = await listening(server);
});
afterEach(() => place[Symbol.asyncDispose]());

const asked = (path: string): Buffer => Buffer.from(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);

describe("a kept connection", () => {
  it("takes one request behind the other, with a length and in chunks", async () => {
    using connection = new KeptConnection(Number(new URL(place.url).port));
    expect(await connection.exchange(asked("/a"), true)).toMatch(/here$/);
    expect(await connection.exchange(asked("/chunks"), true)).toMatch(/one[\s\S]*two[\s\S]*0\r\n\r\n$/);
    expect(await connection.exchange(asked("/b"), true)).toMatch(/here$/);
    expect(connections).toBe(1);
  });

  it.each([
    ["/stream", true],
    ["/a", false],
  ])("is another one behind %s (kept: %s)", async (path, isKept) => {
    using connection = new KeptConnection(Number(new URL(place.url).port));
    expect(await connection.exchange(asked(path), isKept)).toMatch(/^HTTP\/1.1 200/);
    expect(await connection.exchange(asked("/b"), true)).toMatch(/here$/);
    expect(connections).toBe(2);
  });

  it("says that it waits where the answer does not come, and not where it does", async () => {
    using connection = new KeptConnection(Number(new URL(place.url).port));
    let waits = 0;
    const count = (): void => {
      waits += 1;
    };
    await connection.exchange(asked("/a"), true, count);
    expect(waits).toBe(0);
    expect(await connection.exchange(asked("/silent"), false, count)).toBe("");
    expect(waits).toBe(1);
  });
});
