/** What the proxy keeps to itself, over real sockets: whose request it is, and the vendor's orders to browsers. */
import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { KeptConnection } from "../fuzz/wire/kept-connection.ts";
import { bytesOf, vendor } from "../helpers/scripted-vendor.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

/** fetch() sends no cookies, writes `sec-` headers itself and mends paths. */
async function ask(
  url: string,
  headers: Record<string, string>,
  { method = "GET", path }: { readonly method?: string; readonly path?: string } = {},
): Promise<IncomingMessage> {
  const asked = request(url, { headers, method, ...(path === undefined ? {} : { path }) });
  asked.end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  return answer;
}

const ABOUT_THE_CLIENT = {
  cookie: "session=1",
  origin: "http://localhost:3000",
  referer: "https://page.example/secret",
  forwarded: "for=192.0.2.1",
  "x-forwarded-for": "192.0.2.1",
  "x-forwarded-host": "gateway.example",
  "x-real-ip": "192.0.2.1",
  "sec-fetch-site": "cross-site",
  "sec-ch-ua": "Browser",
  "x-voicewire-truth": "1",
  "x-http-method-override": "DELETE",
  "x-original-url": "/v1/service-accounts",
};

describe("the proxy's headers", () => {
  it("towards the upstream: nothing about the client, nothing that names another request, and all the rest", async () => {
    let seen: IncomingHttpHeaders = {};
    await using upstream = await vendor((req, res) => {
      seen = req.headers;
      res.end("{}");
    });
    await using gateway = await gatewayAt(upstream.url);
    const answer = await ask(`${gateway.url}/v1/user`, {
      ...ABOUT_THE_CLIENT,
      "x-voicewire-fault": "latency ms=1",
      "x-custom": "kept",
      "user-agent": "sdk/1",
    });
    await bytesOf(answer);
    expect(Object.keys(ABOUT_THE_CLIENT).filter((name) => name in seen)).toEqual([]);
    expect(seen["x-voicewire-fault"]).toBeUndefined();
    expect(seen).toMatchObject({ "x-custom": "kept", "user-agent": "sdk/1" });
  });

  it.each([
    ["bytes that are no UTF-8", Buffer.from("applicati\xcan/json", "latin1")],
    ["characters that HTTP does not have", Buffer.from("a\u65e5\u672cb")],
    ["a control character", Buffer.from("application/json\x7f")],
  ])("towards the upstream: %s are refused, and it is not asked", async (_, value) => {
    let asked = 0;
    await using upstream = await vendor((_req, res) => {
      asked += 1;
      res.end("{}");
    });
    await using gateway = await gatewayAt(upstream.url);
    const { port } = new URL(gateway.url);
    using connection = new KeptConnection(Number(port));
    const head = [Buffer.from("GET /v1/user HTTP/1.1\r\nhost: 127.0.0.1\r\nx-custom: "), value];
    const answer = await connection.exchange(Buffer.concat([...head, Buffer.from("\r\n\r\n")]), false);
    expect(answer).toMatch(/^HTTP\/1.1 400\b/);
    expect(answer).toContain('"code":"invalid_field","message":"Header \\"x-custom\\" has');
    expect(asked).toBe(0);
  });

  it("x-voicewire-fault goes to an upstream that may be asked to fail", async () => {
    let seen: IncomingHttpHeaders = {};
    await using upstream = await vendor((req, res) => {
      seen = req.headers;
      res.end("{}");
    });
    await using gateway = await gatewayAt(upstream.url, {}, { upstreamKey: "", passesFaults: true });
    await bytesOf(await ask(`${gateway.url}/v1/user`, { "x-voicewire-fault": "latency ms=1" }));
    expect(seen["x-voicewire-fault"]).toBe("latency ms=1");
  });

  it("from the upstream: no order to the browser and no address, and the gateway's own rules for pages", async () => {
    await using upstream = await vendor((_req, res) => {
      res.writeHead(307, {
        "set-cookie": ["a=1", "b=2"],
        "clear-site-data": '"*"',
        "strict-transport-security": "max-age=31536000",
        "alt-svc": 'h3=":443"',
        nel: "{}",
        "report-to": "{}",
        "content-security-policy": "default-src *",
        "x-content-type-options": "sniff",
        "access-control-allow-origin": "https://vendor.example",
        "access-control-allow-credentials": "true",
        location: "http://inside.example/v1/user",
        refresh: "0; url=http://inside.example/",
        "content-type": "text/html",
        "request-id": "r1",
        "character-cost": "5",
      });
      res.end("<script>alert(1)</script>");
    });
    await using gateway = await gatewayAt(upstream.url);
    const answer = await ask(`${gateway.url}/v1/user`, {});
    await bytesOf(answer);
    const { date, uwebsockets, ...headers } = answer.headers;
    expect(answer.statusCode).toBe(307);
    expect(headers).toEqual({
      "content-type": "text/html",
      "request-id": "r1",
      "character-cost": "5",
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
      "referrer-policy": "no-referrer",
      vary: "Origin",
      "access-control-expose-headers": expect.stringContaining("request-id, x-trace-id, history-item-id"),
      "transfer-encoding": "chunked",
    });
  });
});

describe("the proxy's paths", () => {
  it("what is not of the interface is answered here: the vendor is not asked", async () => {
    const asked: string[] = [];
    await using upstream = await vendor((req, res) => {
      asked.push(`${req.method} ${req.url}`);
      res.end("{}");
    });
    await using gateway = await gatewayAt(upstream.url, { proxyPaths: "POST /v1/dubbing" });
    const outcome = async (method: string, path: string): Promise<string> => {
      const answer = await ask(gateway.url, {}, { method, path });
      const body = (await bytesOf(answer)).toString();
      const code = answer.statusCode === 200 ? "" : ` ${JSON.parse(body).error.code}`;
      return `${answer.statusCode}${code}`;
    };
    expect(await outcome("GET", "/v1/../admin/secret")).toBe("400 invalid_path");
    expect(await outcome("GET", "/v1/%2e%2e/admin?x=1")).toBe("400 invalid_path");
    expect(await outcome("GET", "/v2/../../x")).toBe("400 invalid_path");
    expect(await outcome("DELETE", "/v1/voices/..%2fhistory")).toBe("400 invalid_path");
    expect(await outcome("POST", "/v1/service-accounts/1/api-keys")).toBe("404 not_found");
    expect(await outcome("POST", "/v1/convai/twilio/outbound-call")).toBe("404 not_found");
    expect(asked).toEqual([]);
    expect(await outcome("POST", "/v1/dubbing")).toBe("200");
    expect(await outcome("GET", "/v1/user?x=../")).toBe("200");
    expect(asked).toEqual(["POST /v1/dubbing", "GET /v1/user?x=../"]);
  });
});

const KEY = "sk_0123456789abcdef0123456789abcdef";

/** Everything that comes, also of an answer that is cut. */
async function comingOf(answer: IncomingMessage): Promise<{ body: string; isWhole: boolean }> {
  const parts: Buffer[] = [];
  try {
    for await (const part of answer) parts.push(part as Buffer);
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: "ECONNRESET" });
  }
  return { body: Buffer.concat(parts).toString(), isWhole: answer.complete };
}

describe("an answer that holds the gateway's key", () => {
  it.each<[string, (res: ServerResponse) => void]>([
    ["in its body", (res) => res.end(JSON.stringify({ xi_api_key: KEY }))],
    ["in a header", (res) => res.setHeader("x-echo", `key=${KEY}`).end("{}")],
    ["or may hold it, as it is compressed", (res) => res.setHeader("content-encoding", "gzip").end("x")],
    ["or may hold it, as it is a part of a text", (res) => res.writeHead(206).end(`${KEY.slice(0, 9)}`)],
  ])("%s is answered with 502 upstream_protocol", async (_, answerWith) => {
    let encoding: string | undefined;
    await using upstream = await vendor((req, res) => {
      encoding = req.headers["accept-encoding"];
      answerWith(res);
    });
    await using gateway = await gatewayAt(upstream.url, {}, { upstreamKey: KEY });
    const answer = await ask(`${gateway.url}/v1/user`, { "accept-encoding": "gzip, br" });
    const { body } = await comingOf(answer);
    expect(answer.statusCode).toBe(502);
    expect(JSON.parse(body)).toMatchObject({ error: { code: "upstream_protocol" } });
    expect(JSON.stringify(answer.headers) + body).not.toContain(KEY.slice(0, 9));
    expect(encoding).toBe("identity");
    expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(200);
  });

  it("split over pieces behind the head is cut before the key", async () => {
    let isRead = false;
    await using upstream = await vendor(async (_req, res) => {
      res.writeHead(200, { "content-type": "text/plain" });
      res.write(`begin ${KEY.slice(0, 7)}`);
      await until("the beginning to be read", () => isRead);
      res.write(KEY.slice(7, 20));
      res.end(`${KEY.slice(20)} end`);
    });
    await using gateway = await gatewayAt(upstream.url, {}, { upstreamKey: KEY });
    const answer = await ask(`${gateway.url}/v1/user`, {});
    const [first] = (await once(answer, "data")) as [Buffer];
    expect([answer.statusCode, first.toString()]).toEqual([200, "begin "]);
    isRead = true;
    expect(await comingOf(answer)).toEqual({ body: "", isWhole: false });
  });

  it("is nothing to a gateway without a key, and beginnings of the key are nothing to any", async () => {
    const bodies: Record<string, string> = { "/v1/user": KEY, "/v1/user/subscription": KEY.slice(0, -1) };
    await using upstream = await vendor((req, res) => res.end(bodies[req.url ?? ""]));
    await using keyless = await gatewayAt(upstream.url, {}, { upstreamKey: "" });
    expect(await (await fetch(`${keyless.url}/v1/user`)).text()).toBe(KEY);
    await using keyed = await gatewayAt(upstream.url, {}, { upstreamKey: KEY });
    const beginning = await fetch(`${keyed.url}/v1/user/subscription`);
    expect(await beginning.text()).toBe(KEY.slice(0, -1));
  });

  it("a part of an audio file is passed on: players ask for it", async () => {
    await using upstream = await vendor((_req, res) => {
      res.writeHead(206, { "content-type": "audio/mpeg", "content-range": "bytes 0-4/9" }).end("sound");
    });
    await using gateway = await gatewayAt(upstream.url, {}, { upstreamKey: KEY });
    const answer = await ask(`${gateway.url}/v1/history/h/audio`, { range: "bytes=0-4" });
    expect([answer.statusCode, (await bytesOf(answer)).toString()]).toEqual([206, "sound"]);
  });
});

describe("an upstream that can't be reached", () => {
  it("is not named to clients: proxied answers, sessions and the vendor's sockets say an error id", async () => {
    const gone = await vendor(() => undefined);
    const { host, port } = new URL(gone.url);
    await gone[Symbol.asyncDispose]();
    await using gateway = await gatewayAt(gone.url);
    const said: string[] = [await (await fetch(`${gateway.url}/v1/user`)).text()];
    const speech = { method: "POST", body: '{"model":"m","input":"Hello","voice":"v"}' };
    said.push(await (await fetch(`${gateway.url}/v1/audio/speech`, speech)).text());
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ type: "speak", text: "Hello." });
    said.push(JSON.stringify(await client.next("error")));
    for (const one of said) {
      expect(one).toMatch(/error id [0-9a-f]{8} in the gateway's log/);
      expect(one).not.toMatch(new RegExp(`${host}|${port}|ECONN`));
    }
  });
});
