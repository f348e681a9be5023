/** What broke a surface is found again: the connection, the message in it, and how both are sent again. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { ConnectionScript, type Selection } from "./connection-script.ts";
import { textMessage } from "./conversation-mutator.ts";
import { Crowd } from "./crowd.ts";
import type { FuzzedGateway } from "./fuzzed-gateway.ts";
import { narrowed } from "./narrow.ts";
import type { WebSocketSurface } from "./surfaces.ts";
import { tryAgain } from "./trial.ts";

const MESSAGES = 20;
const SUSPECTS = Array.from({ length: 150 }, (_, number) => number);

/** A gateway that breaks where all of these come, each as "connection/message". */
const breaksBy =
  (...all: readonly string[]) =>
  (selections: readonly Selection[]) => {
    const sent = selections.flatMap(({ connection, messages }) =>
      (messages ?? Array.from({ length: MESSAGES }, (_, number) => number)).map(
        (number) => `${connection}/${number}`,
      ),
    );
    return Promise.resolve({
      isBroken: all.every((one) => sent.includes(one)),
      counts: selections.map(() => MESSAGES),
    });
  };

describe("narrowed", () => {
  it.each([
    ["one message", ["37/5"], [{ connection: 37, messages: [5] }]],
    ["two of one connection", ["149/0", "149/19"], [{ connection: 149, messages: [0, 19] }]],
    [
      "two connections",
      ["3/1", "90/2"],
      [
        { connection: 3, messages: null },
        { connection: 90, messages: null },
      ],
    ],
  ])("finds %s", async (_, culprits, found) => {
    expect(await narrowed({ suspects: SUSPECTS, tried: breaksBy(...culprits) })).toEqual(found);
  });

  it("finds nothing where it does not break again", async () => {
    expect(await narrowed({ suspects: SUSPECTS, tried: breaksBy("nobody") })).toBeNull();
  });
});

const surface: WebSocketSurface = {
  transport: "websocket",
  words: ["word"],
  others: [textMessage('{"other":1}')],
  path: () => "/",
  conversation: (index) => ["a", "b", "c"].map((name) => textMessage(`{"${name}":${index}}`)),
};

describe("a connection's script", () => {
  const sentBy = (selection: Selection): string[] => {
    const script = new ConnectionScript(surface, 9, selection);
    return Array.from({ length: 5 }, () => script.frames().map(({ bytes }) => bytes.toString("hex"))).flat();
  };

  it("sends the same again, and of it what is chosen", () => {
    const all = sentBy({ connection: 4, messages: null });
    expect(sentBy({ connection: 4, messages: null })).toEqual(all);
    expect(sentBy({ connection: 4, messages: [1, 7] })).toEqual([all[1], all[7]]);
    expect(sentBy({ connection: 5, messages: null })).not.toEqual(all);
  });
});

describe("a surface that calls long messages internal", () => {
  const LONG = 400;

  it("is broken again by one long message", async () => {
    const web = createServer((_, response) => response.end());
    const sockets = new WebSocketServer({ server: web });
    sockets.on("connection", (socket) => {
      socket.on("error", () => socket.terminate());
      socket.on("message", (data: Buffer) => {
        if (data.length > LONG) socket.send('{"type":"error","seq":0,"at_ms":0,"code":"internal"}');
      });
    });
    web.listen(0, "127.0.0.1");
    await once(web, "listening");
    const { port } = web.address() as AddressInfo;
    const gateway = {
      port,
      url: `http://127.0.0.1:${port}`,
      process: { isAlive: true, faults: [] as readonly string[] },
      metric: () => Promise.resolve(Number.NaN),
    } as unknown as FuzzedGateway;
    const options = { gateway, surface, seed: 1, atOnce: 8 };
    const crowd = new Crowd(options);
    while (crowd.faults.length === 0) await crowd.connection();
    const tried = (some: readonly Selection[]) => tryAgain(options, some);
    const [found, ...others] = (await narrowed({ suspects: crowd.suspects, tried })) ?? [];
    web.close();
    web.closeAllConnections();
    expect(others).toEqual([]);
    expect(found?.messages).toHaveLength(1);
    const script = new ConnectionScript(surface, 1, found ?? { connection: -1, messages: [] });
    const sent = Array.from({ length: 8 }, () => script.frames()).flat();
    expect(sent.map(({ meant }) => meant.length > LONG)).toEqual([true]);
  }, 60_000);
});
