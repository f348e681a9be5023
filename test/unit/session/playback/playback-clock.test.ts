import { describe, expect, it } from "vitest";
import type { MemoryListener } from "../../../helpers/memory-listener.ts";
import { countingUlaw, createRig, evenAlignment } from "../../../helpers/session-rig.ts";
import { SlowEncoder } from "../../../helpers/slow-encoder.ts";

/** Two sessions that have begun to speak 20 ms apart. */
function setUp({ leadMs, batchMs }: { readonly leadMs: number; readonly batchMs: number }) {
  const { clock, requests, join } = createRig();
  const listeners = ["a", "b"].map((id, index) => {
    const { listener, send } = join(`format=ulaw_8000&lead_ms=${leadMs}&events=none`, id);
    send({ type: "speak", text: "Hello world", voice_id: "voice-1" });
    const request = requests[index];
    request?.head();
    request?.chunk(countingUlaw(2000), { alignment: evenAlignment("Hello world", 2000 / 11) });
    request?.handlers.end();
    clock.advance(20);
    return listener;
  });
  /** Where in the batch each sends in the next `ms`. */
  const phases = (ms: number): number[][] => {
    const found = listeners.map(() => new Set<number>());
    const counts = listeners.map((listener: MemoryListener) => listener.frames.length);
    for (let passed = 0; passed < ms; passed += 1) {
      clock.advance(1);
      for (const [index, listener] of listeners.entries()) {
        if (listener.frames.length > (counts[index] ?? 0)) found[index]?.add(clock.nowMs() % batchMs);
        counts[index] = listener.frames.length;
      }
    }
    return found.map((places) => [...places]);
  };
  return { clock, phases };
}

describe("PlaybackClock", () => {
  it.each([
    { leadMs: 150, batchMs: 40 },
    { leadMs: 200, batchMs: 60 },
    { leadMs: 299, batchMs: 80 },
    { leadMs: 300, batchMs: 100 },
  ])("wakes each session at its own place in the batch, also behind stalls: lead $leadMs", (lead) => {
    const { clock, phases } = setUp(lead);
    const before = phases(400);
    expect(before.map((places) => places.length)).toEqual([1, 1]);
    expect(before[0]).not.toEqual(before[1]);
    for (const stallMs of [250, 173]) {
      clock.stall(stallMs);
      // What is late leaves at once.
      clock.advance(1);
      expect(phases(400)).toEqual(before);
    }
  });

  it.each([
    { leadMs: 180, batchFrames: 3 },
    { leadMs: 300, batchFrames: 5 },
  ])(
    "sends each batch of encoded frames in one go and in time, though they come back late: lead $leadMs",
    (lead) => {
      const { leadMs, batchFrames } = lead;
      const encoder = new SlowEncoder(16);
      const { clock, requests, join } = createRig({}, encoder.pool);
      const { listener, send } = join(`format=opus_48000&lead_ms=${leadMs}&events=none`);
      // Somebody with another codec makes the upstream send PCM.
      join(`format=alaw_8000&lead_ms=${leadMs}&events=none`);
      send({ type: "speak", text: "Hello world", voice_id: "voice-1" });
      const [request] = requests;
      expect(request?.request).toMatchObject({ outputFormat: "pcm_24000" });
      request?.head();
      request?.chunk(new Uint8Array(48 * 5000));
      request?.handlers.end();
      const batches: { readonly frames: number; readonly phase: number }[] = [];
      for (let passed = 0; passed < 4000; passed += 1) {
        const before = listener.frames.length;
        clock.advance(1);
        encoder.turn();
        const frames = listener.frames.length - before;
        if (frames > 0) batches.push({ frames, phase: passed % (20 * batchFrames) });
      }
      // Behind the first ones, which leave as soon as they can.
      expect(batches.slice(5).length).toBeGreaterThan(25);
      expect(new Set(batches.slice(5).map(({ frames }) => frames))).toEqual(new Set([batchFrames]));
      expect(new Set(batches.slice(5).map(({ phase }) => phase)).size).toBe(1);
    },
  );

  it("sends the first encoded frames at once, also where listeners of another codec have theirs", async () => {
    const encoder = new SlowEncoder(3);
    const { clock, requests, join } = createRig({}, encoder.pool);
    const { listener: plain, send } = join("format=alaw_8000&lead_ms=300&events=none");
    const { listener } = join("format=opus_48000&lead_ms=300&events=none");
    send({ type: "speak", text: "Hello world", voice_id: "voice-1" });
    requests[0]?.head();
    requests[0]?.chunk(new Uint8Array(48 * 5000));
    const counts: number[] = [];
    for (let passed = 0; passed < 3; passed += 1) {
      clock.advance(1);
      encoder.turn();
      await Promise.resolve();
      counts.push(listener.frames.length);
    }
    expect(plain.frames.length).toBeGreaterThanOrEqual(15);
    expect(counts).toEqual([0, 0, plain.frames.length]);
  });
});
