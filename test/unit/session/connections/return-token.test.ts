/** A listener whose socket was lost comes back and goes on where it was, or is emitted what is gone. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  parseLastEventId,
  parseReturn,
  returnRefusal,
} from "../../../../src/session/connections/return-token.ts";
import { countingUlaw, createRig, evenAlignment } from "../../../helpers/session-rig.ts";
import { ScriptedListener } from "../scripted-listener.ts";

const KEEP_MS = 2000;
const TEXT = "Hello my very good friend of old";
const ULAW = "role=listener&format=ulaw_8000";

function quietRig() {
  return createRig({
    keepMs: KEEP_MS,
    graceMs: 60_000,
    maxListeners: 20,
  });
}
type Rig = ReturnType<typeof createRig>;

/** Says `ms` of mu-law (or of the format asked for: silence with counts) with a character each `ms / length`. */
function say(rig: Rig, speaker: ReturnType<Rig["join"]>, ms: number, from = 0): void {
  const count = rig.requests.length;
  speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
  const request = rig.requests[count];
  if (request === undefined) throw new Error("No request was opened");
  const perLetter = ms / TEXT.length;
  request.head();
  const audio = audioOf(request.request.outputFormat, ms, from);
  const bytesPerMs = audio.byteLength / ms;
  [...TEXT].forEach((letter, index) => {
    const width = bytesPerMs >= 16 ? 2 : 1;
    const at = (position: number): number => Math.floor((position * perLetter * bytesPerMs) / width) * width;
    const piece = audio.subarray(at(index), index === TEXT.length - 1 ? audio.byteLength : at(index + 1));
    request.chunk(piece, { alignment: evenAlignment(letter, perLetter, index * perLetter) });
  });
  request.handlers.end();
}

function audioOf(format: string, ms: number, from: number): Uint8Array {
  if (format === "ulaw_8000") return countingUlaw(ms, from);
  const rate = Number(format.split("_")[1]);
  const samples = Int16Array.from(
    { length: (rate * ms) / 1000 },
    (_, index) => ((index * 37) % 20_000) - 10_000,
  );
  return new Uint8Array(samples.buffer);
}

/** The clock in short steps, so that every wake falls where it would. */
function run(rig: Rig, ms: number): void {
  for (let passed = 0; passed < ms; passed += 5) rig.clock.advance(Math.min(5, ms - passed));
}

/** A speaker without audio and listeners, speech on its way. */
function stage(queries: string[], ms = 3000) {
  const rig = quietRig();
  const speaker = rig.join("role=speaker&events=none");
  const listeners = queries.map((query) => new ScriptedListener(rig, query));
  say(rig, speaker, ms);
  return { rig, speaker, listeners, first: mustHave(listeners[0]) };
}

function mustHave<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("Expected a value");
  return value;
}

const unique = (numbers: readonly number[]): boolean => new Set(numbers).size === numbers.length;

describe("a listener that comes back within keep_ms", () => {
  it.each([
    ["with others listening", [ULAW, ULAW]],
    ["as the only listener", [ULAW]],
    ["next to another codec", [ULAW, "role=listener&format=pcm_16000&frame_ms=40"]],
  ])("%s gets every frame and event once, in order, after a cut at any message", (_, queries) => {
    for (let cut = 1; cut <= 60; cut += 3) {
      const { rig, first } = stage(queries);
      const whole = stage(queries);
      run(whole.rig, 4000);
      whole.first.read();
      run(rig, 40 + 17 * cut);
      first.cutOff(cut);
      run(rig, 300 + 7 * cut);
      const endMs = first.endMs;
      first.comeBack();
      run(rig, 5000);
      first.read();
      expect(first.hello).toMatchObject({ resumed: true, audio: { start_ms: endMs } });
      expect(first.gaps).toEqual([]);
      expect(first.audio.equals(whole.first.audio)).toBe(true);
      expect(first.frames.map((frame) => frame.atMs)).toEqual(whole.first.frames.map((frame) => frame.atMs));
      expect(first.seqs).toEqual(whole.first.seqs);
    }
  });

  it("has said nothing of what was still to come in an event to it alone", () => {
    const { rig, first } = stage([`${ULAW}&lead_ms=0`, `${ULAW}&lead_ms=2000`]);
    run(rig, 300);
    first.line.send({ type: "ping" });
    const pong = first.line.listener.eventsOf("pong")[0];
    const emitted = first.line.listener.events.filter(
      (event) => event.type === "words" || event.type === "characters",
    );
    expect(pong?.seq).toBe(emitted.at(-1)?.seq);
    const late = new ScriptedListener(rig, `${ULAW}&lead_ms=0`).cutOff(1);
    late.comeBack();
    run(rig, 4000);
    late.read();
    const firstAfter = first.read().events.filter((event) => event.seq > (pong?.seq ?? 0));
    expect(late.events.filter((event) => event.seq > (pong?.seq ?? 0))).toEqual(firstAfter);
  });

  it("speech waits for the only listener and goes on without loss", () => {
    const { rig, first } = stage([ULAW]);
    run(rig, 500);
    first.cutOff();
    run(rig, 20_000);
    const mid = first.audio.byteLength;
    first.comeBack();
    run(rig, 5000);
    first.read();
    expect(mid).toBeLessThan(countingUlaw(1500).byteLength);
    expect(first.gaps).toEqual([]);
    expect(first.audio.equals(Buffer.from(countingUlaw(3000)))).toBe(true);
  });

  it("with a shorter lead than before it gets nothing twice", () => {
    const { rig, first } = stage([`${ULAW}&lead_ms=1000`, `${ULAW}&lead_ms=100`]);
    run(rig, 400);
    first.cutOff();
    first.comeBack({ query: `${ULAW}&lead_ms=100` });
    run(rig, 5000);
    first.read();
    expect(first.audio.equals(Buffer.from(countingUlaw(3000)))).toBe(true);
    expect(unique(first.seqs)).toBe(true);
  });

  it("in another format it gets the events it missed, and audio from where hello says", () => {
    const { rig, first, listeners } = stage([ULAW, "role=listener&format=pcm_16000"]);
    run(rig, 500);
    first.cutOff();
    run(rig, 400);
    first.comeBack({ query: "role=listener&format=pcm_8000" });
    const before = first.frames.length;
    run(rig, 5000);
    first.read();
    const startMs = mustHave(first.frames[before]).atMs;
    const gapMs = first.gaps.reduce((sum, gap) => sum + gap.ms, 0);
    expect((first.hello.audio?.start_ms ?? 0) + gapMs).toBe(startMs);
    expect(first.endMs).toBeGreaterThanOrEqual(3000);
    expect(first.endMs).toBeLessThan(3020);
    expect(first.seqs).toEqual(mustHave(listeners[1]).read().seqs);
  });

  it("across a configure", () => {
    const { rig, first, listeners } = stage([ULAW, "role=listener&format=pcm_16000"]);
    run(rig, 500);
    first.line.send({ type: "configure", format: "alaw_8000", frame_ms: 40 });
    run(rig, 300);
    first.read();
    const fromMs = mustHave(first.line.listener.eventsOf("configured")[0]?.audio?.start_ms);
    const have = first.frames.filter((frame) => frame.bytes.byteLength === 320).length;
    first.cutOff();
    run(rig, 300);
    first.comeBack({ query: "role=listener&format=alaw_8000&frame_ms=40" });
    run(rig, 5000);
    first.read();
    const alaw = first.frames.filter((frame) => frame.bytes.byteLength === 320);
    expect(alaw.length).toBeGreaterThan(have);
    expect(alaw.map((frame) => frame.atMs)).toEqual(alaw.map((_, index) => fromMs + index * 40));
    expect(first.gaps).toEqual([]);
    expect(first.seqs).toEqual(mustHave(listeners[1]).read().seqs);
  });

  it.each([4801, 4803, 4807, 4813, 4819])(
    "whose audio begins between two milliseconds, after %i samples, gets no frame twice",
    (samples) => {
      const rig = quietRig();
      const speaker = rig.join("role=speaker&events=none");
      const other = new ScriptedListener(rig, "role=listener&format=pcm_22050");
      speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
      const request = mustHave(rig.requests[0]);
      const audio = audioOf("pcm_22050", 3000, 0);
      request.head();
      request.chunk(audio.subarray(0, samples * 2));
      run(rig, 400);
      const late = new ScriptedListener(rig, "role=listener&format=pcm_8000");
      const steady = new ScriptedListener(rig, "role=listener&format=pcm_8000");
      request.chunk(audio.subarray(samples * 2));
      request.handlers.end();
      for (let turn = 0; turn < 5; turn += 1) {
        run(rig, 210);
        late.cutOff();
        run(rig, 100);
        late.comeBack();
      }
      run(rig, 3000);
      late.read();
      expect(late.gaps).toEqual([]);
      expect(late.warnings).toEqual([]);
      expect(late.audio.equals(steady.read().audio)).toBe(true);
      expect(Number.isInteger(steady.hello.audio?.start_ms)).toBe(false);
      expect(other.read().frames.length).toBeGreaterThan(0);
    },
  );

  it.each([
    ["with others listening", [ULAW, ULAW]],
    ["as the only listener", [ULAW]],
  ])("%s and says no position goes on behind what was written to it, and learns where", (_, queries) => {
    const { rig, first } = stage(queries);
    run(rig, 700);
    // Of what was written it got less: the rest is not sent again.
    const written = first.line.listener.frames.length;
    const emitted = first.line.listener.events.at(-1)?.seq ?? 0;
    first.cutOff(30);
    const before = first.frames.length;
    expect(before).toBeLessThan(written);
    run(rig, 500);
    first.comeBack({ place: first.hello.resume_token });
    run(rig, 5000);
    first.read();
    expect(first.hello).toMatchObject({ resumed: true, audio: { start_ms: written * 20 } });
    const again = first.frames.slice(before);
    expect(mustHave(again[0]).atMs).toBe(written * 20);
    for (const { atMs, bytes } of again) expect(bytes).toEqual(countingUlaw(20, atMs));
    expect(first.endMs).toBe(3000);
    expect(first.gaps).toEqual([]);
    expect(unique(first.seqs)).toBe(true);
    expect(first.seqs.find((seq) => seq > emitted)).toBe(emitted + 1);
  });

  it.each([
    ["seq", (seq: number) => `&seq=${seq}`],
    ["at_ms", (_seq: number, atMs: number) => `&at_ms=${atMs}`],
  ])("and says %s alone gets the rest of the position from what was written", (name, say) => {
    const { rig, first } = stage([ULAW, ULAW]);
    run(rig, 700);
    const written = first.line.listener.frames.length;
    const lastSeq = first.line.listener.events.at(-1)?.seq ?? 0;
    first.cutOff(20);
    const [got, endMs] = [mustHave(first.seqs.at(-1)), first.endMs];
    expect([got < lastSeq, endMs < written * 20]).toEqual([true, true]);
    first.comeBack({ place: first.hello.resume_token + say(got, endMs) });
    const count = first.events.length;
    run(rig, 5000);
    first.read();
    expect(first.hello.audio?.start_ms).toBe(name === "at_ms" ? endMs : written * 20);
    expect(first.events[count]?.seq).toBe((name === "seq" ? got : lastSeq) + 1);
  });

  it("while its old socket seems to be there goes on behind what was written to that by now", () => {
    const { rig, first } = stage([ULAW]);
    run(rig, 500);
    const written = first.line.listener.frames.length;
    const back = rig.join(`${ULAW}&resume=${first.read().hello.resume_token}`);
    expect(back.listener.eventsOf("hello")).toMatchObject([
      { resumed: true, audio: { start_ms: written * 20 } },
    ]);
  });

  it("with the token from before its last coming back, which sent it a new one in vain, goes on there", () => {
    const { rig, first } = stage([ULAW, ULAW]);
    run(rig, 500);
    first.cutOff();
    const place = first.place;
    const unseen = rig.join(`${ULAW}&resume=${place}`);
    run(rig, 100);
    unseen.session.leave(unseen.participant);
    const startMs = first.endMs;
    first.comeBack({ place });
    run(rig, 4000);
    first.read();
    expect(first.hello).toMatchObject({ resumed: true, audio: { start_ms: startMs } });
    expect(first.audio.equals(Buffer.from(countingUlaw(3000)))).toBe(true);
  });
});

describe("a listener that comes back after an interruption", () => {
  it.each([
    ["far behind the cut", 200, 700],
    ["at the cut", 600, 100],
    ["with frames that were cut", 650, 20],
  ])("%s gets the interrupted event and no frame that was cut", (_, beforeMs, awayMs) => {
    const { rig, speaker, first, listeners } = stage([`${ULAW}&lead_ms=500`, `${ULAW}&lead_ms=200`]);
    run(rig, beforeMs);
    first.cutOff();
    run(rig, awayMs);
    speaker.send({ type: "interrupt" });
    run(rig, 100);
    say(rig, speaker, 1000, 5000);
    run(rig, 300);
    const before = first.frames.length;
    first.comeBack();
    run(rig, 5000);
    first.read();
    const cut = mustHave(first.events.find((event) => event.type === "interrupted"));
    if (cut.type !== "interrupted" || cut.next_ms === null) throw new Error("Nothing was cut");
    const nextMs = cut.next_ms;
    expect(cut.at_ms).toBe(beforeMs + awayMs);
    const fresh = first.frames.slice(before).filter((frame) => frame.atMs >= nextMs);
    const old = first.frames.slice(before).filter((frame) => frame.atMs < nextMs);
    for (const { atMs, bytes } of old) {
      expect(atMs + 20).toBeLessThanOrEqual(cut.at_ms);
      expect(bytes).toEqual(countingUlaw(20, atMs));
    }
    expect(mustHave(fresh[0]).atMs).toBe(nextMs);
    expect(Buffer.concat(fresh.map((frame) => frame.bytes)).equals(countingUlaw(1000, 5000))).toBe(true);
    expect(first.gaps).toEqual([]);
    expect(nextMs).toBeGreaterThanOrEqual(before * 20);
    expect(
      mustHave(listeners[1])
        .read()
        .frames.filter((frame) => frame.atMs >= nextMs),
    ).toEqual(fresh);
  });

  it("the only listener of a session comes back", () => {
    const { rig, speaker, first } = stage([`${ULAW}&lead_ms=500`]);
    run(rig, 300);
    first.cutOff(12);
    run(rig, 50);
    speaker.send({ type: "interrupt" });
    const before = first.frames.length;
    first.comeBack();
    say(rig, speaker, 400, 5000);
    run(rig, 2000);
    first.read();
    const cut = mustHave(first.events.find((event) => event.type === "interrupted"));
    const nextMs = cut.type === "interrupted" ? (cut.next_ms ?? -1) : -1;
    const old = first.frames.slice(before).filter((frame) => frame.atMs < nextMs);
    for (const { atMs } of old) expect(atMs + 20).toBeLessThanOrEqual(cut.at_ms);
    const fresh = first.frames.filter((frame) => frame.atMs >= nextMs);
    expect(Buffer.concat(fresh.map((frame) => frame.bytes)).equals(countingUlaw(400, 5000))).toBe(true);
  });
});

describe("a listener that comes back after more than keep_ms", () => {
  it("learns what is gone: with what it got it is the whole", () => {
    const { rig, speaker, first, listeners } = stage([ULAW, ULAW], 8000);
    run(rig, 500);
    first.cutOff();
    const got = { frames: first.frames.length, events: first.seqs.length };
    // Events are thrown away many at a time.
    run(rig, 8000);
    say(rig, speaker, 8000, 8000);
    run(rig, 7000);
    first.comeBack();
    run(rig, 12_000);
    first.read();
    const other = mustHave(listeners[1]).read();
    const gap = mustHave(first.gaps[0]);
    expect(first.gaps).toHaveLength(1);
    expect(gap.ms).toBe(gap.frames * 20);
    expect(gap.frames).toBeGreaterThan(0);
    expect((first.hello.audio?.start_ms ?? 0) + gap.ms).toBe(mustHave(first.frames[got.frames]).atMs);
    expect(first.hello.audio?.start_ms).toBe(got.frames * 20);
    expect(first.frames.length + gap.frames).toBe(other.frames.length);
    expect(gap.events).toBeGreaterThan(0);
    expect(first.seqs.length + (gap.events ?? 0)).toBe(other.seqs.length);
    for (const { atMs, bytes } of first.frames) expect(bytes).toEqual(countingUlaw(20, atMs));
  });

  it("gets no frame that begins with silence in place of what is gone", () => {
    for (const frameMs of [20, 30, 50, 70, 100]) {
      const query = `${ULAW}&frame_ms=${frameMs}`;
      // Chunks of the upstream end where letters do: not where frames do.
      const { rig, first, listeners } = stage([query, ULAW], 8000);
      run(rig, 500);
      first.cutOff();
      run(rig, 5000);
      first.comeBack();
      const before = first.frames.length;
      run(rig, 5000);
      const [missed] = first.read().gaps;
      const fresh = first.frames.slice(before);
      expect(missed?.ms).toBe((missed?.frames ?? 0) * frameMs);
      expect((first.hello.audio?.start_ms ?? 0) + (missed?.ms ?? 0)).toBe(mustHave(fresh[0]).atMs);
      for (const { atMs, bytes } of fresh.slice(0, -1)) expect(bytes).toEqual(countingUlaw(frameMs, atMs));
      expect(mustHave(listeners[1]).read().gaps).toEqual([]);
    }
  });

  it.each([
    ["is emitted before the gap", true],
    ["is among the events that are gone", false],
  ])("a cut while it was away, %s: the later frames are in their place", (_, isKept) => {
    const { rig, speaker, first, listeners } = stage([ULAW, ULAW], 8000);
    run(rig, 500);
    first.cutOff();
    const before = first.frames.length;
    run(rig, 600);
    speaker.send({ type: "interrupt" });
    const other = mustHave(listeners[1]);
    const nextMs = other.read().endMs;
    speaker.send({ type: "speak", text: "a".repeat(20), voice_id: "v" });
    const request = mustHave(rig.requests.at(-1));
    request.head();
    for (let at = nextMs; at < nextMs + 8000; at += 100) {
      request.chunk(
        countingUlaw(100, at),
        isKept && (at - nextMs) % 500 === 0 ? { alignment: evenAlignment("a", 100, at - nextMs) } : {},
      );
    }
    request.handlers.end();
    run(rig, 5000);
    first.comeBack();
    run(rig, 8000);
    first.read();
    const gap = mustHave(first.gaps[0]);
    expect(first.gaps).toHaveLength(1);
    expect(first.events.filter((event) => event.type === "interrupted")).toHaveLength(isKept ? 1 : 0);
    expect((gap.events ?? 0) > 0).toBe(!isKept);
    const countedMs = isKept ? nextMs : (first.hello.audio?.start_ms ?? 0);
    expect(mustHave(first.frames[before]).atMs).toBe(countedMs + gap.ms);
    for (const { atMs, bytes } of first.frames) expect(bytes).toEqual(countingUlaw(20, atMs));
    expect(first.endMs).toBe(other.read().endMs);
  });

  it("audio that was kept for nobody is made no more, and what comes is reported as a gap", () => {
    const { rig, first } = stage([ULAW, "role=listener&format=pcm_8000"], 8000);
    run(rig, 500);
    first.cutOff();
    run(rig, 4000);
    const madeBefore = rig.counters.framesMade;
    run(rig, 1000);
    expect(rig.counters.framesMade - madeBefore).toBeLessThanOrEqual(60);
    const before = first.frames.length;
    first.comeBack();
    run(rig, 8000);
    first.read();
    const gap = mustHave(first.gaps[0]);
    expect((first.hello.audio?.start_ms ?? 0) + gap.ms).toBe(mustHave(first.frames[before]).atMs);
    expect(first.frames.length + gap.frames).toBeGreaterThanOrEqual(400);
    expect(first.frames.length + gap.frames).toBeLessThanOrEqual(401);
  });
});

describe("a position that can't be honoured", () => {
  const UNKNOWN = "AAAAAAAAAAAAAAAAAAAAAA";

  it.each([
    ["a token that is nobody's", () => UNKNOWN, "token"],
    ["an event that was not emitted yet", (token: string) => `${token}&seq=9999`, "9999"],
    ["audio that was not sent yet", (token: string) => `${token}&at_ms=999999`, "999999"],
  ])("%s is named, the connection joins at the playhead, and nobody else notices", (_, placeOf, named) => {
    const { rig, listeners, first } = stage([ULAW]);
    run(rig, 500);
    first.read();
    const late = rig.join(`${ULAW}&resume=${placeOf(first.hello.resume_token)}`);
    run(rig, 4000);
    expect(late.listener.eventsOf("hello")).toMatchObject([{ resumed: false, audio: { start_ms: 500 } }]);
    const [warning, ...others] = late.listener.eventsOf("warning");
    expect(warning).toMatchObject({ code: "resume_refused", message: expect.stringContaining(named) });
    expect(others).toEqual([]);
    expect(late.listener.eventsOf("utterance.started")).toHaveLength(1);
    expect(Buffer.concat(late.listener.frames).equals(countingUlaw(2500, 500))).toBe(true);
    expect(
      mustHave(listeners[0])
        .read()
        .audio.equals(Buffer.from(countingUlaw(3000))),
    ).toBe(true);
    expect(first.line.listener.eventsOf("warning")).toEqual([]);
    expect(rig.counters).toMatchObject({ resumesRefused: 1, listenersResumed: 0 });
  });

  const refused = (line: ReturnType<Rig["join"]>): void => {
    expect(line.listener.eventsOf("hello")).toMatchObject([{ resumed: false }]);
    expect(line.listener.eventsOf("warning")).toMatchObject([{ code: "resume_refused" }]);
  };

  it("a token of another session is refused", () => {
    const { rig, first } = stage([ULAW]);
    run(rig, 300);
    refused(rig.join(`format=ulaw_8000&resume=${first.read().hello.resume_token}`, "other"));
  });

  it("a token of a connection that has been gone for ten minutes is refused, and one of a shorter time is not", () => {
    const { rig, first } = stage([ULAW, ULAW]);
    run(rig, 300);
    first.cutOff();
    rig.clock.advance(599_000);
    const back = rig.join(`${ULAW}&resume=${first.hello.resume_token}`);
    expect(back.listener.eventsOf("hello")).toMatchObject([{ resumed: true }]);
    rig.clock.advance(1000);
    refused(rig.join(`${ULAW}&resume=${first.hello.resume_token}`));
  });

  it("the token of the connection that went first is refused, once more are gone than may be there at once", () => {
    const { rig, first } = stage([ULAW, ULAW]);
    run(rig, 300);
    first.cutOff();
    const come = () => {
      const { session, participant, listener } = rig.join("role=listener&format=none");
      session.leave(participant);
      return mustHave(listener.eventsOf("hello")[0]).resume_token;
    };
    // 20 may be there.
    const [second] = Array.from({ length: 20 }, come);
    refused(rig.join(`${ULAW}&resume=${first.hello.resume_token}`));
    expect(rig.join(`${ULAW}&resume=${second}`).listener.eventsOf("hello")).toMatchObject([
      { resumed: true },
    ]);
  });

  it.each([
    ["resume", "resume="],
    ["resume", "resume=a%20b"],
    ["resume", "resume=abc:1:100:l1"],
    ["seq", `resume=${UNKNOWN}&seq=x`],
    ["seq", `resume=${UNKNOWN}&seq=-1`],
    ["seq", `resume=${UNKNOWN}&seq=1e3`],
    ["at_ms", `resume=${UNKNOWN}&at_ms=-5`],
    ["at_ms", `resume=${UNKNOWN}&at_ms=`],
  ])("a malformed %s is named by invalid_field: %s", (field, query) => {
    const { join } = createRig();
    expect(() => join(`format=ulaw_8000&${query}`)).toThrow(
      expect.objectContaining({ code: "invalid_field", field }),
    );
  });

  it("hello says nothing of resuming where that was not asked for", () => {
    const { join } = createRig();
    expect(join("format=ulaw_8000").listener.eventsOf("hello")[0]).not.toHaveProperty("resumed");
  });

  it("times that a client has summed up are read to their last digit, within the rounding of what it got", () => {
    const request = parseReturn(new URLSearchParams("resume=abc&at_ms=100.30000000000001"));
    expect(request).toEqual({ kind: "token", token: "abc", seq: null, atMs: 100.30000000000001 });
    const facts = {
      epoch: "e",
      seq: 3,
      sentMs: 100.3,
      written: { holder: "", listenerId: "l1", seq: 3, ticks: null },
    };
    expect(returnRefusal(mustHave(request ?? undefined), facts)).toBeNull();
    const later = { kind: "token", token: "abc", seq: null, atMs: 100.4 } as const;
    expect(returnRefusal(later, facts)).toContain("100.4");
  });
});

describe("a token", () => {
  it("is 122 random bits (RFC 9562 section 5.4), another one for each connection", () => {
    const { join } = createRig();
    const tokens = [1, 2].map(() => mustHave(join("format=none").listener.eventsOf("hello")[0]).resume_token);
    for (const token of tokens)
      expect(token).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(new Set(tokens).size).toBe(2);
  });
});

describe("the id of a server-sent event", () => {
  it("says from when", () => {
    expect(parseLastEventId("abc:3")).toEqual({ kind: "event", epoch: "abc", seq: 3 });
  });

  it.each(["", "abc", "abc:", ":1", "abc:-1", "abc:1:2", "a b:1"])("%j is refused", (id) => {
    expect(() => parseLastEventId(id)).toThrow("expected {epoch}:{seq}");
  });
});

describe("whenever and however often it is cut off", () => {
  // Of 60 ms frames 15 and the time away less the lead are what is kept, at most: more is a gap.
  const cuts = fc.array(
    fc.record({
      listener: fc.nat({ max: 1 }),
      afterMs: fc.integer({ min: 0, max: 700 }),
      lostMessages: fc.nat({ max: 15 }),
      awayMs: fc.integer({ min: 0, max: 1200 }),
    }),
    { minLength: 1, maxLength: 5 },
  );

  it("what a listener got, put together, is the whole", () => {
    fc.assert(
      fc.property(
        cuts,
        fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 20 }),
        fc.constantFrom(0, 130, 500),
        fc.boolean(),
        (plan, chunkSizes, leadMs, hasOthers) => {
          const rig = quietRig();
          const queries = [
            `${ULAW}&lead_ms=${leadMs}`,
            `role=listener&format=pcm_16000&frame_ms=${hasOthers ? 40 : 60}&lead_ms=300`,
          ];
          const speaker = rig.join("role=speaker&events=none");
          const listeners = queries.map((query) => new ScriptedListener(rig, query));
          const references = hasOthers ? queries.map((query) => new ScriptedListener(rig, query)) : [];
          speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
          const request = mustHave(rig.requests[0]);
          const audio = audioOf("pcm_16000", 3000, 0);
          request.head();
          for (let at = 0, turn = 0; at < audio.byteLength; turn += 1) {
            const bytes = mustHave(chunkSizes[turn % chunkSizes.length]) * 32;
            const fromMs = at / 32;
            const letter = TEXT[turn % TEXT.length] ?? " ";
            const isTimed = turn < TEXT.length;
            request.chunk(
              audio.subarray(at, at + bytes),
              isTimed ? { alignment: evenAlignment(letter, 1, fromMs) } : {},
            );
            at += bytes;
          }
          request.handlers.end();
          for (const { listener, afterMs, lostMessages, awayMs } of plan) {
            const one = mustHave(listeners[listener]);
            run(rig, afterMs);
            one.cutOff(Math.max(1, one.sentCount - lostMessages));
            run(rig, awayMs);
            one.comeBack();
          }
          run(rig, 8000);
          for (const [index, one] of listeners.entries()) {
            one.read();
            const reference = references[index]?.read();
            const frameMs = one.hello.audio?.frame_ms ?? 0;
            // Of events that are gone it is not known who wanted them: a listener may get some that it would not
            // have got. What it did get is compared below.
            expect(one.gaps.filter((gap) => gap.frames > 0)).toEqual([]);
            expect(one.frames.map((frame) => frame.atMs)).toEqual(
              one.frames.map((_, place) => place * frameMs),
            );
            expect(one.frames.length).toBe(3000 / frameMs);
            if (reference !== undefined) {
              expect(one.audio.equals(reference.audio)).toBe(true);
              expect(one.seqs).toEqual(reference.seqs);
            }
            expect(unique(one.seqs)).toBe(true);
          }
          const pcm = mustHave(listeners[1]);
          expect(pcm.audio.equals(Buffer.from(audio))).toBe(true);
          expect(mustHave(listeners[0]).seqs).toEqual(pcm.seqs);
        },
      ),
      { numRuns: 60 },
    );
  });
});
