/** Receipts by what the listeners say they have played: the least is emitted, and each of them where they differ. */
import { describe, expect, it } from "vitest";
import { stage } from "./spelling.ts";

const TEXT = "alpha bravo charlie delta echo";
const code = (expected: string, field: string) => expect.objectContaining({ code: expected, field });

describe("receipts of several listeners", () => {
  it("name the least that anybody heard, and each who said so", () => {
    const rig = stage();
    const slow = rig.join("format=ulaw_8000");
    const silent = rig.join("format=ulaw_8000");
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(800);
    rig.send({ type: "played", at_ms: 740 });
    slow.send({ type: "played", at_ms: 460 });
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    const idOf = (listener: typeof slow.listener) => listener.eventsOf("hello")[0]?.listener_id;
    expect(receipt?.heard).toEqual({
      text: "alpha ",
      end: 6,
      ms: 460,
      source: "ack",
      bound_ms: 40,
    });
    expect(receipt?.unheard_text).toBe(TEXT.slice(6));
    expect(receipt?.listeners).toEqual([
      {
        listener_id: idOf(rig.listener),
        text: TEXT.slice(0, 12),
        end: 12,
        ms: 740,
        source: "ack",
        bound_ms: 40,
      },
      { listener_id: idOf(slow.listener), text: "alpha ", end: 6, ms: 460, source: "ack", bound_ms: 40 },
    ]);
    // Everybody is emitted the same, those too who said nothing.
    expect(silent.listener.eventsOf("interrupted")).toEqual([receipt]);
    expect(new Set([rig.listener, slow.listener, silent.listener].map(idOf)).size).toBe(3);
    expect(rig.listener.eventsOf("utterance.done")[0]).toMatchObject({ characters_spoken: 6 });
  });

  it("are one where all heard the same", () => {
    const rig = stage();
    const other = rig.join("format=ulaw_8000");
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(800);
    rig.send({ type: "played", at_ms: 700 });
    other.send({ type: "played", at_ms: 700 });
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]).not.toHaveProperty("listeners");
  });

  it.each([
    ["captions that are read ahead", "role=listener&format=none&events=words", 1000],
    ["one that gets all at once", "role=listener&format=ulaw_8000&pace=burst", 1000],
  ])("of %s do not decide what a player heard that says nothing", (_, query, atMs) => {
    const rig = stage("format=ulaw_8000");
    const ahead = rig.join(query);
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(800);
    ahead.send({ type: "played", at_ms: atMs });
    expect(ahead.listener.eventsOf("error")).toEqual([]);
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    expect(receipt?.heard).toMatchObject({ ms: 800, source: "estimate" });
  });

  it("receipts of captions decide where nobody else is, or the player is not behind them", () => {
    for (const [query, ms] of [
      ["role=speaker&events=none", 980],
      ["format=ulaw_8000", 400],
    ] as const) {
      const rig = stage(query);
      const captions = rig.join("role=listener&format=none&events=words");
      rig.speak(TEXT, "u");
      rig.answer(0);
      rig.clock.advance(800);
      captions.send({ type: "played", at_ms: ms });
      rig.send({ type: "interrupt" });
      const [receipt] = rig.listener.eventsOf("interrupted");
      expect(receipt?.heard).toMatchObject({ ms, source: "ack" });
    }
  });

  it("count no listener that has left", () => {
    const rig = stage();
    const gone = rig.join("format=ulaw_8000");
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(800);
    rig.send({ type: "played", at_ms: 700 });
    gone.send({ type: "played", at_ms: 100 });
    gone.session.leave(gone.participant);
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    expect(receipt?.heard.ms).toBe(700);
    expect(receipt).not.toHaveProperty("listeners");
  });

  it("name at most 16 listeners, and the least among all", () => {
    const rig = stage("format=ulaw_8000", { maxListeners: 40 });
    const others = Array.from({ length: 20 }, () => rig.join("role=listener&format=ulaw_8000"));
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(1200);
    for (const [index, { send }] of others.entries()) send({ type: "played", at_ms: 1150 - index * 50 });
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    expect(receipt?.listeners).toHaveLength(16);
    expect(receipt?.heard.ms).toBe(1150 - 19 * 50);
    const emitted = receipt?.listeners?.map((listener) => listener.ms) ?? [];
    expect(emitted).toContain(receipt?.heard.ms);
  });

  it("count the offsets of each in the unit that the reader asked for", () => {
    const rig = stage();
    const reader = rig.join("format=ulaw_8000&offsets=cp");
    rig.speak("\u{1f600} bravo charlie", "u");
    rig.answer(0);
    rig.clock.advance(700);
    rig.send({ type: "played", at_ms: 600 });
    reader.send({ type: "played", at_ms: 400 });
    rig.send({ type: "interrupt" });
    for (const [listener, by] of [
      [rig.listener, 0],
      [reader.listener, 1],
    ] as const) {
      const [receipt] = listener.eventsOf("interrupted");
      for (const heard of [receipt?.heard, ...(receipt?.listeners ?? [])]) {
        expect(heard?.end).toBe((heard?.text.length ?? 0) - by);
      }
    }
  });
});

describe("how it is known what was heard", () => {
  it("by a mark that was played", () => {
    const rig = stage();
    rig.speak("golf hotel", "a");
    rig.speak(TEXT, "b");
    rig.answer(0);
    rig.answer(1);
    const { listener, send } = rig;
    rig.clock.advance(0);
    // Stands at the end of "b"; a first one at the end of "a".
    send({ type: "mark", name: "end" });
    rig.clock.advance(500);
    expect(() => send({ type: "played", mark: "end" })).toThrow(code("invalid_field", "mark"));
    rig.clock.advance(1500);
    expect(listener.eventsOf("mark")).toMatchObject([{ name: "end", at_ms: 2000 }]);
    send({ type: "played", mark: "end" });
    rig.speak(TEXT, "c");
    rig.answer(2);
    rig.clock.advance(320);
    send({ type: "interrupt" });
    const heard = listener.eventsOf("interrupted")[0]?.heard;
    expect(heard).toMatchObject({ source: "mark", bound_ms: 40, text: "alpha " });
    expect(heard?.ms).toBeCloseTo(320, 3);
  });

  it("by marks and by times side by side: the least has its own source", () => {
    const rig = stage();
    const other = rig.join("format=ulaw_8000");
    rig.send({ type: "mark", name: "start" });
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(400);
    rig.send({ type: "played", at_ms: 380 });
    other.send({ type: "played", mark: "start" });
    rig.clock.advance(100);
    rig.send({ type: "interrupt" });
    const [receipt] = rig.listener.eventsOf("interrupted");
    expect(receipt?.heard).toMatchObject({ source: "mark", ms: 100 });
    expect(receipt?.listeners?.map(({ source, ms }) => [source, ms])).toEqual([
      ["ack", 480],
      ["mark", 100],
    ]);
  });

  it.each([200, 700])("by the playhead where nobody said anything, within the lead (%d ms)", (leadMs) => {
    const rig = stage(`format=ulaw_8000&lead_ms=${leadMs}`);
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]?.heard).toMatchObject({
      source: "estimate",
      // And what a player rounds to.
      bound_ms: leadMs + 40,
      text: "alpha ",
    });
  });

  it("not by a word that is older than 2 s", () => {
    for (const [ageMs, source] of [
      [2000, "ack"],
      [2001, "estimate"],
    ] as const) {
      const rig = stage("format=ulaw_8000&lead_ms=200");
      rig.speak(TEXT.repeat(3), "u");
      rig.answer(0);
      rig.clock.advance(500);
      rig.send({ type: "played", at_ms: 300 });
      rig.clock.advance(ageMs);
      rig.send({ type: "interrupt" });
      const heard = rig.listener.eventsOf("interrupted")[0]?.heard;
      expect(heard?.source).toBe(source);
      expect(heard?.ms).toBeCloseTo(source === "ack" ? 300 + ageMs : 500 + ageMs, 3);
    }
  });

  it("not by silence: a player that waited while nothing was said has not gone on", () => {
    const rig = stage();
    rig.speak("golf", "a");
    rig.answer(0);
    rig.clock.advance(190);
    rig.send({ type: "played", at_ms: 90 });
    // 200 ms of speech, then a second of nothing.
    rig.clock.advance(1000);
    rig.speak(TEXT, "b");
    rig.answer(1);
    rig.clock.advance(420);
    rig.send({ type: "interrupt" });
    // Still 100 ms behind the playhead.
    expect(rig.listener.eventsOf("interrupted")[0]?.heard).toMatchObject({
      source: "ack",
      text: "alpha ",
      ms: 320,
    });
  });

  it.each([
    [130, 380],
    [1200, 400],
  ])(
    "%i ms later, with speech that ran dry after 100 ms, a late player has caught up to %i",
    (passedMs, ms) => {
      const rig = stage();
      rig.speak(TEXT, "u");
      rig.answer(0, { chars: 8 });
      rig.clock.advance(300);
      rig.send({ type: "played", at_ms: 250 });
      rig.clock.advance(passedMs);
      rig.send({ type: "interrupt" });
      expect(rig.listener.eventsOf("interrupted")[0]?.heard).toMatchObject({ source: "ack", ms });
    },
  );

  it("a player that gets everything at once goes on by its own clock", () => {
    const rig = stage("format=ulaw_8000&pace=burst");
    rig.speak(TEXT, "u");
    rig.answer(0, { chars: 24 });
    rig.send({ type: "played", at_ms: 100 });
    rig.clock.advance(500);
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]?.heard).toMatchObject({ source: "ack", ms: 600 });
  });

  it.each([
    ["before the utterance began", 0, ""],
    ["in the middle", 450, "alpha"],
  ])("a word from %s counts from its beginning", (_, atMs, text) => {
    const rig = stage();
    rig.speak("golf", "a");
    rig.speak(TEXT, "b");
    rig.answer(0);
    rig.answer(1);
    rig.clock.advance(500);
    rig.send({ type: "played", at_ms: atMs });
    rig.send({ type: "interrupt" });
    expect(rig.listener.eventsOf("interrupted")[0]).toMatchObject({ utterance_id: "b", heard: { text } });
  });
});

describe("resume by what a listener heard", () => {
  it("goes on from the word that the one furthest behind was in", () => {
    const rig = stage();
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(800);
    rig.send({ type: "played", at_ms: 420 });
    rig.send({ type: "interrupt" });
    rig.send({ type: "resume" });
    rig.clock.advance(5000);
    expect(rig.listener.eventsOf("utterance.resumed")).toMatchObject([{ start: 6 }]);
    expect(rig.requests).toHaveLength(1);
  });
});

describe("played is refused by name", () => {
  it("beyond what was sent to this connection, and for a mark that was not echoed", () => {
    const rig = stage("format=ulaw_8000&lead_ms=200");
    rig.join("format=none&pace=burst");
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(100);
    const sentMs = rig.listener.frames.length * 20;
    expect(() => rig.send({ type: "played", at_ms: sentMs })).not.toThrow();
    expect(() => rig.send({ type: "played", at_ms: sentMs + 1 })).toThrow(code("invalid_field", "at_ms"));
    expect(() => rig.send({ type: "played", mark: "nowhere" })).toThrow(code("invalid_field", "mark"));
  });

  it("behind the last event that this connection was sent", () => {
    const rig = stage("format=ulaw_8000&lead_ms=200");
    rig.speak(TEXT, "u");
    rig.answer(0);
    rig.clock.advance(100);
    const seq = Math.max(...rig.listener.events.map((event) => event.seq));
    expect(seq).toBeGreaterThan(0);
    expect(() => rig.send({ type: "played", at_ms: 20, seq })).not.toThrow();
    expect(() => rig.send({ type: "played", at_ms: 20, seq: seq + 1 })).toThrow(code("invalid_field", "seq"));
  });

  it("for a mark that is long forgotten", () => {
    const rig = stage();
    for (const name of ["a", "b", "c", "d"]) rig.send({ type: "mark", name });
    expect(() => rig.send({ type: "played", mark: "d" })).not.toThrow();
    expect(() => rig.send({ type: "played", mark: "a" })).toThrow(code("invalid_field", "mark"));
  });
});
