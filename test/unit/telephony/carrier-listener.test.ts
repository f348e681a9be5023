/** What a call is sent and when: cuts, marks, what a carrier holds up, what it is too slow for. */
import { describe, expect, it, vi } from "vitest";
import { speak as say } from "../../../src/session/carry-out.ts";
import { countingUlaw, evenAlignment } from "../../helpers/session-rig.ts";
import { type CallRigOptions, createCallRig } from "./call-rig.ts";
import { type TinyOptions, tinyDialect } from "./tiny-dialect.ts";

const TEXT = "alpha bravo charlie delta echo foxtrot golf hotels";
const MS_PER_CHARACTER = 50;
const TEXT_MS = TEXT.length * MS_PER_CHARACTER;

/** A session with a speaker and a call, and an upstream that answers every request with all of its text at once. */
function createStage(options: TinyOptions = {}, rigOptions: CallRigOptions = {}) {
  const rig = createCallRig(rigOptions);
  const speaker = rig.join("role=speaker&events=words");
  const phone = rig.dial(tinyDialect(options));
  phone.start();
  const speak = (utterance_id: string, text = TEXT): void => {
    speaker.send({ type: "speak", text, utterance_id, voice_id: "v" });
  };
  let answered = 0;
  const answer = (): void => {
    for (; answered < rig.requests.length; answered += 1) {
      const request = rig.requests[answered];
      request?.head();
      request?.chunk(countingUlaw(TEXT_MS), { alignment: evenAlignment(TEXT, MS_PER_CHARACTER) });
      request?.handlers.end();
    }
  };
  const played = (name: string | undefined): void => phone.say({ on: "played", name });
  return { ...rig, speaker, phone, speak, answer, played };
}

describe("events", () => {
  it("reach a call as they are: where nobody has a socket, no JSON of them is made or read", () => {
    const rig = createCallRig();
    const phone = rig.dial(tinyDialect());
    phone.start();
    const session = rig.sessions.get("s");
    const cues: unknown[] = [];
    session
      .captionsOf({ profile: "web", mode: "pop-on" })
      .follow({ cues: (settled) => cues.push(...settled), end: () => undefined });
    const [made, read] = [vi.spyOn(JSON, "stringify"), vi.spyOn(JSON, "parse")];
    try {
      say(session, { type: "speak", text: TEXT, voice_id: "v" });
      session.textChanged();
      rig.requests[0]?.head();
      rig.requests[0]?.chunk(countingUlaw(TEXT_MS), { alignment: evenAlignment(TEXT, MS_PER_CHARACTER) });
      rig.requests[0]?.handlers.end();
      rig.clock.advance(1000);
      session.interruptions.interrupt(undefined);
      expect(phone.line.sent.at(-1)).toBe("clear");
      expect(cues).toHaveLength(1);
      expect([made.mock.calls, read.mock.calls]).toEqual([[], []]);
    } finally {
      made.mockRestore();
      read.mockRestore();
    }
  });
});

describe("an interruption", () => {
  it("clears in the very call that interrupts, once for all utterances that it cuts", () => {
    const stage = createStage();
    stage.speak("a");
    stage.speak("b");
    stage.answer();
    stage.clock.advance(1000);
    stage.speaker.send({ type: "interrupt" });
    expect(stage.phone.line.sent.filter((wire) => wire === "clear")).toHaveLength(1);
    expect(stage.phone.line.sent.at(-1)).toBe("clear");
    expect(stage.speaker.listener.eventsOf("interrupted").map((event) => event.utterance_id)).toEqual([
      "a",
      "b",
    ]);
    expect(stage.calls.stats.of("twilio").clears).toBe(1);
    const { length } = stage.phone.line.sent;
    stage.clock.advance(5000);
    expect(stage.phone.line.sent).toHaveLength(length);
  });

  it("an interruption of speech that was not sent clears nothing", () => {
    const stage = createStage();
    stage.speak("a");
    stage.speaker.send({ type: "interrupt" });
    expect(stage.phone.line.sent).toEqual([]);
    expect(stage.speaker.listener.eventsOf("interrupted")).toHaveLength(1);
  });

  it("the next utterance follows the clear, and its marks stand where it does", () => {
    const stage = createStage();
    stage.speak("a");
    stage.answer();
    stage.clock.advance(1000);
    stage.speaker.send({ type: "interrupt" });
    const nextMs = stage.speaker.listener.eventsOf("interrupted")[0]?.next_ms ?? Number.NaN;
    const sentBefore = stage.phone.line.sent.length;
    stage.speak("b");
    stage.answer();
    stage.clock.advance(10);
    const [audio, mark] = stage.phone.line.sent.slice(sentBefore);
    expect([audio, mark]).toEqual(["audio 1", expect.stringMatching(/^mark /)]);
    stage.played(String(mark).slice("mark ".length));
    stage.speaker.send({ type: "interrupt" });
    const heard = stage.speaker.listener.eventsOf("interrupted")[1];
    // The first frame of the second utterance has been played: its place is behind the cut.
    expect(heard?.heard).toMatchObject({ ms: 20, source: "mark" });
    expect(heard?.at_ms).toBe(nextMs + 20);
  });
});

describe("marks", () => {
  it("that come back make the receipt the carrier's own word, whatever was sent", () => {
    const stage = createStage();
    stage.speak("a");
    stage.answer();
    // The carrier is 400 ms late: when 1500 ms were due, it has played 1100.
    const lateMs = 400;
    stage.clock.advance(1500);
    // Behind the first frame, then at 120, 220 and so on.
    const index = Math.floor((1500 - lateMs - 20) / 100);
    const markMs = 20 + index * 100;
    stage.played(stage.phone.line.marks[index]);
    stage.speaker.send({ type: "interrupt" });
    const [receipt] = stage.speaker.listener.eventsOf("interrupted");
    expect(receipt?.heard).toMatchObject({ ms: markMs, source: "mark" });
    expect(TEXT.slice(0, receipt?.heard.end)).toBe(receipt?.heard.text);
    expect(receipt?.heard.end).toBe(Math.floor(markMs / MS_PER_CHARACTER));
  });

  it("go on with the clock between two of them", () => {
    const stage = createStage();
    stage.speak("a");
    stage.answer();
    stage.clock.advance(1000);
    stage.played("m4");
    stage.clock.advance(60);
    stage.speaker.send({ type: "interrupt" });
    expect(stage.speaker.listener.eventsOf("interrupted")[0]?.heard).toMatchObject({
      ms: 380,
      source: "mark",
    });
  });

  it("marks from before a cut count for nothing, though they come back behind it", () => {
    const stage = createStage();
    stage.speak("a");
    stage.answer();
    stage.clock.advance(1000);
    const [, , early] = stage.phone.line.marks;
    const late = stage.phone.line.marks.at(-1);
    stage.played(early);
    stage.speaker.send({ type: "interrupt" });
    stage.played(late);
    expect(stage.calls.stats.of("twilio").played).toBe(1);
    stage.speak("b");
    stage.answer();
    stage.clock.advance(300);
    stage.speaker.send({ type: "interrupt" });
    const receipts = stage.speaker.listener.eventsOf("interrupted");
    // By the one mark that counts the carrier is 780 ms late: of the second utterance nothing was heard.
    expect(receipts.map((receipt) => [receipt.heard.ms, receipt.heard.source])).toEqual([
      [220, "mark"],
      [0, "mark"],
    ]);
  });

  it("that were never asked for are nothing", () => {
    const stage = createStage();
    stage.played("m1");
    stage.speak("a");
    stage.answer();
    stage.clock.advance(500);
    stage.played("never");
    stage.speaker.send({ type: "interrupt" });
    expect(stage.speaker.listener.eventsOf("interrupted")[0]?.heard.source).toBe("estimate");
  });

  it("one that comes back speaks for those before it", () => {
    const stage = createStage();
    stage.speak("a");
    stage.answer();
    stage.clock.advance(500);
    stage.played("m3");
    stage.played("m2");
    expect(stage.calls.stats.of("twilio").played).toBe(1);
  });

  it("are not asked of a carrier that has none", () => {
    const stage = createStage({ markMs: 0 });
    stage.speak("a");
    stage.answer();
    stage.clock.advance(TEXT_MS + 500);
    expect([stage.phone.line.marks, stage.phone.line.frames]).toEqual([[], TEXT_MS / 20]);
  });

  it("a carrier that answers none is forgotten the oldest of", () => {
    const stage = createStage({ markMs: 20 });
    for (const id of ["a", "b", "c"]) {
      stage.speak(id);
      stage.answer();
      stage.clock.advance(TEXT_MS + 100);
      stage.answer();
    }
    const { marks } = stage.phone.line;
    expect(marks.length).toBeGreaterThan(300);
    stage.played(marks[10]);
    expect(stage.calls.stats.of("twilio").played).toBe(0);
    stage.played(marks.at(-1));
    expect(stage.calls.stats.of("twilio").played).toBe(1);
  });
});

describe("a carrier with a least size", () => {
  it("gets no silence in the middle of an utterance whose upstream is slow", () => {
    const stage = createStage({ piece: 7 });
    stage.speak("a");
    const [request] = stage.requests;
    request?.head();
    request?.chunk(countingUlaw(200), { alignment: evenAlignment(TEXT.slice(0, 4), MS_PER_CHARACTER) });
    stage.clock.advance(1000);
    // Ten frames: one piece, and three that wait for the rest of theirs.
    expect(stage.phone.line.frames).toBe(7);
    expect(stage.phone.line.sent.filter((wire) => String(wire).startsWith("rest"))).toEqual([]);
  });

  it("gets the rest of an utterance with its last frame, not when it has been played", () => {
    const stage = createStage({ piece: 7 });
    stage.speak("a");
    stage.answer();
    stage.clock.advance(TEXT_MS - 100);
    const frames = TEXT_MS / 20;
    const rest = stage.phone.line.sent.findIndex((wire) => wire === `rest ${frames % 7}`);
    expect(rest).toBeGreaterThan(0);
    expect(stage.phone.line.sent.slice(rest)).toEqual([`rest ${frames % 7}`, expect.stringMatching(/^mark/)]);
    expect(stage.phone.line.frames).toBe(frames);
  });
});

describe("a carrier that is full", () => {
  it("gets what waited when it goes on, in order and once", () => {
    const stage = createStage();
    stage.speak("a");
    stage.answer();
    stage.clock.advance(500);
    stage.phone.say({ on: "hold" });
    const before = stage.phone.line.sent.length;
    stage.clock.advance(1000);
    expect(stage.phone.line.sent).toHaveLength(before);
    stage.phone.say({ on: "goOn" });
    stage.clock.advance(TEXT_MS);
    expect(stage.phone.line.frames).toBe(TEXT_MS / 20);
    const { marks } = stage.phone.line;
    expect(marks).toEqual(marks.map((_, index) => `m${index + 1}`));
  });

  it("is cleared at once, and what waited is gone", () => {
    const stage = createStage();
    stage.speak("a");
    stage.answer();
    stage.clock.advance(500);
    stage.phone.say({ on: "hold" });
    stage.clock.advance(500);
    stage.speaker.send({ type: "interrupt" });
    expect(stage.phone.line.sent.at(-1)).toBe("clear");
    const { length } = stage.phone.line.sent;
    stage.phone.say({ on: "goOn" });
    expect(stage.phone.line.sent).toHaveLength(length);
  });

  it("is not given up where so much waited that it fell behind: it hears the rest", () => {
    // Room for half a second of this carrier's words.
    const stage = createStage({}, { settings: { maxOutboxBytes: 400 } });
    stage.speak("a");
    stage.answer();
    stage.clock.advance(300);
    stage.phone.say({ on: "hold" });
    stage.clock.advance(1000);
    stage.phone.say({ on: "goOn" });
    stage.clock.advance(TEXT_MS);
    expect(stage.counters.framesDropped).toBeGreaterThan(0);
    expect(stage.phone.line.frames + stage.counters.framesDropped).toBe(TEXT_MS / 20);
  });
});

describe("a carrier that stops reading", () => {
  it("misses audio like every live listener, and is heard right again: its marks stand where they should", () => {
    const stage = createStage();
    stage.speak("a");
    stage.answer();
    stage.clock.advance(300);
    const early = stage.phone.line.frames;
    stage.phone.line.buffered = 1_000_000;
    stage.clock.advance(1000);
    const during = stage.phone.line.frames;
    // One batch finds the socket full, the others are not even tried.
    expect(during - early).toBeLessThan(10);
    const marksBefore = stage.phone.line.marks.length;
    stage.phone.line.buffered = 0;
    stage.phone.call.drained();
    expect(stage.counters.framesDropped).toBeGreaterThan(30);
    stage.clock.advance(200);
    const first = stage.phone.line.marks[marksBefore];
    stage.played(first);
    stage.speaker.send({ type: "interrupt" });
    const receipt = stage.speaker.listener.eventsOf("interrupted")[0];
    const sentMs = (during + stage.counters.framesDropped + 1) * 20;
    expect(receipt?.heard.source).toBe("mark");
    expect(receipt?.heard.ms).toBe(sentMs);
  });
});
