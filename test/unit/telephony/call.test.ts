/** A call from its first message to its end, on a session with a fake clock. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import type { CallRights } from "../../../src/telephony/call.ts";
import { ANY_CALL } from "../../helpers/open-door.ts";
import { countingUlaw, evenAlignment } from "../../helpers/session-rig.ts";
import { createCallRig } from "./call-rig.ts";
import { tinyDialect } from "./tiny-dialect.ts";

const TEXT = "alpha bravo charlie delta echo";
/** Alignment of 50 ms a character. */
const TEXT_MS = TEXT.length * 50;

type Rig = ReturnType<typeof createCallRig>;

function answer(rig: Rig, index = rig.requests.length - 1, ms = TEXT_MS): void {
  const request = rig.requests[index];
  request?.head();
  request?.chunk(countingUlaw(ms), { alignment: evenAlignment(TEXT, 50) });
  request?.handlers.end();
}

describe("a call", () => {
  it("joins the session that its start parameter names, hears every frame once, and a mark each 100 ms", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker&events=words,call");
    const phone = rig.dial();
    phone.start();
    expect(speaker.listener.eventsOf("call")).toMatchObject([
      {
        state: "started",
        call_id: "call-1",
        carrier: "twilio",
        listener_id: "l2",
        from: "+1",
        to: "+2",
        parameters: { session: "s" },
        caller_format: "ulaw_8000",
      },
    ]);
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    answer(rig);
    rig.clock.advance(TEXT_MS + 500);
    expect(phone.line.frames).toBe(TEXT_MS / 20);
    // One behind the first frame, then one each 100 ms, and one at the end.
    expect(phone.line.marks).toEqual(Array.from({ length: 16 }, (_, index) => `m${index + 1}`));
    expect(phone.line.sent.at(-1)).toBe("mark m16");
  });

  it("counts among what was refused where its caller may not come, and not where its carrier sends nonsense", () => {
    const refusal = new GatewayError("forbidden", "Not this session");
    const rights: CallRights = {
      begin: () => {
        throw refusal;
      },
      greeting: (command) => command,
      payer: ANY_CALL.payer,
    };
    const rig = createCallRig({ rights });
    rig.dial().start();
    rig.dial(null).call.refuse(new GatewayError("carrier_protocol", "Nonsense"));
    rig.dial().call.refuse(new GatewayError("inbox_full", "Too much"));
    expect(rig.calls.stats.of("twilio").refused + rig.calls.stats.of("unknown").refused).toBe(3);
    expect([...rig.refusals.byReason]).toEqual([
      ["forbidden", 1],
      ["inbox_full", 1],
    ]);
  });

  it.each([
    ["the query", { parameters: {} }, { session: "asked" }, "asked"],
    ["the start parameter before the query", { parameters: { session: "s" } }, { session: "asked" }, "s"],
    ["the carrier's id of the call", { parameters: {}, callId: "v3:a/b" }, {}, "twilio-v3-a-b"],
    ["the first 64 characters", { parameters: {}, callId: "x".repeat(90) }, {}, `twilio-${"x".repeat(57)}`],
  ])("finds its session by %s", (_, facts, query, expected) => {
    const rig = createCallRig();
    const phone = rig.dial(tinyDialect(), query);
    phone.start(facts);
    expect(phone.line.ended).toBeNull();
    expect(rig.sessions.get(expected).connectionCount).toBe(1);
  });

  it("is refused with a session that can't be one, and leaves nothing behind", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start({ parameters: { session: "not a name" } });
    expect(phone.line.ended).toEqual({ code: 4400, reason: "invalid_field" });
    expect([rig.calls.stats.openCount, rig.sessions.count]).toEqual([0, 0]);
  });

  it("is refused where the session is full, and the others do not notice", () => {
    const rig = createCallRig();
    const others = [rig.dial(), rig.dial(), rig.dial()];
    for (const other of others) other.start();
    const late = rig.dial();
    late.start();
    expect(late.line.ended).toEqual({ code: 4429, reason: "listener_limit" });
    expect(others.map((other) => other.line.ended)).toEqual([null, null, null]);
    expect(rig.calls.stats.openCount).toBe(3);
  });

  it("speech that was queued before waits for the call", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker");
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    rig.clock.advance(3000);
    expect(rig.requests).toHaveLength(0);
    const phone = rig.dial();
    phone.start();
    answer(rig);
    rig.clock.advance(TEXT_MS + 500);
    expect(phone.line.frames).toBe(TEXT_MS / 20);
  });

  it("says its greeting, with the voice that the application chose", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start({ parameters: { session: "s", text: "Hello there.", voice_id: "chosen" } });
    expect(rig.requests).toHaveLength(1);
    expect(JSON.stringify(rig.requests[0]?.request)).toMatch(/Hello there\..*chosen|chosen.*Hello there\./);
  });

  it("a greeting that can't be said does not cost the call", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start({ parameters: { session: "s", text: "x".repeat(5000) } });
    expect([phone.line.ended, rig.requests.length]).toEqual([null, 0]);
  });

  it("without a start within 10 s is refused", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    rig.clock.advance(9999);
    expect(phone.line.ended).toBeNull();
    rig.clock.advance(1);
    expect(phone.line.ended).toEqual({ code: 1008, reason: "carrier_protocol" });
    phone.start();
    expect(rig.sessions.count).toBe(0);
    expect(rig.calls.stats.openCount).toBe(0);
  });

  it("that has begun outlives those 10 s", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start();
    rig.clock.advance(60_000);
    expect([phone.line.ended, rig.sessions.get("s").connectionCount]).toEqual([null, 1]);
  });

  it("ends with a broken message: in the carrier's words, with the code, and out of the session", () => {
    const rig = createCallRig();
    const speaker = rig.join("role=speaker&events=call");
    const phone = rig.dial();
    phone.start();
    phone.say({ on: "broken" });
    expect(phone.line.sent).toEqual(["bye"]);
    expect(phone.line.ended).toEqual({ code: 1008, reason: "carrier_protocol" });
    expect(speaker.listener.eventsOf("call").map((event) => [event.state, event.reason])).toEqual([
      ["started", undefined],
      ["ended", "carrier_protocol"],
    ]);
    expect(rig.sessions.get("s").connectionCount).toBe(1);
    expect(rig.calls.stats.of("twilio")).toMatchObject({ opened: 1, closed: 1, started: 1, refused: 1 });
  });

  it("a second start ends it, whatever the dialect lets through", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start();
    phone.start();
    expect(phone.line.ended).toEqual({ code: 1008, reason: "carrier_protocol" });
    expect(rig.sessions.get("s").connectionCount).toBe(0);
  });

  it("survives what is odd, and counts it", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start();
    for (let index = 0; index < 5; index += 1) phone.say({ on: "odd", what: "a gap" });
    expect([phone.line.ended, rig.calls.stats.of("twilio").odd]).toEqual([null, 5]);
  });

  it("hung up by the carrier, by its socket, or twice: leaves once", () => {
    for (const end of ["stopped", "closed", "both", "two"] as const) {
      const rig = createCallRig();
      const speaker = rig.join("role=speaker&events=call,dtmf");
      const phone = rig.dial();
      phone.start();
      if (end === "two") phone.say({ on: "two" });
      else if (end !== "closed") phone.say({ on: "stopped", reason: "hung up" });
      if (end !== "stopped") phone.call.closed();
      expect(speaker.listener.eventsOf("call").map((event) => event.state)).toEqual(["started", "ended"]);
      // What came behind the stop in the same message is nobody's.
      expect(speaker.listener.eventsOf("dtmf")).toEqual([]);
      expect(rig.calls.stats.openCount).toBe(0);
      expect(rig.sessions.get("s").connectionCount).toBe(1);
      phone.say({ on: "dtmf", digit: "1" });
      expect(speaker.listener.eventsOf("dtmf")).toEqual([]);
    }
  });

  it("hangs up in the carrier's words when the session closes", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start();
    rig.sessions.close(() => new GatewayError("draining", "Gateway is shutting down"));
    expect(phone.line.sent).toEqual(["bye"]);
    expect(phone.line.ended).toEqual({ code: 1001, reason: "draining" });
    expect(rig.calls.stats.openCount).toBe(0);
  });

  it("messages from before the carrier was known are read in order; more than four of none are refused", () => {
    const rig = createCallRig();
    const phone = rig.dial(null);
    for (let index = 0; index < 5; index += 1) phone.say({ on: "odd", what: "nothing" });
    expect(phone.line.ended).toEqual({ code: 1008, reason: "carrier_protocol" });
    expect(rig.calls.stats.of("unknown")).toMatchObject({ opened: 1, closed: 1, refused: 1 });
  });

  it("no more than max-calls are taken", () => {
    const rig = createCallRig({ maxCalls: 1 });
    rig.calls.mustHaveRoom();
    const phone = rig.dial();
    expect(() => rig.calls.mustHaveRoom()).toThrow(expect.objectContaining({ code: "listener_limit" }));
    phone.call.closed();
    rig.calls.mustHaveRoom();
  });

  it("nothing of what the caller is, says or dials is logged", () => {
    const lines: string[] = [];
    const keep = (fields: object, message: string): void => {
      lines.push(JSON.stringify([fields, message]));
    };
    const rig = createCallRig({ log: { debug: keep, info: keep, warn: keep, error: keep } });
    const phone = rig.dial();
    phone.start({
      from: "+15550100",
      to: "+15550199",
      parameters: { session: "s", text: "Secret greeting", customer: "Jane" },
    });
    phone.say({ on: "dtmf", digit: "7" });
    phone.say({ on: "odd", what: "a gap" });
    phone.say({ on: "broken" });
    expect(lines.map((line) => JSON.parse(line)[1])).toEqual([
      "Call began",
      "Carrier's message does not fit",
      "Call refused",
      "Call ended",
    ]);
    expect(lines.join("")).not.toMatch(/1555|Secret|Jane|"7"/);
  });

  it("its numbers are counted by carrier", () => {
    const rig = createCallRig();
    const phone = rig.dial();
    phone.start();
    const text = rig.calls.stats.render();
    expect(text).toContain('voicewire_calls{carrier="twilio"} 1\n');
    expect(text).toContain('voicewire_calls_total{carrier="twilio"} 1\n');
    expect(text).toContain("# TYPE voicewire_calls gauge\n");
  });
});

describe("the rights of who brings a call", () => {
  const asked: unknown[] = [];
  const rights = (over: Partial<CallRights>): CallRights => ({
    begin: () => () => undefined,
    greeting: (command) => command,
    payer: {},
    ...over,
  });
  const forbidden = () => {
    throw new GatewayError("forbidden", "Not allowed");
  };

  it("decide whether it begins: a refused one opens no session", () => {
    const rig = createCallRig({
      rights: rights({
        begin: (call) => {
          asked.push(call);
          return forbidden();
        },
      }),
    });
    const phone = rig.dial();
    phone.start({ parameters: { session: "private" } });
    expect(asked).toEqual([{ carrier: "twilio", callId: "call-1", sessionId: "private" }]);
    expect(phone.line.ended).toEqual({ code: 4403, reason: "forbidden" });
    expect(() => rig.sessions.get("private")).toThrow("private");
  });

  it("decide what it is greeted with; the call goes on without", () => {
    const greeted = createCallRig({
      rights: rights({ greeting: (said) => ({ ...said, voice_id: "theirs" }) }),
    });
    greeted.dial().start({ parameters: { session: "s", text: "Hello.", voice_id: "mine" } });
    expect(greeted.requests[0]?.request).toMatchObject({ voiceId: "theirs" });
    const silent = createCallRig({ rights: rights({ greeting: forbidden }) });
    const phone = silent.dial();
    phone.start({ parameters: { session: "s", text: "Hello." } });
    expect([silent.requests.length, phone.line.ended]).toEqual([0, null]);
  });

  it("end it when they are lost, and are given back when it is over", () => {
    let lose: (error: GatewayError) => void = () => undefined;
    let released = 0;
    const rig = createCallRig({
      rights: rights({
        begin: (_, { revoked }) => {
          lose = revoked;
          return () => {
            released += 1;
          };
        },
      }),
    });
    const phone = rig.dial();
    phone.start();
    lose(new GatewayError("token_revoked", "Withdrawn"));
    expect(phone.line.ended?.reason).toBe("token_revoked");
    const other = rig.dial();
    other.start({ callId: "call-2" });
    expect(released).toBe(1);
    for (const session of rig.sessions) session.calls?.hangUp("call-2");
    expect(released).toBe(2);
  });

  /** A call whose time is over 500 ms after its session has begun to speak. */
  function expiring() {
    let expire: (error: GatewayError) => void = () => undefined;
    const rig = createCallRig({
      rights: rights({
        begin: (_, { expired }) => {
          expire = expired;
          return () => undefined;
        },
      }),
    });
    const speaker = rig.join("role=speaker");
    const phone = rig.dial();
    phone.start();
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    answer(rig);
    rig.clock.advance(500);
    const error = new GatewayError("token_expired", "Over");
    return { rig, speaker, phone, expire: () => expire(error) };
  }

  it("end it when what was accepted has been played, where its time is over", () => {
    const { rig, speaker, phone, expire } = expiring();
    expire();
    speaker.send({ type: "speak", text: "What is said later is not waited for.", voice_id: "v" });
    rig.clock.advance(TEXT_MS - 600);
    expect(phone.line.ended).toBeNull();
    rig.clock.advance(400);
    expect([phone.line.frames, phone.line.ended]).toEqual([TEXT_MS / 20, null]);
    phone.say({ on: "played", name: phone.line.marks.at(-1) });
    rig.clock.advance(50);
    expect(phone.line.ended?.reason).toBe("token_expired");
  });

  it("wait 2 s and no longer for a carrier that does not say what it has played", () => {
    const { rig, phone, expire } = expiring();
    expire();
    rig.clock.advance(TEXT_MS - 500 + 1900);
    expect(phone.line.ended).toBeNull();
    rig.clock.advance(300);
    expect(phone.line.ended?.reason).toBe("token_expired");
  });

  it("end it at once where nothing is said; a call that hangs up first leaves nothing behind", () => {
    const silent = expiring();
    silent.rig.clock.advance(TEXT_MS);
    silent.phone.say({ on: "played", name: silent.phone.line.marks.at(-1) });
    silent.expire();
    expect(silent.phone.line.ended?.reason).toBe("token_expired");
    const { phone, expire, rig } = expiring();
    expire();
    phone.call.closed();
    rig.clock.advance(10_000);
    expect(phone.line.ended).toBeNull();
  });
});
