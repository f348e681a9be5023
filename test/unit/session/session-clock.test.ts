import { describe, expect, it } from "vitest";
import type { MemorySink } from "../../helpers/memory-sink.ts";
import { countingUlaw, createRig, evenAlignment } from "../../helpers/session-rig.ts";

const BATCH_MS = 100;

/** Two sessions that have begun to speak 40 ms apart, and send every 100 ms. */
function setUp() {
  const { clock, requests, join } = createRig();
  const sinks = ["a", "b"].map((id, index) => {
    const { sink, send } = join("format=ulaw_8000&lead_ms=300&events=none", id);
    send({ type: "speak", text: "Hello world", voice_id: "voice-1" });
    const request = requests[index];
    request?.head();
    request?.chunk(countingUlaw(2000), { alignment: evenAlignment("Hello world", 2000 / 11) });
    request?.handlers.end();
    clock.advance(40);
    return sink;
  });
  /** Where in the batch each sends in the next `ms`. */
  const phases = (ms: number): number[][] => {
    const found = sinks.map(() => new Set<number>());
    const counts = sinks.map((sink: MemorySink) => sink.frames.length);
    for (let passed = 0; passed < ms; passed += 1) {
      clock.advance(1);
      for (const [index, sink] of sinks.entries()) {
        if (sink.frames.length > (counts[index] ?? 0)) found[index]?.add(clock.nowMs() % BATCH_MS);
        counts[index] = sink.frames.length;
      }
    }
    return found.map((places) => [...places]);
  };
  return { clock, phases };
}

describe("SessionClock", () => {
  it("wakes each session at its own place in the batch, also behind a stall of the event loop", () => {
    const { clock, phases } = setUp();
    const before = phases(400);
    expect(before.map((places) => places.length)).toEqual([1, 1]);
    expect(before[0]).not.toEqual(before[1]);
    clock.stall(250);
    // What is late leaves at once.
    clock.advance(1);
    expect(phases(400)).toEqual(before);
  });
});
