/** Rules of a socket that need a clock turned by hand, or an upstream that does exactly so much. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { audioOf, charsOf, type Heard } from "../../wire/vendor-rig.ts";
import { MS_PER_CHAR, socketRig } from "./socket-rig.ts";

const finals = (heard: readonly Heard[], id: string) =>
  heard.filter((one) => one.isFinal === true && one.contextId === id).length;

describe("inactivity", () => {
  it("a context's own: each message of it puts it off, one of another does not", () => {
    const rig = socketRig();
    rig.send({ text: " ", context_id: "a" }, { text: " ", context_id: "b" });
    for (let count = 0; count < 3; count += 1) {
      rig.clock.advance(15_000);
      rig.send({ text: "", context_id: "a" });
    }
    expect([finals(rig.heard, "a"), finals(rig.heard, "b")]).toEqual([0, 1]);
    rig.clock.advance(20_000);
    expect(finals(rig.heard, "a")).toBe(1);
    expect(rig.end).toBeNull();
    // Then nobody is left.
    rig.clock.advance(19_000);
    rig.send({ text: "" });
    rig.clock.advance(19_000);
    expect(rig.end).toBeNull();
    rig.clock.advance(1000);
    expect(rig.end?.code).toBe(1008);
    expect(rig.heard.at(-1)).toMatchObject({
      error: "input_timeout_exceeded",
      message: expect.stringContaining("20.0"),
    });
    expect(rig.clock.pending).toBe(0);
  });

  it("a socket that was never spoken to ends too; a longer time can be asked for", () => {
    const rig = socketRig({ query: "inactivity_timeout=180" });
    rig.clock.advance(179_000);
    expect(rig.end).toBeNull();
    rig.clock.advance(1000);
    expect(rig.end?.code).toBe(1008);
  });

  it("a single socket that is still speaking is not cut: it ends when that is over", () => {
    const rig = socketRig({ kind: "single" });
    rig.send({ text: "Hello there. ", flush: true });
    rig.clock.advance(60_000);
    expect(rig.end).toBeNull();
    rig.finishAll();
    expect(charsOf(rig.heard)).toBe("Hello there. ");
    rig.clock.advance(1000);
    expect(rig.heard.at(-1)?.error).toBe("input_timeout_exceeded");
    expect(rig.end?.code).toBe(1008);
  });
});

describe("the end of a token", () => {
  const error = new GatewayError("token_expired", "The token has expired: come back with a new one");

  it("cuts nothing: what was taken is said, what comes after it is not, and the last message says why", () => {
    const rig = socketRig();
    rig.send({ text: "Hello there. ", context_id: "a", flush: true }, { text: "And more", context_id: "a" });
    rig.asked[0]?.say(3);
    rig.socket.expire(error);
    rig.send({ text: "Too late. ", context_id: "a", flush: true });
    expect(rig.end).toBeNull();
    rig.finishAll();
    expect(charsOf(rig.heard)).toBe("Hello there. And more");
    expect(rig.heard.slice(-2)).toMatchObject([{ isFinal: true }, { error: "invalid_api_key" }]);
    expect(rig.end?.code).toBe(1008);
    expect(rig.clock.pending).toBe(0);
  });

  it("closes a socket that says nothing at once", () => {
    const rig = socketRig();
    rig.socket.expire(error);
    expect(rig.end?.code).toBe(1008);
  });
});

describe("the timing of a generation", () => {
  it("waits for all of it, at most as long as the hold, from the first audio on", () => {
    const rig = socketRig();
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    rig.clock.advance(5000);
    rig.asked[0]?.say(4);
    rig.clock.advance(99);
    expect(rig.heard).toEqual([]);
    rig.clock.advance(1);
    expect(charsOf(rig.heard)).toBe("Hell");
    rig.asked[0]?.say(4);
    rig.asked[0]?.finish();
    expect(rig.heard.map((one) => one.alignment?.charStartTimesMs?.[0])).toEqual([0, 0, 0]);
    expect(charsOf(rig.heard)).toBe("Hello there.");
    expect(rig.clock.pending).toBe(1);
  });

  it("waits from when its turn comes, where its audio came before", () => {
    const rig = socketRig({ query: "auto_mode=true" });
    rig.send({ text: "One. ", context_id: "a" }, { text: "Two. ", context_id: "a" });
    rig.asked[0]?.say(1, rig.asked[0].alignment(0, 5));
    rig.asked[1]?.say(1);
    rig.clock.advance(5000);
    rig.asked[0]?.say(4, null);
    rig.asked[0]?.end();
    rig.clock.advance(99);
    expect(charsOf(rig.heard)).toBe("One. ");
    rig.asked[1]?.finish();
    expect(rig.heard.map((one) => one.alignment?.chars.join(""))).toEqual([
      "One. ",
      undefined,
      "Two. ",
      undefined,
    ]);
  });

  it("goes with the first message as soon as every character is timed, before the audio has ended", () => {
    const rig = socketRig();
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    const [asked] = rig.asked;
    asked?.say(3, asked.alignment(0, 12));
    expect(rig.heard).toHaveLength(1);
    expect(rig.heard[0]?.alignment?.charStartTimesMs?.at(-1)).toBe(11 * MS_PER_CHAR);
    asked?.say(9, null);
    expect(rig.heard[1]?.alignment).toBeNull();
  });

  it("is whole in the first message where the rest of it came without audio", () => {
    const rig = socketRig();
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    const [asked] = rig.asked;
    asked?.say(3, asked.alignment(0, 3));
    asked?.say(0, asked.alignment(3, 12));
    expect(rig.heard.map((one) => one.alignment?.chars.join(""))).toEqual(["Hello there."]);
  });

  it("counts as sent where its own audio was too short to send: the next piece is not held", () => {
    const rig = socketRig({ limits: { timingHoldMs: 1_000_000 } });
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    const [asked] = rig.asked;
    const timing = asked?.alignment(0, 12) ?? null;
    const untimed = { alignment: null, normalizedAlignment: null, voiceSegments: [] };
    // Half a sample.
    const half = new Uint8Array(1);
    asked?.handlers.chunk({ ...untimed, audio: half, alignment: timing });
    expect(rig.heard).toEqual([]);
    asked?.handlers.chunk({ ...untimed, audio: new Uint8Array(319) });
    expect(rig.heard.map((one) => one.alignment?.chars.join(""))).toEqual(["Hello there."]);
  });

  it("with sync_alignment, timing that came ahead waits for its audio, and what is left at the end is sent", () => {
    const rig = socketRig({ query: "sync_alignment=true" });
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    const [asked] = rig.asked;
    asked?.say(3, asked.alignment(0, 12));
    asked?.say(3, null);
    asked?.end();
    expect(rig.heard.map((one) => one.alignment?.chars.join(""))).toEqual(["Hel", "lo ", "there."]);
    expect(rig.heard.map((one) => one.alignment?.charStartTimesMs?.[0])).toEqual([0, 0, 0]);
    expect(rig.heard[2]?.audio).toBeNull();
  });

  it("audio is not held without bound: then it goes with the timing that there is", () => {
    const rig = socketRig({ limits: { timingHoldMs: 1_000_000 } });
    rig.send({ text: "x".repeat(3000), context_id: "a", flush: true });
    for (let count = 0; count < 10; count += 1) rig.asked[0]?.say(100);
    expect(rig.heard.length).toBeGreaterThan(0);
    expect(charsOf(rig.heard).length).toBeLessThan(3000);
  });
});

describe("a client that does not read", () => {
  it("its requests are held at their bound and read on; other contexts get their turn", () => {
    const rig = socketRig({ query: "sync_alignment=true" });
    for (const id of ["a", "b"]) rig.send({ text: "x".repeat(3900), context_id: id, flush: true });
    rig.buffered = 2000;
    for (let count = 0; count < 10; count += 1) for (const one of rig.asked) one.say(100);
    expect(rig.heard).toEqual([]);
    expect(rig.asked.map((one) => one.isPaused)).toEqual([true, true]);
    // Room for one message at a time.
    const turns: (string | undefined)[] = [];
    for (let count = 0; count < 20; count += 1) {
      rig.buffered = 0;
      const before = rig.heard.length;
      const push = rig.heard.push.bind(rig.heard);
      rig.heard.push = (...messages) => {
        rig.buffered = 2000;
        return push(...messages);
      };
      rig.socket.drained();
      rig.heard.push = push;
      turns.push(rig.heard[before]?.contextId);
    }
    expect(turns.filter((id) => id === "a")).toHaveLength(10);
    expect(turns.slice(0, 4).sort()).toEqual(["a", "a", "b", "b"]);
    expect(rig.asked.map((one) => one.isPaused)).toEqual([false, false]);
  });
});

describe("requests", () => {
  it("two requests of a context are open at once, and none before the first sounds", () => {
    const rig = socketRig({ query: "auto_mode=true&sync_alignment=true" });
    for (const text of ["One. ", "Two. ", "Three. "]) rig.send({ text, context_id: "a" });
    expect(rig.asked.map((one) => one.text)).toEqual(["One. "]);
    rig.asked[0]?.say(1);
    expect(rig.asked.map((one) => one.text)).toEqual(["One. ", "Two. "]);
    rig.asked[1]?.finish();
    expect(rig.asked).toHaveLength(2);
    expect(charsOf(rig.heard)).toBe("O");
    rig.asked[0]?.finish();
    expect(charsOf(rig.heard)).toBe("One. Two. ");
    expect(rig.asked).toHaveLength(3);
  });

  it("a socket that closes ends every one of them, and leaves no timer", () => {
    const rig = socketRig({ query: "auto_mode=true&sync_alignment=true" });
    for (const id of ["a", "b", "c"])
      rig.send({ text: "One. ", context_id: id }, { text: "Two. ", context_id: id });
    for (const one of [...rig.asked]) one.say(1);
    expect(rig.asked).toHaveLength(6);
    rig.socket.closed();
    rig.socket.closed();
    expect(rig.asked.every((one) => one.isAborted)).toBe(true);
    expect(rig.clock.pending).toBe(0);
    rig.send({ text: "More. ", context_id: "a" });
    rig.socket.drained();
    expect(rig.asked).toHaveLength(6);
  });

  it("one that fails for good closes the socket once, with the context that it was for", () => {
    const rig = socketRig({ query: "auto_mode=true" });
    rig.send({ text: "One. ", context_id: "a" }, { text: "Two. ", context_id: "b" });
    rig.asked[1]?.fail(new GatewayError("upstream_invalid", "Refused"));
    expect(rig.heard).toEqual([
      { message: "Refused", error: "invalid_input_message", code: 1008, contextId: "b", context_id: "b" },
    ]);
    expect(rig.end).toEqual({ code: 1008, reason: "Refused" });
    expect(rig.asked[0]?.isAborted).toBe(true);
    expect(rig.clock.pending).toBe(0);
  });
});

describe("what a socket holds", () => {
  it("nothing more is asked for when it closes: places that come free are not taken", () => {
    const rig = socketRig({ limits: { maxRequests: 1 } });
    rig.send(
      { text: "Hello. ", context_id: "a", flush: true },
      { text: "You. ", context_id: "b", flush: true },
    );
    expect(rig.asked).toHaveLength(1);
    rig.socket.closed();
    expect(rig.asked.map(({ isAborted }) => isAborted)).toEqual([true]);
  });

  it("flushes are bounded, though they have no text", () => {
    const rig = socketRig({ kind: "dialogue" });
    const first = { voices: ["v"], inputs: [{ text: "Hello there.", voice_id: "v" }] };
    rig.send({ ...first, context_id: "a", flush: true });
    for (let count = 0; count < 4094; count += 1) rig.send({ context_id: "a", flush: true });
    expect(rig.end).toBeNull();
    rig.send({ context_id: "a", flush: true });
    expect(rig.end?.code).toBe(1008);
    expect(rig.heard.at(-1)).toMatchObject({
      error: "invalid_input_message",
      message: expect.stringContaining("4096"),
    });
    expect(rig.asked.every((one) => one.isAborted)).toBe(true);
  });
});

describe("messages for a context that is closing", () => {
  it("are bounded", () => {
    const rig = socketRig({ query: "auto_mode=true" });
    rig.send({ text: "One. ", context_id: "a" }, { context_id: "a", close_context: true });
    for (let count = 0; count < 64; count += 1) rig.send({ text: "word ", context_id: "a" });
    expect(rig.end).toBeNull();
    rig.send({ text: "word ", context_id: "a" });
    expect(rig.heard.at(-1)?.error).toBe("invalid_input_message");
  });

  it("are nothing where they only keep alive or close again", () => {
    const rig = socketRig({ query: "auto_mode=true" });
    rig.send({ text: "One. ", context_id: "a" }, { context_id: "a", close_context: true });
    rig.send({ context_id: "a", close_context: true }, { text: "", context_id: "a" });
    rig.finishAll();
    expect(finals(rig.heard, "a")).toBe(1);
    expect(rig.heard.at(-1)?.isFinal).toBe(true);
  });
});

describe("anything that a client may say", () => {
  const id = fc.constantFrom("a", "b", undefined);
  const message = fc.record(
    {
      text: fc.constantFrom("", " ", "Hello there. ", "wo", "rd ", "... ", null),
      context_id: id,
      flush: fc.boolean(),
      close_context: fc.boolean(),
      try_trigger_generation: fc.boolean(),
    },
    { requiredKeys: ["text"] },
  );
  const step = fc.oneof(
    { weight: 5, arbitrary: message.map((value) => ({ kind: "send" as const, value })) },
    { weight: 2, arbitrary: fc.nat(5).map((value) => ({ kind: "say" as const, value })) },
    { weight: 1, arbitrary: fc.constantFrom(0, 5000).map((value) => ({ kind: "buffer" as const, value })) },
    { weight: 1, arbitrary: fc.nat(500).map((value) => ({ kind: "wait" as const, value })) },
  );

  it("every context has its audio whole, in order, and one isFinal behind it; nothing is left open", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 40 }),
        fc.constantFrom("", "auto_mode=true", "sync_alignment=true"),
        (steps, query) => {
          const rig = socketRig({ query });
          for (const { kind, value } of steps) {
            if (rig.end !== null) break;
            if (kind === "send") rig.send(value);
            else if (kind === "wait") rig.clock.advance(value);
            else if (kind === "buffer") {
              rig.buffered = value;
              if (value === 0) rig.socket.drained();
            } else {
              const open = rig.asked.filter((one) => !one.isOver);
              const one = open[value % Math.max(1, open.length)];
              if (value === 0) one?.finish();
              else one?.say(value * 3);
            }
          }
          rig.buffered = 0;
          if (rig.end === null) {
            rig.socket.drained();
            rig.send({ close_socket: true });
            rig.finishAll();
            expect(rig.end).toEqual({ code: 1000, reason: "" });
            expect(charsOf(rig.heard).length).toBe(rig.asked.reduce((sum, one) => sum + one.text.length, 0));
            expect(audioOf(rig.heard).length).toBe(charsOf(rig.heard).length * MS_PER_CHAR * 32);
          } else expect(rig.heard.at(-1)?.error).toBe("invalid_input_message");
          expect(rig.asked.every((one) => one.isOver)).toBe(true);
          expect(rig.clock.pending).toBe(0);
          for (const context of ["a", "b", undefined]) {
            const own = rig.heard.filter((one) => one.contextId === context && one.error === undefined);
            // What it says last is that it is over.
            if (rig.end?.code === 1000 && own.length > 0) expect(own.at(-1)?.isFinal).toBe(true);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
