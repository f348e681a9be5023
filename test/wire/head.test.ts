/** HEAD, which load balancers and `curl -I` send: the head of what GET answers, and no body (RFC 9110 section 9.3.2). */
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { vendor } from "../helpers/scripted-vendor.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";

const keys = new TestKeys({ keys: [{ id: "ops", hash: `sha256:${"0".repeat(64)}` }] });
let upstream: FakeUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFakeUpstream();
  gateway = await gatewayAt(upstream.url, { keysFile: keys.path });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
  keys[Symbol.dispose]();
});

interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
  /** On a connection that another request had before. */
  readonly isLater: boolean;
}

async function ask(agent: Agent, url: string, method: string, key?: string): Promise<Answered> {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const sent = request(url, { method, agent, headers }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) text += piece;
  const { date: _, ...kept } = answer.headers;
  return { status: answer.statusCode ?? 0, headers: kept, text, isLater: sent.reusedSocket };
}

describe("HEAD", () => {
  it.each([
    ["public", "/healthz"],
    ["public", "/readyz"],
    ["public", "/"],
    ["ops", "/healthz"],
    ["ops", "/readyz"],
  ] as const)(
    "of a stranger on the %s port: %s is answered as GET is, without a body",
    async (port, path) => {
      const url = `${port === "ops" ? gateway.opsUrl : gateway.url}${path}`;
      // Bytes behind the head would be read as the next answer.
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      try {
        const head = await ask(agent, url, "HEAD");
        const get = await ask(agent, url, "GET");
        expect(get.isLater).toBe(true);
        expect(head.status).toBe(get.status);
        expect(head.headers).toEqual(get.headers);
        expect(head.headers["content-length"]).toBe(String(Buffer.byteLength(get.text)));
        expect([head.text, get.text.length > 0]).toEqual(["", true]);
      } finally {
        agent.destroy();
      }
    },
  );

  it("HEAD of a path that is not there is 404 without a body", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      const { status, text } = await ask(agent, `${gateway.url}/nowhere`, "HEAD", keys.key);
      expect([status, text]).toEqual([404, ""]);
      expect(await ask(agent, `${gateway.url}/healthz`, "GET")).toMatchObject({ status: 200, isLater: true });
    } finally {
      agent.destroy();
    }
  });

  it("that is passed upstream leaves the connection good for the next request", async () => {
    await using other = await vendor((_req, res) => res.setHeader("content-length", 2000).end());
    await using open = await gatewayAt(other.url);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      const head = await ask(agent, `${open.url}/v1/voices/settings/default`, "HEAD");
      expect([head.status, head.headers["content-length"]]).toEqual([200, "2000"]);
      expect(await ask(agent, `${open.url}/healthz`, "GET")).toMatchObject({ status: 200, isLater: true });
    } finally {
      agent.destroy();
    }
  });

  it("wants a key where GET does", async () => {
    const agent = new Agent();
    expect((await ask(agent, `${gateway.url}/asyncapi.json`, "HEAD")).status).toBe(401);
    expect((await ask(agent, `${gateway.url}/asyncapi.json`, "HEAD", keys.key)).status).toBe(200);
    expect((await ask(agent, `${gateway.opsUrl}/metrics`, "HEAD")).status).toBe(401);
  });
});
