/** Sounds under silent speech: every sample that a listener gets stands where the sound has it, whatever is said and cut. */
import { describe, expect, it } from "vitest";
import { bytesOf } from "../../../../src/audio/codecs/pcm.ts";
import { createRig } from "../../../helpers/session-rig.ts";
import { ScriptedListener } from "../scripted-listener.ts";

const RATE = 8000;
/** No sample is twice in it, and none is nothing. */
const SOUND = Int16Array.from({ length: 6007 }, (_, at) => 1000 + 3 * at);
const UNDER = {
  type: "play",
  under: true,
  audio: Buffer.from(bytesOf(SOUND)).toString("base64"),
  format: "pcm_8000",
  loop: true,
  duck_db: 0,
  fade_in_ms: 0,
  fade_out_ms: 0,
  utterance_id: "sound",
};
const TUNING = { graceMs: 60_000, maxListeners: 100, maxQueuedUtterances: 50, maxMessageBytes: 100_000 };

function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Places of samples that are not the sound's, ms, each once. */
function wrongPlaces(listener: ScriptedListener, fromMs: number): number[] {
  const wrong = new Set<number>();
  for (const { atMs, bytes } of listener.read().frames) {
    if (atMs < fromMs) continue;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < bytes.byteLength / 2; at += 1) {
      const place = Math.round((atMs * RATE) / 1000) + at;
      if (view.getInt16(2 * at, true) !== SOUND[place % SOUND.length]) wrong.add(Math.floor(place / 8));
    }
  }
  return [...wrong];
}

function talk(seed: number, frameLengths: readonly number[]) {
  const below = random(seed);
  const rig = createRig(TUNING);
  const speaker = rig.join("role=speaker&format=none&events=none");
  const join = (frameMs: number) => ({
    listener: new ScriptedListener(rig, `role=listener&format=pcm_8000&frame_ms=${frameMs}&events=words`),
    fromMs: rig.sessions.open("s").renderedMs + 400,
  });
  const first = join(frameLengths[0] ?? 20);
  const listeners = [{ ...first, fromMs: 0 }];
  for (const frameMs of frameLengths.slice(1)) listeners.push({ ...join(frameMs), fromMs: 0 });
  speaker.send(UNDER);
  let count = 0;
  const answered = new Set<number>();
  for (let step = 0; step < 400; step += 1) {
    rig.clock.advance(1 + below(50));
    const what = below(20);
    if (what === 0) {
      count += 1;
      speaker.send({ type: "speak", text: "Words are here.", voice_id: "v", utterance_id: `u${count}` });
    }
    const open = rig.requests.findIndex((request, index) => !answered.has(index) && !request.isAborted);
    if (what < 6 && open >= 0) {
      const request = rig.requests[open];
      answered.add(open);
      request?.head();
      request?.chunk(new Uint8Array(2 * (1 + below(8000))));
      request?.handlers.end();
    }
    if (what === 7 && count > 0 && rig.sessions.open("s").queue.find(`u${count}`) !== undefined) {
      speaker.send({ type: "interrupt", utterance_id: `u${count}` });
    }
    if (what === 8 && listeners.length < 6)
      listeners.push(join(frameLengths[below(frameLengths.length)] ?? 20));
    if (what === 9) {
      const { listener } = listeners[below(listeners.length)] ?? first;
      listener.cutOff().comeBack();
    }
  }
  // What is made by now is told of.
  for (let ms = 0; ms < 600; ms += 5) rig.clock.advance(5);
  return { listeners };
}

describe("sounds under speech", () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])("stand at their places without a hole, seed %i", (seed) => {
    const { listeners } = talk(seed, [20]);
    for (const { listener, fromMs } of listeners) {
      expect(wrongPlaces(listener, fromMs)).toEqual([]);
      expect(listener.gaps).toEqual([]);
    }
    const { endMs, events } = listeners[0]?.listener ?? { endMs: 0, events: [] };
    expect(endMs).toBeGreaterThan(8000);
    expect(events.filter(({ type }) => type === "utterance.done").length).toBeGreaterThan(3);
  });

  it.each([11, 12, 13, 14, 15])("leave short holes where frames end nowhere together, seed %i", (seed) => {
    const { listeners } = talk(seed, [20, 60, 50]);
    const joints = listeners.flatMap(({ listener }) =>
      listener.read().events.flatMap((event) => {
        if (event.type === "utterance.started") return [event.start_ms];
        if (event.type === "interrupted") return event.next_ms === null ? [] : [event.next_ms];
        return event.type === "utterance.done" ? [event.end_ms] : [];
      }),
    );
    expect(joints.length).toBeGreaterThan(10);
    for (const { listener, fromMs } of listeners) {
      const wrong = wrongPlaces(listener, fromMs);
      expect(wrong.filter((ms) => !joints.some((jointMs) => Math.abs(jointMs - ms) <= 120))).toEqual([]);
    }
  });

  it("come back with a listener and go on behind it, and fill the last frame when they end", () => {
    const rig = createRig(TUNING);
    const speaker = rig.join("role=speaker&format=none&events=none");
    const listener = new ScriptedListener(rig, "role=listener&format=pcm_8000&frame_ms=20");
    speaker.send({ ...UNDER, loop: false });
    for (let ms = 0; ms < 1500; ms += 5) rig.clock.advance(5);
    const { events, frames } = listener.read();
    expect(events.map(({ type }) => type)).toEqual(["sound.started", "sound.ended"]);
    expect(events[1]).toMatchObject({ outcome: "done", start_ms: 0, end_ms: 750.875 });
    // 750.875 ms of sound in 38 frames, the rest of the last one is silence.
    expect(frames).toHaveLength(38);
    const samples = new Int16Array(Uint8Array.from(listener.audio).buffer);
    expect(samples.subarray(0, SOUND.length)).toEqual(SOUND);
    expect(samples.subarray(SOUND.length).every((sample) => sample === 0)).toBe(true);
    speaker.send({ ...UNDER, utterance_id: "again" });
    for (let ms = 0; ms < 500; ms += 5) rig.clock.advance(5);
    expect(listener.read().frames.length).toBeGreaterThan(38 + 20);
    expect(listener.events.at(-1)).toMatchObject({ type: "sound.started", start_ms: 760 });
  });
});
