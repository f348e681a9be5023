/** The vendor's interface on the gateway's port, over real sockets to a plain HTTP server that stands for the vendor. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { get, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { bytesOf, vendor } from "../helpers/scripted-vendor.ts";
import { gatewayAt } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

/** For what holds whatever the path is. */
const EVERY_PATH = { proxyPaths: "GET /v1/*, POST /v1/*, PUT /v1/*, PATCH /v1/*, DELETE /v1/*" };

describe("the proxy", () => {
  it("passes method, path, query, headers and body on, with the key in the place of the client's own", async () => {
    const seen: { method?: string; url?: string; headers: IncomingMessage["headers"]; body: string }[] = [];
    await using upstream = await vendor(async (req, res) => {
      seen.push({
        method: req.method ?? "",
        url: req.url ?? "",
        headers: req.headers,
        body: (await bytesOf(req)).toString(),
      });
      res.writeHead(207, "Whatever", {
        "content-type": "application/json",
        "x-trace-id": "abc",
      });
      res.end('{"ok":true}');
    });
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH, { upstreamKey: "sk_secret" });
    for (const method of ["POST", "PATCH", "DELETE", "PUT", "GET"]) {
      const answer = await fetch(`${gateway.url}/v1/history/abc?page_size=5&search=a%20b`, {
        method,
        headers: {
          "xi-api-key": "the client's",
          authorization: "Bearer x",
          "x-custom": "kept",
          "user-agent": "sdk/1",
        },
        ...(method === "GET" ? {} : { body: `body of ${method}` }),
      });
      expect(answer.status).toBe(207);
      expect(await answer.json()).toEqual({ ok: true });
      expect(answer.headers.get("x-trace-id")).toBe("abc");
      const got = seen.at(-1);
      expect(got).toMatchObject({
        method,
        url: "/v1/history/abc?page_size=5&search=a%20b",
        body: method === "GET" ? "" : `body of ${method}`,
        headers: { "xi-api-key": "sk_secret", "x-custom": "kept", "user-agent": "sdk/1" },
      });
      expect(got?.headers.authorization).toBeUndefined();
      expect(got?.headers.host).toBe(new URL(upstream.url).host);
    }
  });

  it("leaves the client's own key where the gateway has none, and what is of one hop behind", async () => {
    let headers: IncomingMessage["headers"] = {};
    await using upstream = await vendor((req, res) => {
      headers = req.headers;
      res.writeHead(200, { connection: "x-hop", "x-hop": "1", "x-kept": "2" }).end("done");
    });
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH, { upstreamKey: "" });
    const asked = get(`${gateway.url}/v1/user`, {
      headers: { "xi-api-key": "mine", connection: "keep-alive, x-mine", "x-mine": "1", te: "trailers" },
    });
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    expect((await bytesOf(answer)).toString()).toBe("done");
    expect(answer.headers["x-kept"]).toBe("2");
    expect(answer.headers["x-hop"]).toBeUndefined();
    expect(headers["xi-api-key"]).toBe("mine");
    expect(headers["x-mine"]).toBeUndefined();
    expect(headers.te).toBeUndefined();
  });

  it("gives every byte of a large answer, with its length or in chunks, and of none", async () => {
    const body = randomBytes(9_000_000);
    await using upstream = await vendor((req, res) => {
      if (req.url === "/v1/length") res.setHeader("content-length", body.length);
      if (req.url === "/v1/nothing") res.writeHead(204).end();
      else if (req.url === "/v1/empty") res.writeHead(200, { "content-length": 0 }).end();
      else {
        if (req.method !== "HEAD") res.write(body);
        res.end();
      }
    });
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH);
    for (const path of ["length", "chunks"]) {
      const answer = await fetch(`${gateway.url}/v1/${path}`);
      expect(answer.headers.get("content-length")).toBe(path === "length" ? String(body.length) : null);
      expect(Buffer.from(await answer.arrayBuffer()).equals(body)).toBe(true);
    }
    const head = await fetch(`${gateway.url}/v1/length`, { method: "HEAD" });
    expect(head.headers.get("content-length")).toBe(String(body.length));
    expect((await fetch(`${gateway.url}/v1/nothing`)).status).toBe(204);
    expect(await (await fetch(`${gateway.url}/v1/empty`)).text()).toBe("");
  });

  it.each([
    ["in chunks", {}],
    ["with its length", { "content-length": "4" }],
  ])("sends a short answer %s in one piece: head, body and end", async (_, headers) => {
    await using upstream = await vendor((_, res) => res.writeHead(200, headers).end("done"));
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH);
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    try {
      for (let ask = 0; ask < 5; ask += 1) {
        socket.write("GET /v1/history/abc HTTP/1.1\r\nhost: localhost\r\n\r\n");
        const [piece] = (await once(socket, "data")) as [Buffer];
        expect(piece.toString()).toMatch(/^HTTP\/1.1 200 OK\r\n.*\r\n\r\n(done|4\r\ndone\r\n0\r\n\r\n)$/s);
      }
    } finally {
      socket.destroy();
    }
  });

  it("streams an answer as it comes, and an upload as it comes", async () => {
    const order: string[] = [];
    await using upstream = await vendor((req, res) => {
      res.write("first");
      req.on("data", (piece: Buffer) => order.push(`vendor got ${piece.toString()}`));
      req.on("end", () => res.end("last"));
    });
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH);
    const upload = request(`${gateway.url}/v1/audio-isolation/stream`, { method: "POST" });
    upload.write("one");
    const [answer] = (await once(upload, "response")) as [IncomingMessage];
    const [piece] = (await once(answer, "data")) as [Buffer];
    order.push(`client got ${piece.toString()}`);
    await until("the first piece", () => order.includes("vendor got one"));
    expect(order).not.toContain("vendor got two");
    upload.end("two");
    expect((await bytesOf(answer)).toString()).toBe("last");
    expect(order).toContain("vendor got two");
  });

  it("holds an answer back while its client does not read, and gives all of it then", async () => {
    const total = 64 * 1024 * 1024;
    const block = Buffer.alloc(1024 * 1024, 7);
    let handed = 0;
    await using upstream = await vendor((_req, res) => {
      const more = (): void => {
        while (handed < total) {
          handed += block.length;
          if (!res.write(block)) {
            res.once("drain", more);
            return;
          }
        }
        res.end();
      };
      more();
    });
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH);
    const asked = get(`${gateway.url}/v1/slow`);
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    answer.pause();
    let before = -1;
    while (handed !== before) {
      before = handed;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    expect(handed).toBeLessThan(total / 2);
    let bytes = 0;
    for await (const part of answer) bytes += (part as Buffer).length;
    expect(bytes).toBe(total);
  });

  it("takes an upload of 200 MB through with its memory flat, and holds it back while the vendor does not read", async () => {
    const block = randomBytes(1024 * 1024);
    const count = 200;
    const hash = createHash("sha256");
    let isReading = false;
    await using upstream = await vendor(async (req, res) => {
      await until("the go-ahead", () => isReading);
      for await (const piece of req) hash.update(piece as Buffer);
      res.end(hash.digest("hex"));
    });
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH);
    const upload = request(`${gateway.url}/v1/speech-to-speech/v`, {
      method: "POST",
      headers: { "content-length": count * block.length },
    });
    const expected = createHash("sha256");
    let written = 0;
    const writing = (async () => {
      for (; written < count; written += 1) {
        expected.update(block);
        if (!upload.write(block)) await once(upload, "drain");
      }
      upload.end();
    })();
    let before = -1;
    while (written !== before) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    expect(written).toBeLessThan(count / 2);
    const startBytes = process.memoryUsage().rss;
    let peakBytes = 0;
    const watch = setInterval(() => {
      peakBytes = Math.max(peakBytes, process.memoryUsage().rss);
    }, 20);
    isReading = true;
    await writing;
    const [answer] = (await once(upload, "response")) as [IncomingMessage];
    clearInterval(watch);
    expect((await bytesOf(answer)).toString()).toBe(expected.digest("hex"));
    expect(peakBytes - startBytes).toBeLessThan(120 * 1024 * 1024);
  });

  it("gives the request up with its client, in the middle of the answer and of the upload", async () => {
    let left = 0;
    let begun = 0;
    await using upstream = await vendor((req, res) => {
      begun += 1;
      req.on("error", () => undefined);
      req.resume();
      res.once("close", () => {
        if (!res.writableFinished) left += 1;
      });
      res.write("some");
    });
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH);
    const reading = get(`${gateway.url}/v1/stream`);
    const [answer] = (await once(reading, "response")) as [IncomingMessage];
    await once(answer, "data");
    answer.destroy();
    await until("the vendor's notice", () => left === 1);
    const upload = request(`${gateway.url}/v1/upload`, { method: "POST" });
    upload.on("error", () => undefined);
    upload.write("half of it");
    await until("the upload", () => begun === 2);
    upload.destroy();
    await until("the vendor's notice", () => left === 2);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  });

  it("answers with an error of ours where the vendor can't be reached, and cuts an answer that was cut", async () => {
    await using upstream = await vendor((req, res) => {
      if (req.url === "/v1/refused") req.socket.destroy();
      else {
        res.writeHead(200, { "content-length": 1000 }).write("only this");
        setTimeout(() => res.destroy(), 20);
      }
    });
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH);
    const refused = await fetch(`${gateway.url}/v1/refused`);
    expect(refused.status).toBe(502);
    expect(await refused.json()).toMatchObject({ error: { code: "upstream_unreachable" } });
    const cut = await fetch(`${gateway.url}/v1/cut`);
    await expect(cut.text()).rejects.toThrow();
  });

  it("takes four forms at once of each client address, and one more when one of them has ended in whatever way", async () => {
    const open: ServerResponse[] = [];
    await using upstream = await vendor((req, res) => {
      req.on("error", () => undefined);
      req.resume();
      open.push(res);
    });
    await using gateway = await gatewayAt(upstream.url);
    const begin = (localAddress: string, type = "Multipart/Form-Data; boundary=xyz") => {
      const sent = request(`${gateway.url}/v1/voices/add`, {
        method: "POST",
        headers: { "content-type": type },
        localAddress,
        agent: false,
      });
      sent.on("error", () => undefined);
      sent.write("--xyz");
      return sent;
    };
    const taken = async (...given: Parameters<typeof begin>) => {
      const before = open.length;
      const sent = begin(...given);
      await until("the vendor's notice", () => open.length === before + 1);
      return sent;
    };
    const refused = async () => {
      const sent = begin("127.0.0.1");
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      expect(answer.statusCode).toBe(429);
      const { error } = JSON.parse((await bytesOf(answer)).toString());
      expect(error).toMatchObject({ code: "upload_limit", retryable: true });
      sent.destroy();
    };
    const [first, second] = [await taken("127.0.0.1"), await taken("127.0.0.1")];
    const third = await taken("127.0.0.1");
    await taken("127.0.0.1");
    await refused();
    // Of another address, and what is no form.
    await taken("127.0.0.2");
    await taken("127.0.0.1", "audio/wav");
    first.destroy();
    await until("the vendor's notice", () => open[0]?.destroyed === true);
    await taken("127.0.0.1");
    await refused();
    open[1]?.end("done");
    const [done] = (await once(second, "response")) as [IncomingMessage];
    await bytesOf(done);
    await taken("127.0.0.1");
    await refused();
    open[2]?.destroy();
    const [failed] = (await once(third, "response")) as [IncomingMessage];
    expect(failed.statusCode).toBe(502);
    await taken("127.0.0.1");
    await refused();
  });

  it("takes forms of each client that a trusted proxy speaks for", async () => {
    let taken = 0;
    await using upstream = await vendor((req) => {
      req.on("error", () => undefined);
      req.resume();
      taken += 1;
    });
    const settings = { maxUploadsPerClient: 1, trustedProxies: "127.0.0.1" };
    await using gateway = await gatewayAt(upstream.url, settings);
    for (const client of ["198.51.100.1", "198.51.100.2"]) {
      const sent = request(`${gateway.url}/v1/voices/add`, {
        method: "POST",
        headers: { "content-type": "multipart/form-data; boundary=xyz", "x-forwarded-for": client },
        agent: false,
      });
      sent.on("error", () => undefined);
      sent.write("--xyz");
    }
    await until("the vendor's notice", () => taken === 2);
  });

  it("lets browsers ask with every method of the interface", async () => {
    await using upstream = await vendor((_req, res) => res.end());
    await using gateway = await gatewayAt(upstream.url, EVERY_PATH);
    const answer = await fetch(`${gateway.url}/v1/history/x`, { method: "OPTIONS" });
    for (const method of ["GET", "POST", "PATCH", "DELETE"])
      expect(answer.headers.get("access-control-allow-methods")).toContain(method);
  });
});
