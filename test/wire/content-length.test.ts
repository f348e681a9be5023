/**
 * Requests that can be read in two ways, by their length or by a header that comes twice. The library believed the first of two Content-Length headers, and took an
 * empty one for none: behind a proxy that reads them otherwise, the rest of a body was somebody's next request.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";

let upstream: FakeUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await gatewayAt(upstream.url);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const UPGRADE =
  "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n" +
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const ROUTES: readonly (readonly [port: "public" | "ops", line: string, headers: string])[] = [
  ["public", "GET /", ""],
  ["public", "GET /nothing/here", ""],
  ["public", "GET /healthz", ""],
  ["public", "GET /readyz", ""],
  ["public", "GET /metrics", ""],
  ["public", "OPTIONS /live/s/speak", ""],
  ["public", "POST /live/s/speak", ""],
  ["public", "POST /live/s/interrupt", ""],
  ["public", "GET /live/s/audio.wav", ""],
  ["public", "HEAD /live/s/audio.wav", ""],
  ["public", "GET /live/s/captions", ""],
  ["public", "HEAD /live/s/captions.vtt", ""],
  ["public", "POST /v1/audio/speech", ""],
  ["public", "POST /v1/text-to-speech/v", ""],
  ["public", "GET /v2/voices", ""],
  ["public", "GET /openapi.json", ""],
  ["public", "POST /carrier/rtp", ""],
  ["public", "DELETE /carrier/rtp/c", ""],
  ["public", "POST /carrier/jambonz/tts", ""],
  ["public", "GET /live/s", UPGRADE],
  ["public", "GET /v1/text-to-speech/v/stream-input", UPGRADE],
  ["public", "GET /v1/other", UPGRADE],
  ["public", "GET /carrier", UPGRADE],
  ["public", "GET /carrier/twilio", UPGRADE],
  ["public", "GET /carrier/jambonz/tts", UPGRADE],
  ["ops", "GET /metrics", ""],
  ["ops", "GET /healthz", ""],
  ["ops", "GET /readyz", ""],
  ["ops", "POST /nothing", ""],
];

/** All that is answered until the connection is closed. */
async function answerTo(port: "public" | "ops", text: string): Promise<string> {
  const url = new URL((port === "ops" ? gateway.opsUrl : gateway.url) ?? "");
  const socket = connect(Number(url.port), url.hostname);
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  socket.on("error", () => undefined);
  socket.write(text);
  await once(socket, "close");
  return Buffer.concat(parts).toString();
}

describe("a request with an unclear length", () => {
  it.each(ROUTES)(
    "on the %s port, %s is answered with 400 and the connection closed",
    async (port, line, headers) => {
      const lengths = [
        "content-length: 3\r\nContent-Length: 5\r\n",
        "content-length: 3\r\ncontent-length: 3\r\n",
      ];
      for (const twice of [...lengths, "content-length:\r\n"]) {
        const answer = await answerTo(port, `${line} HTTP/1.1\r\nhost: gateway\r\n${headers}${twice}\r\n`);
        expect(answer).toMatch(/^HTTP\/1\.1 400\b/);
        // An answer to HEAD has no body (RFC 9110 section 9.3.2).
        if (line.startsWith("HEAD")) expect(answer).toMatch(/\r\n\r\n$/);
        else expect(answer).toContain('"field":"content-length"');
        expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
      }
    },
  );

  it("has no request read from the rest of its body", async () => {
    const before = upstream.requests.length;
    const next = "GET /v2/voices HTTP/1.1\r\nhost: gateway\r\n\r\n";
    const first = "POST /live/s/speak HTTP/1.1\r\nhost: gateway\r\n";
    for (const length of ["content-length: 0\r\ncontent-length: 42\r\n", "content-length:\r\n"]) {
      expect(await answerTo("public", `${first}${length}\r\n${next}`)).not.toContain("200 OK");
    }
    expect(upstream.requests).toHaveLength(before);
  });

  it("with a body in the same piece closes the connection, and is 400 where the body comes later", async () => {
    const body = JSON.stringify({ text: "Forty-four bytes of a body, in JSON." });
    const head =
      "POST /live/s/speak HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n" +
      `content-length: 0\r\ncontent-length: ${body.length}\r\n\r\n`;
    // The library takes the body for the next request, which it refuses itself.
    expect(await answerTo("public", `${head}${body}`)).not.toMatch(/^HTTP\/1\.1 2/m);
    expect(await answerTo("public", head)).toMatch(/^HTTP\/1\.1 400\b/);
  });

  it("is not one that says its length once", async () => {
    const speech = { method: "POST", body: '{"text":"Hello"}' };
    expect((await fetch(`${gateway.url}/live/nobody/speak`, speech)).status).toBe(404);
    expect((await fetch(`${gateway.opsUrl}/healthz`)).status).toBe(200);
  });
});

describe("a header that may come once", () => {
  it.each([
    "host: localhost",
    "origin: http://localhost",
    "authorization: Bearer a",
    "xi-api-key: a",
    "x-telnyx-streaming-auth-token: a",
    "sec-websocket-protocol: voicewire.token.a",
  ])("is refused where it comes twice: %s", async (header) => {
    const [name = ""] = header.split(":");
    const host = name === "host" ? "" : "host: localhost\r\n";
    for (const line of ["GET /v2/voices", "GET /live/s"]) {
      const upgrade = line.endsWith("/s") ? UPGRADE : "";
      const lines = `${host}${upgrade}${header}\r\n${header}\r\n`;
      const answer = await answerTo("public", `${line} HTTP/1.1\r\n${lines}\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 400\b/);
      expect(answer).toContain(`"field":"${name}"`);
    }
  });
});
