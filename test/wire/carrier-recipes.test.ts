/** What docs/telephony.md says that each carrier is given, sent as the carrier sends it: read from the page itself. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createDoor } from "../../src/access/door.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { CarrierName } from "../../src/protocol/carrier/carrier.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { upgradeStatus } from "../helpers/knock.ts";
import { DEFAULTS } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { FakeCarrier } from "../kit/carriers/fake-carrier.ts";
import { startCarrierEdge } from "../unit/telephony/carrier-edge.ts";

const PAGE = readFileSync(new URL("../../docs/telephony.md", import.meta.url), "utf8");
const CALLER = { sessions: ["call-17"], allow: ["call"] };

/** Path and headers of a carrier's request. */
interface Sent {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The table's cell of a carrier, with `key` in the place of KEY. */
function cellOf(name: string, key: string): string {
  const cell = new RegExp(`^\\| ${name} \\| (.+) \\|$`, "m").exec(PAGE)?.[1];
  if (cell?.includes("KEY") !== true) throw new Error(`docs/telephony.md says nothing of ${name}`);
  return cell.replaceAll("KEY", key);
}

/** The first group; fails where the page does not say it so. */
function found(text: string, pattern: RegExp): string {
  const group = pattern.exec(text)?.[1];
  if (group === undefined) throw new Error(`${pattern} is not in: ${text}`);
  return group;
}

function basic(user: string, password: string) {
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
}

/** How each carrier sends what it was given. */
const RECIPES: readonly [CarrierName, string, (cell: string) => Sent][] = [
  [
    "signalwire",
    "SignalWire",
    (cell) => ({
      path: "/carrier/signalwire",
      headers: { authorization: `Bearer ${found(cell, /authBearerToken="([^"]+)"/)}` },
    }),
  ],
  [
    "telnyx",
    "Telnyx",
    (cell) => ({
      path: "/carrier/telnyx",
      headers: { "x-telnyx-streaming-auth-token": found(cell, /`([^`]+)`/) },
    }),
  ],
  ["plivo", "Plivo", (cell) => ({ path: found(cell, /`wss:\/\/HOST(\/[^`]+)`/), headers: {} })],
  [
    "vonage",
    "Vonage",
    (cell) => {
      const { authorization } = JSON.parse(`{${found(cell, /`([^`]+)`/)}}`) as {
        authorization: { type: string; value: string };
      };
      // `custom`: the value is sent verbatim (@vonage/voice 1.24.1, WebsocketAuthorization).
      expect(authorization.type).toBe("custom");
      return { path: "/carrier/vonage", headers: { authorization: authorization.value } };
    },
  ],
  [
    "exotel",
    "Exotel",
    (cell) => {
      const { username, password, pathname } = new URL(found(cell, /`([^`]+)`/));
      return { path: pathname, headers: basic(username, password) };
    },
  ],
  [
    "jambonz",
    "jambonz",
    (cell) => {
      const { wsAuth } = JSON.parse(`{${found(cell, /`([^`]+)`/)}}`) as {
        wsAuth: { username: string; password: string };
      };
      return { path: "/carrier/jambonz", headers: basic(wsAuth.username, wsAuth.password) };
    },
  ],
  [
    "asterisk",
    "Asterisk",
    (cell) => ({
      path: `${found(PAGE, /`uri=wss:\/\/HOST([^`]+)`/)}?${found(PAGE, /v\((session=[^)]+)\)/)}`,
      headers: basic(found(cell, /username = ([^`]+)`/), found(cell, /password = ([^`]+)`/)),
    }),
  ],
];

describe.each(RECIPES)("what docs/telephony.md gives %s", (carrier, name, sentFor) => {
  it("opens with its carrier-token, and with no other", async () => {
    await using edge = await startCarrierEdge({ carrierToken: "s3cret" });
    const right = sentFor(cellOf(name, "s3cret"));
    expect(await upgradeStatus(`${edge.wsUrl}${right.path}`, right.headers)).toBe(101);
    const wrong = sentFor(cellOf(name, "another"));
    expect(await upgradeStatus(`${edge.wsUrl}${wrong.path}`, wrong.headers)).toBe(401);
  });

  it("brings a call into its session with a token of the gateway", async () => {
    using keys = new TestKeys();
    const door = createDoor({ ...DEFAULTS, keysFile: keys.path, log: watchedLog, clock: systemClock });
    await using edge = await startCarrierEdge({ door });
    const { path, headers } = sentFor(cellOf(name, tokenFor({ ...CALLER, once: true })));
    const url = `${edge.wsUrl}${path}`;
    const call = { parameters: { session: "call-17" } };
    const caller = await FakeCarrier.dial({ carrier, url, headers, call });
    await until("the call has begun", () => edge.calls.stats.of(carrier).started === 1);
    expect(edge.sessions.get("call-17").connectionCount).toBe(1);
    await caller.hangUp();
    expect(caller.violations).toEqual([]);
    door.close();
  });
});
