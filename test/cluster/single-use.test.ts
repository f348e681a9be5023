/** Single-use tokens in a cluster: each opens one connection at one node, on every surface. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { startNodes, type TestNode, type TestNodes } from "../helpers/cluster-nodes.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { knock, upgradeStatus } from "../helpers/knock.ts";
import { TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

const USED = { status: 401, code: "token_expired" };
const TAKEN = { status: 101, code: "" };
let upstream: FakeUpstream;
let keys: TestKeys;
let nodes: TestNodes;

beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 5 }));
  keys = new TestKeys();
  // A store that takes its time: what follows the request comes before its answer.
  nodes = await startNodes(upstream.url, { keysFile: keys.path }, { claimMs: 30 });
});
afterAll(async () => {
  await nodes[Symbol.asyncDispose]();
  keys[Symbol.dispose]();
  await upstream.close();
});

const once = (grants: object = {}, claims: object = {}) =>
  tokenFor(
    {
      sessions: ["*"],
      allow: ["open", "speak", "listen", "interrupt", "captions", "call", "proxy"],
      once: true,
      ...grants,
    },
    { claims: { jti: crypto.randomUUID(), ...claims } },
  );
const at = ({ gateway }: TestNode, path: string): string => `${gateway.wsUrl}${path}`;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const asServer = () => ({ headers: bearer(keys.key) });
const entries = (): number => nodes.hub.owners.entries.filter(({ key }) => key.startsWith("token.")).length;

/** Status and code of an answer to a request. */
async function ask({ gateway }: TestNode, path: string, request: RequestInit = {}) {
  const answer = await fetch(`${gateway.url}${path}`, request);
  const { error } = (await answer.json()) as { error?: { code: string } };
  return { status: answer.status, code: error?.code ?? "" };
}

describe("a single-use token that comes to two nodes at once", () => {
  it.each([
    ["the native socket", "/live/s?format=none&token="],
    ["a carrier's socket", "/carrier/telnyx?token="],
    ["the vendor's socket", "/v1/text-to-speech/v/stream-input?output_format=pcm_16000&single_use_token="],
  ])("opens %s at one of them, and never again", async (_name, path) => {
    const url = `${path}${once()}`;
    const [one, two] = nodes.nodes.map((node) => at(node, url));
    const results = await Promise.all([one, two, one].map((address = "") => upgradeStatus(address)));
    expect(results.sort()).toEqual([101, 401, 401]);
    for (const address of [one, two]) expect(await upgradeStatus(address ?? "")).toBe(401);
  });

  it("is taken in the first message of one vendor's socket, and messages behind it are heard in order", async () => {
    const said = async (node: TestNode, token: string) => {
      const socket = new WebSocket(at(node, "/v1/text-to-speech/v/stream-input?output_format=pcm_16000"));
      const messages: { audio?: string; error?: string; isFinal?: boolean }[] = [];
      const closed = new Promise<number>((resolve) => {
        socket.on("close", (code) => resolve(code));
      });
      socket.on("message", (data) => messages.push(JSON.parse(String(data)) as object));
      socket.on("open", () => {
        socket.send(JSON.stringify({ text: " ", authorization: `Bearer ${token}` }));
        socket.send(JSON.stringify({ text: "Hello there. " }));
        socket.send(JSON.stringify({ text: "" }));
      });
      await closed;
      return messages.some(({ isFinal }) => isFinal === true) ? "spoken" : "refused";
    };
    const token = once();
    expect((await Promise.all(nodes.nodes.map((node) => said(node, token)))).sort()).toEqual([
      "refused",
      "spoken",
    ]);
  });

  it("refreshes one connection; what its client says behind it waits, and is answered", async () => {
    const joined = async (node: TestNode) => {
      const token = tokenFor(
        { sessions: ["*"], allow: ["open", "speak", "listen"] },
        { claims: { sub: "bo" } },
      );
      const client = await TestClient.connect(node.gateway, `/live/refresh-${node.name}`, {
        headers: bearer(token),
      });
      await client.next("hello");
      return client;
    };
    await using one = await joined(nodes.one);
    await using two = await joined(nodes.two);
    const token = once({ allow: ["open", "speak", "listen"] }, { sub: "bo" });
    for (const client of [one, two]) {
      client.send({ type: "refresh", token });
      client.send({ type: "ping" });
    }
    await Promise.all([one.next("pong"), two.next("pong")]);
    const answers = [one, two].map((client) =>
      client.events.map(({ type }) => type).filter((type) => type !== "hello"),
    );
    expect(answers.sort()).toEqual([
      ["error", "pong"],
      ["refreshed", "pong"],
    ]);
  });
});

describe("a request with a single-use token", () => {
  it("is answered once, with the body that came before the other nodes were asked", async () => {
    await using client = await TestClient.connect(nodes.one.gateway, "/live/body?pace=burst", asServer());
    await client.next("hello");
    const [token, body] = [once(), JSON.stringify({ text: "Hello there.", voice_id: "v" })];
    const request = { method: "POST", headers: bearer(token), body };
    expect((await ask(nodes.one, "/live/body/speak", request)).status).toBe(202);
    expect((await client.next("utterance.done")).outcome).toBe("done");
    for (const node of nodes.nodes) expect(await ask(node, "/live/body/speak", request)).toEqual(USED);
  });

  it("may have a body that comes in many pieces", async () => {
    await using client = await TestClient.connect(nodes.one.gateway, "/live/pieces?format=none", asServer());
    await client.next("hello");
    const text = JSON.stringify({ text: `Hello${" there".repeat(500)}.`, voice_id: "v" });
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        for (let from = 0; from < text.length; from += 500) {
          controller.enqueue(Buffer.from(text.slice(from, from + 500)));
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        controller.close();
      },
    });
    const request = { method: "POST", headers: bearer(once()), body, duplex: "half" } as RequestInit;
    expect((await ask(nodes.one, "/live/pieces/speak", request)).status).toBe(202);
  });

  it("that is refused for another reason has not used the token, which is good at another node", async () => {
    const before = entries();
    const token = once({ sessions: ["mine"] });
    expect(await knock(at(nodes.one, `/live/other?format=none&token=${token}`))).toEqual({
      status: 403,
      code: "forbidden",
    });
    expect(entries()).toBe(before);
    expect(await knock(at(nodes.two, `/live/mine?format=none&token=${token}`))).toEqual(TAKEN);
    expect(entries()).toBe(before + 1);
  });

  it("leaves the token unused when its client goes before the answer", async () => {
    const url = `/live/gone?format=none&token=${once()}`;
    const { owners } = nodes.one.bus;
    const claim = owners.claim.bind(owners);
    const before = entries();
    const socket = new WebSocket(at(nodes.one, url));
    socket.on("error", () => undefined);
    let claims = 0;
    owners.claim = async (...asked) => {
      socket.terminate();
      // The gateway reads that it has gone.
      await new Promise((resolve) => setTimeout(resolve, 200));
      claims += 1;
      return claim(...asked);
    };
    await until("the node has asked, and has let go", () => claims === 1 && entries() === before);
    owners.claim = claim;
    expect(await knock(at(nodes.two, url))).toEqual(TAKEN);
  });

  it("is refused with a time while its node is cut off, and taken when it is back", async () => {
    const token = once();
    const path = `/live/s/audio.wav?token=${token}`;
    nodes.one.bus.cut();
    try {
      const answer = await fetch(`${nodes.one.gateway.url}${path}`);
      const { error } = (await answer.json()) as { error: object };
      expect(error).toMatchObject({ code: "bus_lost", retryable: true, retry_after_ms: 1000 });
      expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
      // Other keys and tokens need no other node.
      expect((await ask(nodes.one, "/live/none/speak", { method: "POST", ...asServer() })).code).toBe(
        "invalid_field",
      );
    } finally {
      nodes.one.bus.heal();
    }
    expect(await knock(at(nodes.one, `/live/s?format=none&token=${token}`))).toEqual(TAKEN);
  });
});

describe("a single-use token that the session's node refuses", () => {
  const full = async () => {
    const few = await startNodes(upstream.url, { keysFile: keys.path, maxListeners: 1 });
    const first = await TestClient.connect(few.one.gateway, "/live/full?format=none", asServer());
    await first.next("hello");
    return {
      few,
      first,
      held: () => few.hub.owners.entries.filter(({ key }) => key.startsWith("token.")).length,
    };
  };

  it("is good again where its client arrived, and opens one connection", async () => {
    const { few, first, held } = await full();
    await using _few = few;
    const headers = bearer(once());
    const refused = await TestClient.connect(few.two.gateway, "/live/full?format=none", { headers });
    expect((await refused.next("error")).code).toBe("listener_limit");
    await refused.untilClosed();
    await until("the token is released", () => held() === 0);
    await first[Symbol.asyncDispose]();
    await using client = await TestClient.connect(few.two.gateway, "/live/full?format=none&wait=true", {
      headers,
    });
    await client.next("hello");
    for (const node of few.nodes) {
      expect(await upgradeStatus(at(node, "/live/full?format=none"), headers)).toBe(401);
    }
  });

  it("is good again for who asks for audio over HTTP", async () => {
    const { few, first, held } = await full();
    await using _few = few;
    await using _first = first;
    const answer = await fetch(`${few.two.gateway.url}/live/full/audio.wav`, { headers: bearer(once()) });
    expect(answer.status).toBe(503);
    await answer.body?.cancel();
    await until("the token is released", () => held() === 0);
  });
});
