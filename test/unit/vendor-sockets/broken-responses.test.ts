/** What a socket makes of responses that fail or break off: what is asked again, what is not asked any more. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { audioOf, charsOf } from "../../wire/vendor-rig.ts";
import { MS_PER_CHAR, type SocketRig, socketRig } from "./socket-rig.ts";

const refused = () => new GatewayError("upstream_invalid", "Refused");
const brokenOff = () => new GatewayError("upstream_failed", "Broken off");
const BYTES_PER_CHAR = MS_PER_CHAR * 32;

const texts = (rig: SocketRig) => rig.asked.map(({ text }) => text);
const open = (rig: SocketRig) => rig.asked.filter((one) => !one.isOver);

describe("a request that fails for good", () => {
  it("before it sounds is the last of its context", () => {
    const rig = socketRig({ query: "auto_mode=true" });
    rig.send({ text: "One. ", context_id: "a" }, { text: "Two. ", context_id: "a" });
    rig.asked[0]?.fail(refused());
    expect(rig.end?.code).toBe(1008);
    expect(texts(rig)).toEqual(["One. "]);
  });

  it("after the one before it has ended, while that one's audio still waits, too", () => {
    const rig = socketRig({ query: "auto_mode=true" });
    for (const text of ["One. ", "Two. ", "Three. "]) rig.send({ text, context_id: "a" });
    rig.buffered = 5000;
    rig.asked[0]?.finish();
    rig.asked[1]?.fail(refused());
    rig.buffered = 0;
    rig.socket.drained();
    expect(charsOf(rig.heard)).toBe("One. ");
    expect(rig.end?.code).toBe(1008);
    expect(texts(rig)).toEqual(["One. ", "Two. "]);
  });

  it("gives its place to no other context: the socket is closed", () => {
    const rig = socketRig({ query: "auto_mode=true", limits: { maxRequests: 1 } });
    rig.send({ text: "One. ", context_id: "a" }, { text: "Two. ", context_id: "b" });
    rig.asked[0]?.fail(refused());
    expect(rig.end?.code).toBe(1008);
    expect(texts(rig)).toEqual(["One. "]);
    expect(rig.clock.pending).toBe(0);
  });
});

describe("a response that breaks off while the timing of all is waited for", () => {
  it("is asked for again: nothing of it was sent", () => {
    const rig = socketRig();
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    rig.asked[0]?.say(4);
    rig.asked[0]?.fail(brokenOff());
    rig.clock.advance(100);
    expect(texts(rig)).toEqual(["Hello there.", "Hello there."]);
    expect(rig.heard).toEqual([]);
    rig.asked[1]?.finish();
    expect(charsOf(rig.heard)).toBe("Hello there.");
    expect(audioOf(rig.heard)).toHaveLength(12 * BYTES_PER_CHAR);
    expect(rig.heard[0]?.alignment?.charStartTimesMs?.at(-1)).toBe(11 * MS_PER_CHAR);
    expect(rig.end).toBeNull();
  });

  it("begins its wait again with the next try's first audio", () => {
    const rig = socketRig({ limits: { timingHoldMs: 1000 } });
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    rig.asked[0]?.say(4);
    rig.clock.advance(950);
    rig.asked[0]?.fail(brokenOff());
    rig.clock.advance(100);
    rig.asked[1]?.say(4);
    rig.clock.advance(999);
    expect(rig.heard).toEqual([]);
    rig.clock.advance(1);
    expect(charsOf(rig.heard)).toBe("Hell");
  });

  it("with all that was held is sent where no try does better", () => {
    const rig = socketRig();
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    for (let tries = 1; tries <= 5; tries += 1) {
      rig.asked.at(-1)?.say(4);
      rig.asked.at(-1)?.fail(brokenOff());
      rig.clock.advance(1500);
    }
    expect(rig.asked).toHaveLength(5);
    expect(charsOf(rig.heard)).toBe("Hell");
    expect(rig.end?.code).toBe(1008);
    expect(rig.clock.pending).toBe(0);
  });

  it("is not asked for again once something of it was sent: nothing is heard twice", () => {
    const rig = socketRig();
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    rig.asked[0]?.say(4);
    rig.clock.advance(100);
    rig.asked[0]?.say(4);
    rig.asked[0]?.fail(brokenOff());
    rig.clock.advance(5000);
    expect(rig.asked).toHaveLength(1);
    expect(charsOf(rig.heard)).toBe("Hello th");
    expect(audioOf(rig.heard)).toHaveLength(8 * BYTES_PER_CHAR);
    expect(rig.end?.code).toBe(1008);
  });
});

describe("timing that comes before any audio", () => {
  it.each(["", "sync_alignment=true"])("does not keep a request from being asked again (%s)", (query) => {
    const rig = socketRig({ query });
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    rig.asked[0]?.say(0, rig.asked[0].alignment(0, 12));
    rig.asked[0]?.fail(brokenOff());
    rig.clock.advance(100);
    rig.asked[1]?.finish();
    expect(charsOf(rig.heard)).toBe("Hello there.");
    expect(rig.end).toBeNull();
  });

  it("is not taken for the first audio of a request that is late", () => {
    const rig = socketRig({ limits: { firstAudioMs: 1000 } });
    rig.send({ text: "Hello there.", context_id: "a", flush: true });
    rig.asked[0]?.handlers.requestSent?.();
    rig.asked[0]?.say(0, rig.asked[0].alignment(0, 5));
    rig.clock.advance(1100);
    expect(rig.asked).toHaveLength(2);
    rig.asked[1]?.finish();
    expect(charsOf(rig.heard)).toBe("Hello there.");
  });
});

describe("whatever breaks off", () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.nat(8).map((value) => ({ kind: "say" as const, value })) },
    { weight: 1, arbitrary: fc.nat(3).map((value) => ({ kind: "fail" as const, value })) },
    { weight: 1, arbitrary: fc.nat(3).map((value) => ({ kind: "finish" as const, value })) },
    { weight: 2, arbitrary: fc.nat(200).map((value) => ({ kind: "wait" as const, value })) },
    { weight: 1, arbitrary: fc.constantFrom(0, 5000).map((value) => ({ kind: "buffer" as const, value })) },
  );
  const said = "One two. Three four. Five six. ";

  it("what is heard is the beginning of what was said, once, each character with its audio", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.constantFrom("auto_mode=true", "auto_mode=true&sync_alignment=true"),
        (steps, query) => {
          const rig = socketRig({ query });
          for (const text of said.split(/(?<=\. )/)) rig.send({ text, context_id: "a" });
          for (const { kind, value } of steps) {
            const asked = open(rig)[value % Math.max(1, open(rig).length)];
            if (kind === "wait") rig.clock.advance(value);
            else if (kind === "buffer") {
              rig.buffered = value;
              rig.socket.drained();
            } else if (kind === "say") asked?.say(value);
            else if (kind === "fail") asked?.fail(brokenOff());
            else asked?.finish();
          }
          rig.buffered = 0;
          rig.socket.drained();
          for (let rounds = 0; rounds < 10; rounds += 1) {
            rig.finishAll();
            rig.clock.advance(1500);
          }
          const heard = charsOf(rig.heard);
          expect(said.startsWith(heard)).toBe(true);
          expect(audioOf(rig.heard)).toHaveLength(heard.length * BYTES_PER_CHAR);
          if (rig.end === null) expect(heard).toBe(said);
          else expect(rig.heard.at(-1)?.error).toBeDefined();
        },
      ),
      { numRuns: 300 },
    );
  });
});
