/** One that joins in the middle: it learns what is being said and the cue that stands, and is in step from there. */
import { describe, expect, it } from "vitest";
import type { CueEvent } from "../../../../src/protocol/events.ts";
import { countingUlaw, createRig, evenAlignment, TEST_SETTINGS } from "../../../helpers/session-rig.ts";
import { ScriptedListener } from "../scripted-listener.ts";
import { Answering, SPLICES } from "../scripted-speech.ts";

const TEXT = "The first sentence is here. The second one comes after it. The third one is the last of all.";
const PER_LETTER_MS = 40;
const SPEECH_MS = TEXT.length * PER_LETTER_MS;
type Rig = ReturnType<typeof createRig>;

function run(rig: Rig, ms: number): void {
  for (let passed = 0; passed < ms; passed += 5) rig.clock.advance(5);
}

function stage(events: string, aheadMs = TEST_SETTINGS.aheadMs) {
  const rig = createRig({ maxListeners: 2000, graceMs: 60_000, aheadMs });
  const speaker = rig.join("role=speaker&events=none");
  const query = `role=listener&format=ulaw_8000&events=${events}`;
  const first = new ScriptedListener(rig, query);
  const say = (utteranceId: string, fromMs = 0): void => {
    const count = rig.requests.length;
    speaker.send({ type: "speak", text: TEXT, voice_id: "v", utterance_id: utteranceId });
    const request = rig.requests[count];
    if (request === undefined) throw new Error("No request was opened");
    request.head();
    request.chunk(countingUlaw(SPEECH_MS, fromMs), { alignment: evenAlignment(TEXT, PER_LETTER_MS) });
    request.handlers.end();
  };
  return { rig, query, first, say };
}

describe("a late joiner", () => {
  it("gets hello with its audio, the running utterance, and is in step", () => {
    const { rig, query, first, say } = stage("words,characters");
    say("u");
    run(rig, 1000);
    const late = rig.join(query);
    expect(late.listener.events.slice(0, 2)).toMatchObject([
      { type: "hello", audio: { codec: "ulaw", frame_ms: 20, frame_bytes: 160, start_ms: 1000 } },
      {
        type: "utterance.started",
        utterance_id: "u",
        start_ms: 0,
        voice_ids: ["v"],
        source_format: "ulaw_8000",
      },
    ]);
    run(rig, SPEECH_MS);
    expect(Buffer.concat(late.listener.frames).equals(countingUlaw(SPEECH_MS - 1000, 1000))).toBe(true);
    const emitted = late.listener.eventsOf("words").map((event) => event.seq);
    const words = first.read().events.filter((event) => event.type === "words");
    expect(emitted).toEqual(words.filter((event) => event.at_ms >= 1000).map((event) => event.seq));
    expect(late.listener.eventsOf("utterance.done")).toHaveLength(1);
  });

  it("gets the cue that stands and every one behind it, none twice, whenever it comes", () => {
    const { rig, query, first, say } = stage("cues");
    say("u");
    const joined = [];
    for (let atMs = 0; atMs < SPEECH_MS; atMs += 20) {
      joined.push({ atMs, late: rig.join(query) });
      run(rig, 20);
    }
    run(rig, 1000);
    const cues = first.read().events.flatMap((event) => (event.type === "cue" ? [event] : []));
    expect(cues.length).toBeGreaterThanOrEqual(3);
    // Some join at the very moment a cue begins.
    expect(cues.filter((cue) => cue.start_ms > 0 && cue.start_ms % 20 === 0).length).toBeGreaterThan(0);
    for (const { atMs, late } of joined) {
      const got = late.listener.eventsOf("cue").map((cue) => cue.start_ms);
      const wanted = cues.filter((cue) => cue.end_ms > atMs).map((cue) => cue.start_ms);
      expect({ atMs, got }).toEqual({ atMs, got: wanted });
      const started = late.listener.eventsOf("utterance.started");
      expect(started).toHaveLength(1);
    }
  });

  it.each([
    ["of a piece that has come whole", "words", 200, 1e6],
    ["of a piece that is still coming", "words", 200, 400],
    ["of pieces that others have been sent long before", "words", 8000, 1e6],
    ["where nobody had asked for words", "characters", 200, 700],
  ])(
    "gets the cues that it would have got if they had been asked for before: %s",
    (_name, events, leadMs, chunkMs) => {
      const text = `${TEXT} And a [link](https://x.example) to a fourth, in «other» marks. VW is the fifth one here.`;
      const perLetterMs = 30;
      const stageOf = (kinds: string) => {
        const rig = createRig({ aheadMs: 1000, graceMs: 60_000, ...SPLICES });
        rig.join(`format=ulaw_8000&events=${kinds}&lead_ms=${leadMs}`).send({
          type: "speak",
          text,
          voice_id: "v",
          clean: ["markdown"],
          replacements: [{ from: "VW", to: "people's car" }],
        });
        return { rig, answering: new Answering(rig, { msPerChar: perLetterMs, leadMs: 120, chunkMs }) };
      };
      const all = stageOf("cues");
      const watching = all.rig.join("format=none&events=cues");
      all.answering.run(9000);
      const cues = watching.listener.eventsOf("cue");
      expect(cues.length).toBeGreaterThanOrEqual(5);
      for (let atMs = 40; atMs < 5050; atMs += 130) {
        const { rig, answering } = stageOf(events);
        answering.run(atMs);
        const late = rig.join("format=ulaw_8000&events=cues");
        const joinedMs = late.listener.eventsOf("hello")[0]?.at_ms ?? 0;
        answering.run(9000 - atMs);
        const emitted = (cue: CueEvent) => ({ ...cue, seq: 0, at_ms: 0 });
        const wanted = cues.filter((cue) => cue.end_ms > joinedMs).map(emitted);
        expect({ atMs, cues: late.listener.eventsOf("cue").map(emitted) }).toEqual({ atMs, cues: wanted });
      }
    },
  );

  it("is a file of captions, too: it begins with the cue that stands", () => {
    const { rig, say, first } = stage("words");
    say("u");
    run(rig, 1500);
    const record = rig.sessions.open("s").captionsOf({ profile: "web", mode: "roll-up" });
    run(rig, SPEECH_MS);
    const texts = record.cues.map((cue) => cue.lines.at(-1)?.text);
    expect(texts).toEqual(["The second one comes after it.", "The third one is the last of all."]);
    expect(first.read().events.filter((event) => event.type === "cue")).toEqual([]);
  });

  it("gets captions from the next segment on where nobody had asked for times", () => {
    const rig = createRig({ aheadMs: 1000, graceMs: 60_000 });
    const { send } = rig.join("format=ulaw_8000&events=none");
    const answering = new Answering(rig, { msPerChar: 40 });
    send({ type: "text", text: "Nobody has asked for the times of this one. ", voice_id: "v" });
    send({ type: "flush" });
    answering.run(500);
    const late = rig.join("format=ulaw_8000&events=cues");
    send({ type: "text", text: "This one comes with its captions." });
    send({ type: "end" });
    answering.run(6000);
    const lines = late.listener.eventsOf("cue").flatMap((cue) => cue.lines.map((line) => line.text));
    expect(lines).toEqual(["This one comes with its captions."]);
  });

  it("gets each cue once where others get all long before it is due, and cues are known late", () => {
    const letters = 4;
    for (let atMs = 40; atMs < SPEECH_MS; atMs += 60) {
      const { rig, query, first } = stage("cues,words", 5000);
      rig.join("role=listener&format=pcm_16000&lead_ms=5000&events=none");
      const speaker = rig.join("role=speaker&events=none");
      speaker.send({ type: "speak", text: TEXT, voice_id: "v", utterance_id: "u" });
      const request = rig.requests[0];
      if (request === undefined) throw new Error("No request was opened");
      request.head();
      const joined: ReturnType<Rig["join"]>[] = [];
      for (let at = 0; at < TEXT.length + SPEECH_MS / 20 + 50; at += letters) {
        const piece = TEXT.slice(at, at + letters);
        const fromMs = at * PER_LETTER_MS;
        const audio = new Uint8Array(piece.length * PER_LETTER_MS * 32).fill(at % 251);
        if (piece !== "") {
          request.chunk(audio, { alignment: evenAlignment(piece, PER_LETTER_MS, fromMs) });
          if (at + letters >= TEXT.length) request.handlers.end();
        }
        for (let passed = 0; passed < 80; passed += 5) {
          if (rig.clock.nowMs() === 1000 + atMs) joined.push(rig.join(query));
          rig.clock.advance(5);
        }
      }
      const [late] = joined;
      const playheadMs = late?.listener.eventsOf("hello")[0]?.at_ms ?? 0;
      const cues = first.read().events.flatMap((event) => (event.type === "cue" ? [event] : []));
      expect(cues.length).toBeGreaterThanOrEqual(3);
      const got = late?.listener.eventsOf("cue").map((cue) => cue.start_ms);
      const wanted = cues.filter((cue) => cue.end_ms > playheadMs).map((cue) => cue.start_ms);
      expect({ atMs, got }).toEqual({ atMs, got: wanted });
    }
  });

  it("before the first word, and between two utterances, gets what follows once", () => {
    const { rig, query, say } = stage("words");
    say("a");
    const early = rig.join(query);
    run(rig, SPEECH_MS + 500);
    const between = rig.join(query);
    say("b", SPEECH_MS);
    run(rig, SPEECH_MS + 500);
    const ids = (events: readonly { utterance_id: string }[]) => events.map((event) => event.utterance_id);
    expect(ids(early.listener.eventsOf("utterance.started"))).toEqual(["a", "b"]);
    expect(ids(between.listener.eventsOf("utterance.started"))).toEqual(["b"]);
    expect(ids(between.listener.eventsOf("utterance.done"))).toEqual(["b"]);
    expect(Buffer.concat(between.listener.frames).equals(countingUlaw(SPEECH_MS, SPEECH_MS))).toBe(true);
  });

  it("is cut off at once, comes back, and has every event and frame once", () => {
    for (let atMs = 100; atMs < 2000; atMs += 130) {
      for (const messages of [1, 2, 3, 5]) {
        const { rig, query, say } = stage("words,characters,cues");
        say("u");
        run(rig, atMs);
        const late = new ScriptedListener(rig, query);
        const steady = new ScriptedListener(rig, query);
        late.cutOff(messages);
        run(rig, 250);
        late.comeBack();
        run(rig, SPEECH_MS + 500);
        steady.read();
        late.read();
        const behind = (one: ScriptedListener) => one.seqs.filter((seq) => seq > steady.hello.seq);
        expect(behind(late)).toEqual(behind(steady));
        expect(late.audio.equals(steady.audio)).toBe(true);
        expect(late.gaps).toEqual([]);
      }
    }
  });
});
