/** Mutated messages on every socket of a real gateway process, a few on each; `npm run fuzz -- wire` sends a million. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import type { Listening } from "../../helpers/listening.ts";
import { startCarrierEdge } from "../../unit/telephony/carrier-edge.ts";
import { Mutator } from "../mutator.ts";
import { ConversationMutator, textMessage } from "./conversation-mutator.ts";
import { Crowd, runCrowd } from "./crowd.ts";
import { type FuzzedGateway, startFuzzedGateway } from "./fuzzed-gateway.ts";
import { startQuickUpstream } from "./quick-upstream.ts";
import { runSurface } from "./surface-run.ts";
import { surfacesOf } from "./surfaces.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const SURFACES = surfacesOf(fileURLToPath(new URL("..", import.meta.url)));
const MAIN = fileURLToPath(new URL("../../../dist/main.js", import.meta.url));
const INPUTS = 300;
const AT_ONCE = 16;

describe("mutated messages", () => {
  let upstream: Listening;
  let gateway: FuzzedGateway;

  beforeAll(async () => {
    upstream = await startQuickUpstream();
    gateway = await startFuzzedGateway({ main: MAIN, upstreamUrl: upstream.url });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  it.each(Object.entries(SURFACES))(
    "%s: known refusals alone, and nothing is left behind",
    async (name, surface) => {
      const job = { name, surface, inputs: INPUTS, seed: 3, maxSeconds: 60, atOnce: AT_ONCE };
      const report = await runSurface(gateway, job);
      expect(report.faults).toEqual([]);
      expect(report.inputs).toBeGreaterThanOrEqual(INPUTS);
    },
  );

  it("every socket of the gateway is a surface", async () => {
    await using edge = await startCarrierEdge();
    const paths = Object.values(SURFACES).flatMap((surface) =>
      surface.transport === "websocket" ? [0, 1].map((index) => surface.path(index).split("?")[0] ?? "") : [],
    );
    const sockets = edge.edge.routes.filter(({ method }) => method === "ws");
    expect(sockets.length).toBeGreaterThan(5);
    const missed = sockets.filter(({ pattern }) => {
      const path = new RegExp(`^${pattern.replaceAll(/:\w+/g, "[^/]+")}$`);
      // All other paths below /v1 are refused.
      return pattern !== "/v1/*" && !paths.some((one) => path.test(one));
    });
    expect(missed.map(({ pattern }) => pattern)).toEqual([]);
  });
});

describe("a crowd", () => {
  const surface = {
    transport: "websocket",
    words: [],
    others: [],
    path: () => "/",
    conversation: () => [textMessage("{}")],
  } as const;

  const IS_WELL = { isOver: () => false, look: () => Promise.resolve(true) };

  async function faultsOf(answer: string, closeCode: number): Promise<readonly string[]> {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    server.on("connection", (socket) => {
      // What the crowd sends is wrong at times.
      socket.on("error", () => socket.terminate());
      socket.send(answer);
      socket.close(closeCode);
    });
    const { port } = server.address() as AddressInfo;
    const crowd = new Crowd({ gateway: { port } as FuzzedGateway, surface, seed: 1 });
    await runCrowd(crowd, { inputs: 1, atOnce: 1, ...IS_WELL });
    server.close();
    return crowd.faults;
  }

  it.each([
    ['{"type":"error","seq":0,"at_ms":0,"code":"internal"}', 1000, "internal"],
    ['{"type":"error","seq":0,"at_ms":0,"code":"no_such_code"}', 1000, "unknown code"],
    ['{"type":"hello"}', 4999, "4999"],
    ['{"type":"hello"}', 4500, "4500"],
  ])("finds fault with %s and close %i", async (answer, closeCode, what) => {
    expect(await faultsOf(answer, closeCode)).toEqual([expect.stringContaining(what)]);
  });

  it("finds fault with a gateway that reads and does not answer", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong: false });
    await once(server, "listening");
    server.on("connection", (socket) => socket.on("error", () => socket.terminate()));
    const { port } = server.address() as AddressInfo;
    const gateway = { port } as FuzzedGateway;
    const crowd = new Crowd({ gateway, surface, seed: 1, answerMs: 50 });
    await crowd.connection();
    server.close();
    expect(crowd.faults).toEqual([expect.stringContaining("nothing was answered")]);
  });

  it("finds no fault with a refusal that is known", async () => {
    expect(await faultsOf('{"type":"error","seq":0,"at_ms":0,"code":"malformed_json"}', 4400)).toEqual([]);
  });
});

describe("a conversation's mutator", () => {
  it("makes the same of the same seed, and something else of another", () => {
    const made = (seed: number): string[] => {
      const mutator = new ConversationMutator(new Mutator(seed));
      const good = ["a", "b", "c"].map((text) => textMessage(`{"text":"${text}"}`));
      return Array.from({ length: 50 }, () =>
        mutator
          .conversation(good, good)
          .map((message) => mutator.frames(mutator.message(message, message)).bytes.toString("hex"))
          .join(),
      );
    };
    expect(made(1)).toEqual(made(1));
    expect(made(1)).not.toEqual(made(2));
  });
});
