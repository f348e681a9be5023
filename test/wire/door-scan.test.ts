/** Every route of a gateway with keys, asked by somebody who has none. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ClosableDoor, createDoor } from "../../src/access/door.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { MountedRoute } from "../../src/server/routes.ts";
import { LISTENER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { upgradeStatus } from "../helpers/knock.ts";
import { DEFAULTS } from "../helpers/start-gateway.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { type CarrierEdge, startCarrierEdge } from "../unit/telephony/carrier-edge.ts";

/** What answers everybody, and why that tells nobody anything. */
const ANSWERS_ANYBODY = [
  ["get", "/healthz"],
  ["head", "/healthz"],
  ["get", "/readyz"],
  ["head", "/readyz"],
  // Preflights: browsers send no credentials with them, and they say what methods there are.
  ["options", "/*"],
  // The built page, or that it has not been built.
  ["get", "/"],
  ["head", "/"],
];

/**
 * The vendor's sockets let everybody connect: its clients may show their key in the first message. Until then there is
 * nothing behind them, and they close after 5 s (vendor-door.test.ts). Those that show a wrong key are refused at once.
 */
const WAITS_FOR_A_MESSAGE = /^\/v1\/text-to-(?:speech|dialogue)\//;

/** Of a request to a route of this name. */
function verbOf(method: Exclude<MountedRoute["method"], "ws">): string {
  if (method === "any") return "GET";
  return method === "del" ? "DELETE" : method;
}

function pathOf(pattern: string): string {
  return pattern.replaceAll(/:\w+/g, "x").replace("*", "x");
}

async function statusOf(url: string, method: string, headers: Record<string, string> = {}): Promise<number> {
  const sent = request(url, { method, headers });
  // A refusal closes the connection, at times before all of the request was sent.
  sent.on("error", () => undefined);
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  return answer.statusCode ?? 0;
}

describe("a gateway with keys", () => {
  const keys = new TestKeys();
  let door: ClosableDoor;
  let edge: CarrierEdge;

  beforeAll(async () => {
    door = createDoor({ ...DEFAULTS, keysFile: keys.path, log: watchedLog, clock: systemClock });
    edge = await startCarrierEdge({ door });
  });

  afterAll(async () => {
    await edge[Symbol.asyncDispose]();
    door.close();
    keys[Symbol.dispose]();
  });

  const statusWithout = async ({ method, pattern }: MountedRoute): Promise<number> => {
    const path = pathOf(pattern);
    if (method === "ws") return upgradeStatus(`${edge.wsUrl}${path}`);
    return statusOf(`${edge.url}${path}`, verbOf(method));
  };

  it("answers 401 on every route but health, the page and preflights", async () => {
    expect(edge.edge.routes.length).toBeGreaterThan(20);
    for (const route of edge.edge.routes) {
      if (WAITS_FOR_A_MESSAGE.test(route.pattern)) continue;
      const where = `${route.method} ${route.pattern}`;
      const isOpen = ANSWERS_ANYBODY.some(
        ([method, pattern]) => method === route.method && pattern === route.pattern,
      );
      const status = await statusWithout(route);
      if (isOpen) expect(status, where).not.toBe(401);
      else expect(status, where).toBe(401);
    }
  });

  it("lets nobody with a wrong key or a listener's token upgrade to a socket of the vendor", async () => {
    const sockets = edge.edge.routes.filter(
      ({ method, pattern }) => method === "ws" && WAITS_FOR_A_MESSAGE.test(pattern),
    );
    expect(sockets).toHaveLength(4);
    for (const { pattern } of sockets) {
      const url = `${edge.wsUrl}${pathOf(pattern)}`;
      expect(await upgradeStatus(url), pattern).toBe(101);
      expect(await upgradeStatus(url, { "xi-api-key": "wrong" }), pattern).toBe(401);
      expect(await upgradeStatus(url, { "xi-api-key": tokenFor(LISTENER) }), pattern).toBe(403);
    }
  });

  it("asks for a grant on every route that does something", async () => {
    const token = tokenFor({ ...LISTENER, sessions: ["elsewhere"] });
    for (const { method, pattern, access } of edge.edge.routes) {
      if (typeof access === "string" || method === "ws") continue;
      const status = await statusOf(`${edge.url}${pathOf(pattern)}`, verbOf(method), {
        authorization: `Bearer ${token}`,
      });
      expect(status, `${method} ${pattern}`).toBe(403);
    }
  });
});
