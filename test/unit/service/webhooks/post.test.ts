import { execFileSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type PostOptions, post } from "../../../../src/service/webhooks/post.ts";
import type { Resolve } from "../../../../src/service/webhooks/target.ts";
import { FakeClock } from "../../../helpers/fake-clock.ts";
import { Receiver } from "./receiver.ts";

let clock: FakeClock;
let receiver: Receiver;

beforeEach(async () => {
  clock = new FakeClock();
  receiver = await Receiver.start();
});
afterEach(async () => {
  await receiver.close();
});

function start(url: string, options: Partial<PostOptions> = {}) {
  const given = { url, body: '{"a":"é"}', signature: "t=1,v0=a", headers: {} };
  return post(given, { clock, allowPrivate: true, ...options });
}
const send = (url: string, options: Partial<PostOptions> = {}) => start(url, options).result;

const toLoopback: Resolve = async () => [{ address: "127.0.0.1", family: 4 }];

describe("a try", () => {
  it("gives the status of the answer and closes the connection and the timer", async () => {
    receiver.answerWith(418);
    expect(await send(receiver.url)).toEqual({ kind: "answered", status: 418 });
    expect(receiver.received[0]?.body.toString()).toBe('{"a":"é"}');
    expect(clock.pending).toBe(0);
    await vi.waitFor(() => expect(receiver.open).toBe(0));
  });

  it("follows no redirect", async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      receiver.answerWith(status, { location: receiver.url });
      expect(await send(receiver.url)).toEqual({ kind: "answered", status });
    }
    expect(receiver.received).toHaveLength(5);
  });

  it("reads no more of a huge answer than it has to", async () => {
    let written = 0;
    receiver.answer = ({ response }) => {
      const part = Buffer.alloc(16_384);
      const more = () => {
        while (!response.destroyed) {
          written += part.length;
          if (!response.write(part)) return void response.once("drain", more);
        }
      };
      more();
    };
    expect(await send(receiver.url)).toEqual({ kind: "answered", status: 200 });
    await vi.waitFor(() => expect(receiver.open).toBe(0));
    // What fits into the buffers of two sockets on top.
    expect(written).toBeLessThan(32 * 1024 * 1024);
  });

  it("is over after ten seconds where the answer never ends; the status stands", async () => {
    receiver.answer = ({ response }) => {
      response.writeHead(200, { "content-length": "10" });
      response.write("a");
    };
    // Resolves when the client, not the server, has the head of the answer.
    const channel = "http.client.response.finish";
    const head = new Promise<void>((resolve) => {
      const onHead = () => {
        unsubscribe(channel, onHead);
        resolve();
      };
      subscribe(channel, onHead);
    });
    const { result } = start(receiver.url);
    await head;
    clock.advance(9_999);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    expect(await result).toEqual({ kind: "answered", status: 200 });
    await vi.waitFor(() => expect(receiver.open).toBe(0));
  });

  it("is cut off where the other side is no HTTP server, closes at once, or has a head without end", async () => {
    const answers = [
      (socket: Socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n"),
      (socket: Socket) => socket.end(),
      (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\nX-Long: ${"a".repeat(100_000)}`),
    ];
    for (const answer of answers) {
      const { server, url, sockets } = await rawServer(answer);
      expect(await send(url)).toEqual({ kind: "network" });
      expect(clock.pending).toBe(0);
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("can be ended at any moment, before it is connected as well", async () => {
    const early = start(receiver.url);
    early.abort();
    expect(await early.result).toEqual({ kind: "aborted" });
    const looking = start("http://hooks.example/", { resolve: () => new Promise(() => undefined) });
    looking.abort();
    looking.abort();
    expect(await looking.result).toEqual({ kind: "aborted" });
    receiver.staySilent();
    const late = start(receiver.url);
    await receiver.take();
    late.abort();
    expect(await late.result).toEqual({ kind: "aborted" });
    await vi.waitFor(() => expect(receiver.open).toBe(0));
    expect(clock.pending).toBe(0);
  });

  it("counts the time that the lookup takes", async () => {
    const { result } = start("http://hooks.example/", { resolve: () => new Promise(() => undefined) });
    clock.advance(10_000);
    expect(await result).toEqual({ kind: "timeout" });
  });
});

describe("where a try goes", () => {
  it("is the address that was looked at: the name is asked once, and stays in the Host header", async () => {
    const resolve = vi.fn(toLoopback);
    expect(await send(`http://hooks.example:${receiver.port}/a`, { resolve })).toEqual({
      kind: "answered",
      status: 200,
    });
    expect(resolve).toHaveBeenCalledTimes(1);
    expect(receiver.received[0]?.headers.host).toBe(`hooks.example:${receiver.port}`);
  });

  it("is nowhere if the name leads to a private address, now or since a moment", async () => {
    const port = receiver.port;
    let asked = 0;
    // A name that leads to the public internet for whoever asks first, and here from then on.
    const rebinding: Resolve = async () => [
      { address: asked++ === 0 ? "192.0.2.1" : "127.0.0.1", family: 4 },
    ];
    for (const resolve of [toLoopback, rebinding, rebinding]) {
      expect(await send(`https://hooks.example:${port}/`, { allowPrivate: false, resolve })).toEqual({
        kind: "refused",
      });
    }
    expect(receiver.connections).toBe(0);
  });

  it("is nowhere if the URL itself is private, though it is stored", async () => {
    for (const host of ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"]) {
      for (const scheme of ["http", "https"]) {
        expect(await send(`${scheme}://${host}:${receiver.port}/`, { allowPrivate: false })).toEqual({
          kind: "refused",
        });
      }
    }
    expect(receiver.connections).toBe(0);
  });

  it("is nowhere if the system itself resolves the name to this machine", async () => {
    // The real resolver: "localhost." passes as a name here, as the URL is not looked at.
    const { checkedLookup } = await import("../../../../src/service/webhooks/target.ts");
    const failure = await new Promise((resolve) => {
      checkedLookup(false)("localhost", { all: true }, (error) => resolve(error));
    });
    expect(failure).toMatchObject({ name: "TargetRefused" });
  });

  it("is not reached where the name is not known", async () => {
    const resolve: Resolve = async () => {
      throw new Error("ENOTFOUND");
    };
    expect(await send("https://hooks.example/", { allowPrivate: false, resolve })).toEqual({
      kind: "network",
    });
  });
});

describe("over TLS", () => {
  let folder: string;
  let secure: Receiver;
  let certificates: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=hooks.example", "-addext", "subjectAltName=DNS:hooks.example"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const made = ["req", "-x509", ...curve, "-keyout", key, "-out", cert, "-days", "2", ...subject];
    execFileSync("openssl", made, { stdio: "ignore" });
    certificates = await readFile(cert, "utf8");
    secure = await Receiver.start({ key: await readFile(key, "utf8"), cert: certificates });
  });
  afterEach(async () => {
    await secure.close();
    await rm(folder, { recursive: true, force: true });
  });

  it("it arrives at a receiver whose certificate is trusted", async () => {
    const url = `https://hooks.example:${secure.port}/`;
    expect(await send(url, { resolve: toLoopback, certificates })).toEqual({ kind: "answered", status: 200 });
    expect(secure.received[0]?.body.toString()).toBe('{"a":"é"}');
  });

  it("it does not at one with an unknown certificate, or that of another name", async () => {
    const known = `https://hooks.example:${secure.port}/`;
    expect(await send(known, { resolve: toLoopback })).toEqual({ kind: "network" });
    const other = `https://other.example:${secure.port}/`;
    expect(await send(other, { resolve: toLoopback, certificates })).toEqual({ kind: "network" });
    expect(secure.received).toEqual([]);
  });
});

async function rawServer(answer: (socket: Socket) => unknown) {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => socket.destroy());
    socket.once("data", () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { server, sockets, url: `http://127.0.0.1:${port}/` };
}
