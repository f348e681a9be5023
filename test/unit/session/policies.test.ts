/** What a listener that reads too slowly loses, by its policy, and what it gets. */
import { describe, expect, it } from "vitest";
import { countingUlaw, createRig, evenAlignment } from "../../helpers/session-rig.ts";
import { ScriptedListener } from "./scripted-listener.ts";

const TEXT = "Hello my very good friend of old";
const SPEECH_MS = 3200;
/** More than an eighth of the send queue and less than half of it: short, and not behind. */
const SHORT_BYTES = 12_000;
type Rig = ReturnType<typeof createRig>;

function run(rig: Rig, ms: number): void {
  for (let passed = 0; passed < ms; passed += 5) rig.clock.advance(5);
}

function say(rig: Rig, speaker: ReturnType<Rig["join"]>, fromMs = 0): void {
  const count = rig.requests.length;
  speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
  const request = rig.requests[count];
  if (request === undefined) throw new Error("No request was opened");
  request.head();
  [...TEXT].forEach((letter, index) => {
    request.chunk(countingUlaw(100, fromMs + index * 100), {
      alignment: evenAlignment(letter, 100, index * 100),
    });
  });
  request.handlers.end();
}

/** A speaker, a listener that reads and one of the same settings that does not always. */
function stage(policy: string) {
  const rig = createRig({ maxListeners: 10, graceMs: 60_000 });
  const speaker = rig.join("role=speaker&events=none");
  const query = `role=listener&format=ulaw_8000&policy=${policy}`;
  const healthy = new ScriptedListener(rig, query);
  const slow = new ScriptedListener(rig, query);
  return { rig, speaker, healthy, slow };
}

function drained({ line }: ScriptedListener): void {
  line.listener.isFull = false;
  line.listener.buffered = 0;
  line.session.drained(line.participant);
}

const gapFrames = (listener: ScriptedListener): number =>
  listener.gaps.reduce((sum, gap) => sum + gap.frames, 0);

function expectInPlace(listener: ScriptedListener): void {
  for (const { atMs, bytes } of listener.frames) expect(bytes).toEqual(countingUlaw(20, atMs));
}

describe("a listener whose socket is full for a while", () => {
  it.each([
    ["live", true],
    ["lossless", false],
    ["captions", true],
  ])("policy %s: what it got and what its gaps count is the whole, in its place", (policy, isLossy) => {
    const { rig, speaker, healthy, slow } = stage(policy);
    say(rig, speaker);
    run(rig, 400);
    slow.line.listener.isFull = true;
    run(rig, 800);
    drained(slow);
    run(rig, 4000);
    slow.read();
    healthy.read();
    expect(healthy.audio.equals(Buffer.from(countingUlaw(SPEECH_MS)))).toBe(true);
    expect(healthy.gaps).toEqual([]);
    expect(slow.gaps.length > 0).toBe(isLossy);
    expect(slow.frames.length + gapFrames(slow)).toBe(healthy.frames.length);
    expectInPlace(slow);
    expect(slow.seqs).toEqual(healthy.seqs);
    expect(rig.counters.framesDropped).toBe(gapFrames(slow));
  });

  it("policy live: a cut during the gap is emitted before it, so that the later frames are in their place", () => {
    const { rig, speaker, healthy, slow } = stage("live");
    say(rig, speaker);
    run(rig, 400);
    slow.line.listener.isFull = true;
    run(rig, 400);
    speaker.send({ type: "interrupt" });
    run(rig, 50);
    const nextMs = healthy.read().endMs;
    say(rig, speaker, nextMs);
    run(rig, 600);
    drained(slow);
    run(rig, 5000);
    slow.read();
    expect(healthy.read().endMs).toBe(nextMs + SPEECH_MS);
    expect(slow.endMs).toBe(healthy.endMs);
    expect(slow.gaps).toHaveLength(1);
    expectInPlace(healthy);
    expectInPlace(slow);
    // What the cut made untrue before this one had read it is not emitted any more.
    const cutMs = slow.events.find((event) => event.type === "interrupted")?.at_ms ?? 0;
    const untrue = healthy.events.filter(({ seq }) => !slow.seqs.includes(seq));
    expect(untrue.every(({ at_ms }) => at_ms > cutMs && at_ms < nextMs)).toBe(true);
    expect(healthy.seqs.filter((seq) => !untrue.some((event) => event.seq === seq))).toEqual(slow.seqs);
  });

  it("policy live: it is in step again only when all events it missed were taken", () => {
    const { rig, speaker, healthy, slow } = stage("live");
    say(rig, speaker);
    run(rig, 300);
    slow.line.listener.isFull = true;
    run(rig, 1000);
    slow.line.listener.isFull = false;
    slow.line.listener.beforeSend = () => {
      slow.line.listener.isFull = true;
      slow.line.listener.beforeSend = () => undefined;
    };
    slow.line.session.drained(slow.line.participant);
    expect(slow.line.listener.eventsOf("gap")).toEqual([]);
    drained(slow);
    run(rig, 4000);
    slow.read();
    expect(slow.gaps).toHaveLength(1);
    expectInPlace(slow);
    expect(slow.seqs).toEqual(healthy.read().seqs);
  });
});

describe("policy captions", () => {
  it("under pressure audio stands back, every event comes on time, then a gap counts the frames", () => {
    const { rig, speaker, healthy, slow } = stage("captions");
    // Events are made far ahead of what these are emitted.
    rig.join("role=listener&format=none&lead_ms=2000");
    say(rig, speaker);
    run(rig, 400);
    slow.line.listener.buffered = SHORT_BYTES;
    const before = slow.read().frames.length;
    for (let turn = 0; turn < 200; turn += 1) {
      rig.clock.advance(5);
      expect(slow.read().seqs).toEqual(healthy.read().seqs);
    }
    expect(slow.frames).toHaveLength(before);
    expect(slow.gaps).toEqual([]);
    expect(healthy.frames.length).toBeGreaterThan(before + 40);
    const sentSeq = slow.seqs.at(-1);
    drained(slow);
    expect(slow.read().gaps).toMatchObject([{ frames: healthy.frames.length - before, seq: sentSeq }]);
    run(rig, 4000);
    slow.read();
    healthy.read();
    expect(slow.gaps).toHaveLength(1);
    expect(slow.frames.length + gapFrames(slow)).toBe(healthy.frames.length);
    expectInPlace(slow);
    expect(healthy.audio.equals(Buffer.from(countingUlaw(SPEECH_MS)))).toBe(true);
    expect(rig.counters.framesDropped).toBe(gapFrames(slow));
    expect(rig.counters.framesSent).toBe(slow.frames.length + healthy.frames.length);
  });

  it("policy live under the same pressure gets its audio", () => {
    const { rig, speaker, slow } = stage("live");
    say(rig, speaker);
    run(rig, 400);
    slow.line.listener.buffered = SHORT_BYTES;
    run(rig, 4000);
    expect(slow.read().audio.equals(Buffer.from(countingUlaw(SPEECH_MS)))).toBe(true);
  });

  it("what was left out before a cut is emitted before the cut", () => {
    const { rig, speaker, healthy, slow } = stage("captions");
    say(rig, speaker);
    run(rig, 400);
    slow.line.listener.buffered = SHORT_BYTES;
    run(rig, 400);
    speaker.send({ type: "interrupt" });
    const nextMs = healthy.read().endMs;
    slow.read();
    expect(slow.endMs).toBe(nextMs);
    expect(slow.frames.length + gapFrames(slow)).toBe(healthy.frames.length);
    drained(slow);
    say(rig, speaker, nextMs);
    run(rig, 5000);
    slow.read();
    expect(slow.endMs).toBe(healthy.read().endMs);
    expectInPlace(slow);
    expect(slow.seqs).toEqual(healthy.seqs);
  });
});

describe("a policy changed by configure", () => {
  it("holds from then on", () => {
    const { rig, speaker, slow } = stage("live");
    say(rig, speaker);
    run(rig, 300);
    slow.line.send({ type: "configure", policy: "lossless" });
    expect(slow.line.listener.eventsOf("configured")).toMatchObject([{ settings: { policy: "lossless" } }]);
    run(rig, 100);
    slow.line.listener.isFull = true;
    run(rig, 500);
    drained(slow);
    expect(slow.read().gaps).toEqual([]);
    slow.line.send({ type: "configure", policy: "captions" });
    run(rig, 100);
    slow.line.listener.buffered = SHORT_BYTES;
    const before = slow.read().frames.length;
    run(rig, 300);
    expect(slow.read().frames).toHaveLength(before);
    drained(slow);
    expect(slow.read().gaps).toHaveLength(1);
    slow.line.send({ type: "configure", policy: "live" });
    slow.line.listener.buffered = SHORT_BYTES;
    run(rig, 4000);
    slow.read();
    expect(slow.frames.length).toBeGreaterThan(before);
    expect(slow.gaps).toHaveLength(1);
    expect(slow.endMs).toBe(SPEECH_MS);
    expectInPlace(slow);
    expect(new Set(slow.seqs).size).toBe(slow.seqs.length);
  });

  it("a change under pressure reports by its place what was left out", () => {
    const { rig, speaker, healthy, slow } = stage("captions");
    say(rig, speaker);
    run(rig, 400);
    slow.line.listener.buffered = SHORT_BYTES;
    run(rig, 600);
    slow.line.send({ type: "configure", policy: "lossless" });
    slow.line.listener.buffered = 0;
    run(rig, 4000);
    slow.read();
    expect(slow.gaps).toEqual([]);
    expect(slow.endMs).toBe(SPEECH_MS);
    expectInPlace(slow);
    expect(slow.seqs).toEqual(healthy.read().seqs);
  });

  it("joining the group of others that were sent less repeats no event", () => {
    const { rig, speaker, slow } = stage("live");
    const ahead = new ScriptedListener(rig, "role=listener&format=ulaw_8000&lead_ms=1500");
    say(rig, speaker);
    run(rig, 300);
    ahead.line.send({ type: "configure", lead_ms: 200 });
    run(rig, 4000);
    expect(ahead.read().seqs).toEqual(slow.read().seqs);
    expectInPlace(ahead);
  });
});
