/** Every dialect against its carrier's fake: what is sent is heard, and what is said to be played has been. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WIRINGS, WiredCall } from "./wired-call.ts";

const PATTERN = Buffer.from(Array.from({ length: 251 * 16 }, (_, i) => i % 251));
const untouched = Buffer.from(PATTERN);

/** Frames that differ from one another and hold no sample of -1, which jambonz can't be sent. */
function numberedFrame(n: number, bytes: number): Buffer {
  const from = (31 * n) % 251;
  return PATTERN.subarray(from, from + bytes);
}

/** Of what was played so far. */
function heardBytes(call: WiredCall): number {
  return call.player.playedSamples * (call.call.format.startsWith("pcm") ? 2 : 1);
}

type Step =
  | { readonly kind: "audio"; readonly frames: number }
  | { readonly kind: "mark" | "clear" | "flush" }
  | { readonly kind: "wait"; readonly ms: number };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("audio" as const), frames: fc.integer({ min: 0, max: 12 }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom("mark" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("clear" as const, "flush" as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 300 }) }),
  },
);

describe.each(WIRINGS)("%s", (_, carrier, options) => {
  it("plays every byte once and in order, however frames are bundled", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 25 }), { minLength: 1, maxLength: 12 }), (bundles) => {
        const call = new WiredCall(carrier, options);
        let sent = 0;
        const all: Buffer[] = [];
        for (const count of bundles) {
          const frames = Array.from({ length: count }, (_, i) => numberedFrame(sent + i, call.frameBytes));
          sent += count;
          call.audio(frames);
          all.push(...frames);
        }
        call.flush();
        call.clock.advance(60_000);
        const heard = Buffer.from(call.player.heard());
        const expected = Buffer.concat(all);
        expect(heard.subarray(0, expected.length).equals(expected)).toBe(true);
        // The frames themselves, which other listeners share, are as they were.
        expect(PATTERN.equals(untouched)).toBe(true);
        // Exotel and jambonz: silence that completes the last piece, and nothing else.
        const padding = heard.subarray(expected.length);
        expect(padding.every((byte) => byte === 0 || byte === 0xff)).toBe(true);
        expect(call.violations).toEqual([]);
        expect(call.odd).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  it("says played for a mark only when all before it has been heard, and never after a clear", () => {
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 40 }), (steps) => {
        const call = new WiredCall(carrier, options);
        /** Where in all bytes that were handed over each mark stands; since the last clear. */
        let waiting = new Map<string, number>();
        let handedOver = 0;
        let lastClear = 0;
        let heardBefore = 0;
        let marks = 0;
        call.onEvent = (event) => {
          if (event.kind !== "played") return;
          const place = waiting.get(event.name);
          if (place === undefined) throw new Error("A mark came that does not wait");
          waiting.delete(event.name);
          expect(heardBytes(call) - heardBefore).toBeGreaterThanOrEqual(place - lastClear);
        };
        for (const step of steps) {
          if (step.kind === "audio") {
            call.audio(Array.from({ length: step.frames }, (_, i) => numberedFrame(i, call.frameBytes)));
            handedOver += step.frames * call.frameBytes;
          } else if (step.kind === "mark" && waiting.size < 30) {
            marks += 1;
            waiting.set(`m${marks}`, handedOver);
            call.mark(`m${marks}`);
          } else if (step.kind === "clear") {
            waiting = new Map();
            lastClear = handedOver;
            call.clear();
            heardBefore = heardBytes(call);
            expect(call.player.queuedSamples).toBe(0);
          } else if (step.kind === "flush") {
            call.flush();
          } else if (step.kind === "wait") {
            call.clock.advance(step.ms);
          }
        }
        call.flush();
        call.clock.advance(60_000);
        expect([...waiting.keys()]).toEqual([]);
        expect(call.violations).toEqual([]);
        expect(call.odd).toEqual([]);
      }),
      {
        numRuns: 40,
        // What was sent before has been played without a word: the last frame stands alone.
        examples: [
          [
            [
              { kind: "audio", frames: 4 },
              { kind: "wait", ms: 80 },
              { kind: "audio", frames: 1 },
              { kind: "mark" },
            ],
          ],
        ],
      },
    );
  });

  it("hears the caller and the keys", () => {
    const call = new WiredCall(carrier, options);
    const voice = [0, 1, 2].map((n) => numberedFrame(n, 320));
    for (const audio of voice) call.deliver(call.peer.media(audio));
    call.deliver(call.peer.digit("7"));
    const heard = call.events.flatMap((event) => (event.kind === "media" ? [event.audio] : []));
    expect(Buffer.concat(heard)).toEqual(Buffer.concat(voice));
    expect(call.events.filter((event) => event.kind === "dtmf")).toMatchObject([{ digit: "7" }]);
    expect(call.odd).toEqual([]);
  });

  it("reports the call as it was set up", () => {
    const parameters = { session: "s1", lang: "en" };
    const call = new WiredCall(carrier, { ...options, call: { ...options.call, parameters } });
    const started = call.events.find((event) => event.kind === "started");
    expect(started).toMatchObject({
      call: {
        callId: call.call.callId,
        format: call.call.format,
        callerFormat: call.call.callerFormat,
        frameMs: 20,
        // Asterisk's plain text has no room for variables.
        ...(carrier === "asterisk" && options.control === undefined ? {} : { parameters }),
      },
    });
  });
});
