/** A call between its carrier here and its leg at another node: what is no message, and what its codec does not take. */
import { describe, expect, it } from "vitest";
import { ANYBODY } from "../../../src/access/caller.ts";
import type { LiveCluster } from "../../../src/cluster/cluster.ts";
import { movedAway } from "../../../src/cluster/come-back.ts";
import type { ArrivedSocket, RelayedListener } from "../../../src/cluster/relay/relay.ts";
import { GatewayError } from "../../../src/errors.ts";
import type { Logger } from "../../../src/kit/log.ts";
import { farCalls, takeInCalls } from "../../../src/server/relayed/far-calls.ts";
import type { Calls } from "../../../src/telephony/calls.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { createCallRig, MemoryLine } from "../telephony/call-rig.ts";
import { TINY_START } from "../telephony/tiny-dialect.ts";

const TERMS = { sessionId: "s", carrier: "twilio", call: TINY_START, markMs: 100, leadMs: 200 } as const;

function legAt() {
  let socket: ArrivedSocket | null = null;
  const seen: unknown[] = [];
  const cluster: LiveCluster = {
    known: () => undefined,
    isCutOff: false,
    place: () => Promise.reject(new Error("It is not asked for")),
    serve: () => Promise.resolve(),
    connect: (_owner, _facts, arrived) => {
      socket = arrived;
      return {
        message: () => undefined,
        isFull: false,
        whenRoom: () => undefined,
        drained: () => undefined,
        closed: (code) => seen.push(["closed", code]),
      };
    },
  };
  farCalls(cluster).legAt("a", {
    terms: TERMS,
    codec: {
      audio: () => [],
      mark: () => {
        throw new RangeError("A mark of this name was sent");
      },
      clear: () => ["clear"],
      flush: () => [],
    },
    line: new MemoryLine(),
    greeting: () => null,
    onEnd: (_code, reason) => seen.push(["ended", reason]),
    onJoined: () => seen.push("joined"),
  });
  const say = (text: string): unknown => socket?.send([{ isBinary: false, bytes: Buffer.from(text) }]);
  return { seen, say };
}

describe("a call whose leg is at another node", () => {
  it("passes over what is no message", () => {
    const { seen, say } = legAt();
    for (const text of ["no JSON", "7", "null", '{"kind":"later"}', '{"kind":"joined"}']) {
      expect(say(text)).toBe("sent");
    }
    expect(seen).toEqual(["joined"]);
  });

  it("ends where its codec can't take a message, and only it", () => {
    const { seen, say } = legAt();
    expect(say('{"kind":"mark","name":"m1"}')).toBe("sent");
    say('{"kind":"joined"}');
    expect(seen).toEqual([
      ["closed", 4500],
      ["ended", "internal"],
    ]);
  });
});

describe("a call of another node", () => {
  it("that came before its node heard of the session's next owner is no warning; another refusal is", () => {
    const warnings: string[] = [];
    const log: Logger = { ...watchedLog, warn: (_fields, message) => warnings.push(message) };
    const refusing = (error: GatewayError): Calls => {
      const { calls } = createCallRig();
      calls.legHere = () => {
        throw error;
      };
      return calls;
    };
    const ends: string[] = [];
    const listener = {
      end: (_code: number, reason: string) => ends.push(reason),
    } as unknown as RelayedListener;
    const facts = { kind: "call", sessionId: "s", address: "", caller: ANYBODY } as const;
    for (const error of [movedAway(), new GatewayError("session_limit", "Gateway is full")]) {
      takeInCalls(refusing(error), log)({ ...facts, more: { terms: TERMS, greeting: null } }, listener);
    }
    expect(ends).toEqual(["bus_lost", "session_limit"]);
    expect(warnings).toHaveLength(1);
  });

  it("is refused where what it says of itself can't be read, or its session does not take it", () => {
    const { calls } = createCallRig();
    const ends: string[] = [];
    const listener = {
      send: () => "sent",
      bufferedBytes: () => 0,
      end: (_code: number, reason: string) => ends.push(reason),
    } as unknown as RelayedListener;
    const take = (more: Record<string, unknown>, sessionId = "s") =>
      takeInCalls(calls, watchedLog)(
        { kind: "call", sessionId, address: "", caller: ANYBODY, more },
        listener,
      );
    expect([take({}), take({ terms: TERMS }), take({ terms: 7, greeting: null })]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(take({ terms: { ...TERMS, sessionId: "no id" }, greeting: null })).toBeUndefined();
    expect(ends).toEqual(["invalid_field"]);
    expect(take({ terms: TERMS, greeting: null })).toBeDefined();
  });
});
