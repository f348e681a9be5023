/** How long a vendor socket waits for its client's key, and how it ends when its token does. */
import { afterAll, describe, expect, it } from "vitest";
import type { Caller } from "../../../src/access/caller.ts";
import { createDoor } from "../../../src/access/door.ts";
import { Leases } from "../../../src/access/lease.ts";
import type { GatewayError } from "../../../src/errors.ts";
import { SPEECH_DIALECT } from "../../../src/protocol/elevenlabs/server-messages.ts";
import { VendorGate } from "../../../src/server/sockets/vendor-gate.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { TestKeys, tokenFor } from "../../helpers/key-file.ts";
import { DEFAULTS } from "../../helpers/start-gateway.ts";
import { watchedLog } from "../../helpers/watched-log.ts";

const keys = new TestKeys();
const clock = new FakeClock();
const checks = createDoor({ ...DEFAULTS, keysFile: keys.path, log: watchedLog, clock });
const leases = new Leases({ ...checks, clock, wallMs: () => clock.nowMs() });
const door = { ...checks, leases };

afterAll(() => {
  checks.close();
  keys[Symbol.dispose]();
});

function callerOf(grants: object): Caller {
  const credential = tokenFor({ sessions: ["*"], allow: ["speak"], ...grants });
  return checks.access.identify({ credential, place: "header", origin: "" });
}

/** A gate, and what happens behind it and in front of it, in order. */
function gateFor(caller: Caller | null) {
  const log: string[] = [];
  const socket = {
    receive: (json: string) => log.push(`receive ${json}`),
    refuse: (thrown: unknown) => log.push(`refuse ${(thrown as GatewayError).code}`),
    expire: (error: GatewayError) => log.push(`expire ${error.code}`),
    drained: () => log.push("drained"),
    closed: () => log.push("closed"),
  };
  const port = {
    send: (json: string) => log.push(`send ${(JSON.parse(json) as { error: string }).error}`),
    bufferedBytes: () => 0,
    end: (code: number) => log.push(`end ${code}`),
  };
  const gate = new VendorGate({
    door,
    clock,
    port,
    hold: () => (ready) => ready(),
    dialect: SPEECH_DIALECT,
    source: { surface: "/v1/x", address: "192.0.2.1", origin: "" },
    caller,
    rightsOf: () => ({
      open: () => {
        log.push("open");
        return socket;
      },
      mustStay: () => undefined,
    }),
    onKnown: () => log.push("known"),
  });
  return { gate, log };
}

describe("a vendor socket without a key", () => {
  it("is nothing but a wait of 5 s", () => {
    const { gate, log } = gateFor(null);
    clock.advance(4999);
    expect(log).toEqual([]);
    clock.advance(1);
    expect(log).toEqual(["send authentication_required", "end 1008"]);
    gate.receive(JSON.stringify({ xi_api_key: keys.key }));
    gate.closed();
    expect(log.slice(2)).toEqual(["known"]);
    expect(clock.pending).toBe(0);
  });

  it("is opened by its first message, which is also the first that it hears, and waits no more", () => {
    const { gate, log } = gateFor(null);
    const first = JSON.stringify({ text: "a", xi_api_key: keys.key });
    gate.receive(first);
    clock.advance(60_000);
    expect(log).toEqual(["open", "known", `receive ${first}`]);
    gate.closed();
    expect(clock.pending).toBe(0);
  });

  it("hears no second message", () => {
    const { gate, log } = gateFor(null);
    gate.receive("{}");
    gate.receive(JSON.stringify({ xi_api_key: keys.key }));
    expect(log).toEqual(["send authentication_required", "end 1008"]);
    gate.closed();
  });
});

describe("the end of a vendor socket's token", () => {
  it("lets it say what it has, for ten minutes at most", () => {
    const { gate, log } = gateFor(callerOf({ seconds: 30 }));
    clock.advance(30_000);
    expect(log).toEqual(["open", "known", "expire token_expired"]);
    clock.advance(599_000);
    expect(log).toHaveLength(3);
    clock.advance(1000);
    expect(log.at(-1)).toBe("refuse token_expired");
    gate.closed();
    expect(clock.pending).toBe(0);
  });
});
