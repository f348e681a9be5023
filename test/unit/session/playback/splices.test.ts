import { describe, expect, it } from "vitest";
import { splicePauseMs } from "../../../../src/session/playback/splice.ts";
import { createRig } from "../../../helpers/session-rig.ts";
import { spliceStep } from "../../../helpers/splice-step.ts";
import {
  Answering,
  answer,
  heard,
  type Manner,
  requestAt,
  SPLICES,
  stretches,
  texts,
  toneOf,
  VOICE,
  wordsOf,
} from "../scripted-speech.ts";

const FORMATS = [
  ["ulaw_8000", "ulaw", 8],
  ["pcm_16000", "pcm", 16],
] as const;

/** Two segments that meet where `first` ends: the second is asked for while the first is heard. */
function two(
  first: string,
  given: {
    readonly manner?: Manner;
    readonly query?: string;
    readonly splices?: typeof SPLICES;
    readonly second?: string;
  } = {},
) {
  const { manner = {}, query = "format=ulaw_8000", splices = SPLICES, second = "Behind it" } = given;
  const rig = createRig({ ...splices, stallMs: 1e6, textIdleMs: 1e9 });
  const { send, listener } = rig.join(query);
  send({ type: "text", text: first, voice_id: VOICE, utterance_id: "u" });
  send({ type: "flush" });
  send({ type: "text", text: second });
  send({ type: "end" });
  new Answering(rig, { msPerChar: 30, ...manner }).run(8000);
  return { rig, listener };
}

const DONE = [{ outcome: "done" }];

describe("silence around an upstream's speech", () => {
  it.each(FORMATS)("%s: is taken off down to a little at both ends", (format, codec, perMs) => {
    const { listener } = two("Before it.", {
      manner: { leadMs: 300, tailMs: 400 },
      query: `format=${format}`,
      splices: { ...SPLICES, pauseSentenceMs: 0 },
    });
    const runs = stretches(heard(listener, codec), perMs);
    expect(runs.map((run) => run.isSound)).toEqual([false, true, false, true, false]);
    const lengths = runs.map((run) => Math.round(run.toMs - run.fromMs));
    expect(lengths[0]).toBe(20);
    // 60 ms behind the one, 20 ms before the other.
    expect(lengths[2]).toBe(80);
    const [done] = listener.eventsOf("utterance.done");
    expect(done?.end_ms).toBe(20 + 300 + 80 + 270 + 60);
    expect(done?.latency?.leading_silence_ms).toBe(300);
  });

  it.each(FORMATS)("%s: never more than the limit", (format, codec, perMs) => {
    const { listener } = two("Before it.", {
      manner: { leadMs: 300, tailMs: 400 },
      query: `format=${format}`,
      splices: { trimMs: 100, pauseClauseMs: 0, pauseSentenceMs: 0, pauseParagraphMs: 0 },
    });
    const [lead, , between] = stretches(heard(listener, codec), perMs).map((run) => run.toMs - run.fromMs);
    expect(lead).toBeGreaterThanOrEqual(200);
    expect(lead).toBeLessThanOrEqual(220);
    expect(between).toBeGreaterThanOrEqual(500);
    expect(between).toBeLessThanOrEqual(540);
  });

  it.each(FORMATS)("%s: with trimming 0 every byte is the upstream's own", (format) => {
    const { listener, rig } = two("Before it.", {
      query: `format=${format}`,
      manner: { leadMs: 40, tailMs: 50 },
      splices: { trimMs: 0, pauseClauseMs: 0, pauseSentenceMs: 0, pauseParagraphMs: 0 },
    });
    const said = texts(rig).map(
      (text) => toneOf(format, text, { msPerChar: 30, leadMs: 40, tailMs: 50 }).audio,
    );
    const audio = Buffer.concat(listener.frames);
    const whole = Buffer.concat(said);
    expect(audio.subarray(0, whole.length).equals(whole)).toBe(true);
  });

  it("with trimming 0 sounds that meet are left as they are too", () => {
    const { listener, rig } = two("Before it.", {
      splices: { trimMs: 0, pauseClauseMs: 0, pauseSentenceMs: 0, pauseParagraphMs: 0 },
    });
    const whole = Buffer.concat(texts(rig).map((text) => toneOf("ulaw_8000", text, { msPerChar: 30 }).audio));
    expect(Buffer.concat(listener.frames).subarray(0, whole.length).equals(whole)).toBe(true);
  });

  it.each([
    ["begins with", { second: '<break time="1s"/> Behind it', manner: { leadMs: 1000, tailMs: 60 } }, 1280],
    ["ends with", { first: 'Before it.<break time="1s" />', manner: { leadMs: 20, tailMs: 1000 } }, 1300],
    [
      "ends with, in ms",
      { first: "Before it. <break time='800ms'>\n", manner: { leadMs: 20, tailMs: 1000 } },
      1100,
    ],
  ])("a break that a text %s is heard whole, and the pause of a sentence besides", (_name, given, gapMs) => {
    const {
      first = "Before it. ",
      second = "Behind it",
      manner,
    } = { first: undefined, second: undefined, ...given };
    const { listener } = two(first, { second, manner });
    const [, , between] = stretches(heard(listener, "ulaw"), 8).map((run) =>
      Math.round(run.toMs - run.fromMs),
    );
    expect(between).toBe(gapMs);
  });

  it.each([
    ["pace=burst&events=none", 0],
    ["pace=burst", 0],
    ["lead_ms=1000&events=none", 0],
    ["lead_ms=0", 0],
    ["lead_ms=0&events=none", 0],
    ["pace=burst&events=none", 400],
  ])(
    "an end that is known late falls to nothing, and is trimmed, with %s and %i ms of silence",
    (query, tailMs) => {
      const rig = createRig({ ...SPLICES, stallMs: 1e6, textIdleMs: 1e9 });
      const { send, listener } = rig.join(`format=pcm_16000&${query}`);
      for (const text of ["Before it. ", "Behind it. "]) {
        send({ type: "text", text, voice_id: VOICE, utterance_id: "u" });
        send({ type: "flush" });
      }
      send({ type: "end" });
      for (const index of [0, 1]) {
        const open = requestAt(rig, index);
        const { audio } = toneOf("pcm_16000", texts(rig)[index] ?? "", { msPerChar: 30, tailMs });
        open.head();
        // As fast as it is spoken, or, where it ends with silence, in one go: nobody waits for that.
        const stepBytes = tailMs > 0 ? audio.length : 3200;
        for (let at = 0; at < audio.length; at += stepBytes) {
          open.chunk(audio.subarray(at, at + stepBytes));
          rig.clock.advance(100);
        }
        // All that may be taken was taken by then.
        rig.clock.advance(20);
        open.handlers.end();
        rig.clock.advance(300);
      }
      rig.clock.advance(3000);
      const pcm = heard(listener, "pcm");
      const lengths = stretches(pcm, 16).map((run) => Math.round(run.toMs - run.fromMs));
      // Where a listener waits for the next response, the pause is over. A response that begins with sound is taken for one with 20 ms of silence.
      if (query.includes("burst")) expect(lengths[1]).toBe(280);
      if (tailMs > 0) return;
      const steps = Array.from(pcm, (sample, index) => Math.abs(sample - (pcm[index - 1] ?? sample)));
      expect(Math.max(...steps)).toBeLessThan(12_000 * 2 * Math.PI * (440 / 16_000) * 1.05);
    },
  );

  it("a response that is all silence is spoken short, and the utterance ends", () => {
    const rig = createRig({ ...SPLICES });
    const { send, listener } = rig.join("format=ulaw_8000");
    send({ type: "speak", text: "Hush", voice_id: VOICE });
    requestAt(rig, 0).head();
    requestAt(rig, 0).chunk(new Uint8Array(8000).fill(0xff));
    requestAt(rig, 0).handlers.end();
    rig.clock.advance(3000);
    const [done] = listener.eventsOf("utterance.done");
    expect(done).toMatchObject({ outcome: "done", latency: { leading_silence_ms: null } });
    expect(done?.end_ms).toBeLessThan(1000);
  });

  it("silence that comes in small pieces and slowly is trimmed as well", () => {
    const rig = createRig({ ...SPLICES });
    const { send, listener } = rig.join("format=ulaw_8000");
    send({ type: "speak", text: "Slow", voice_id: VOICE });
    const { audio } = toneOf("ulaw_8000", "Slow", { msPerChar: 50, leadMs: 300 });
    requestAt(rig, 0).head();
    for (let at = 0; at < audio.length; at += 80) {
      requestAt(rig, 0).chunk(audio.subarray(at, at + 80));
      rig.clock.advance(10);
      if (at < 300 * 8) expect(listener.frames).toHaveLength(0);
    }
    requestAt(rig, 0).handlers.end();
    rig.clock.advance(1000);
    expect(listener.eventsOf("utterance.done")).toMatchObject([{ end_ms: 220 }]);
  });
});

describe("pauses between segments", () => {
  it.each([
    ["a full-width bracket", "（今日は。）", 300],
    ["corner brackets", "『今日は。』", 300],
    ["a lenticular bracket", "【今日は。】", 300],
    ["a half-width corner bracket", "｢今日は。｣ ", 300],
    ["full-width braces", "［今日は。］｛はい！｝", 300],
    ["double angle brackets", "《今日は。》", 300],
    ["a German quote", "„Ja, gut!“ ", 300],
    ["a French quote behind a space", "« Oui ! » ", 300],
    ["full-width quotes", "＂今日は。＂", 300],
    ["a closing tag", "<emphasis>Stop!</emphasis> ", 300],
    ["a closing tag and a quote", '"<lang xml:lang="de">Ja.</lang >" ', 300],
    ["an emoji", "This is fine! 😀 ", 300],
    ["emoji of many parts", "This is fine! 👍🏽👨‍👩‍👧❤️🇩🇪 ", 300],
    ["a keycap", "This is fine! 1️⃣#⃣ ", 300],
    ["a clause in a bracket", "（今日は、） ", 120],
    ["a clause and a tag", "<emphasis>Well,</emphasis> ", 120],
    ["a word and an emoji", "This is fine 😀 ", 0],
    ["a word in a tag", "<emphasis>Stop</emphasis> ", 0],
    ["an opening tag", "Well. Then <emphasis>", 0],
    ["a line end and a quote", "Before it\n” ", 300],
    ["a paragraph", "Before it）\n\n", 500],
  ])("follow the mark behind %s", (_name, text, wantedMs) => {
    expect(splicePauseMs(text, SPLICES)).toBe(wantedMs);
  });

  it.each([
    ["a sentence", "Before it. ", 300],
    ["a question in quotes", "“Before it?” ", 300],
    ["a Chinese sentence", "今日は。", 300],
    ["a line end", "Before it\n", 300],
    ["a paragraph", "Before it.\n\n", 500],
    ["a clause", "Before it, ", 120],
    ["a word", "Before it ", 0],
  ])("%s", (_name, first, wantedMs) => {
    for (const manner of [{}, { leadMs: 250, tailMs: 250 }, { leadMs: 10, tailMs: 30 }]) {
      const { listener } = two(first, { manner });
      const runs = stretches(heard(listener, "ulaw"), 8);
      const sounds = runs.filter((run) => run.isSound);
      const kept = Math.min(60, manner.tailMs ?? 0) + Math.min(20, manner.leadMs ?? 0);
      if (wantedMs === 0 && kept === 0) {
        expect(sounds).toHaveLength(1);
        continue;
      }
      const pauseMs = (sounds[1]?.fromMs ?? 0) - (sounds[0]?.toMs ?? 0);
      // The fades count for silence in part.
      expect(Math.abs(pauseMs - Math.max(wantedMs, kept))).toBeLessThanOrEqual(23);
      expect(listener.eventsOf("utterance.done")).toMatchObject(DONE);
    }
  });

  it.each([
    ["U.S. ", 300],
    ["well", 0],
    ["", 0],
    ["x: ", 120],
    ["x — ", 120],
    ["x.)\n \n ", 500],
    ["«Да.» ", 300],
    ["**Done.** ", 300],
  ])("splicePauseMs(%j) is %i", (text, ms) => {
    expect(splicePauseMs(text, SPLICES)).toBe(ms);
  });

  it("are not added where listeners are waiting already", () => {
    const { listener } = two("Before it.", { manner: { delayMs: 1500 } });
    const sounds = stretches(heard(listener, "ulaw"), 8).filter((run) => run.isSound);
    const gap = (sounds[1]?.fromMs ?? 0) - (sounds[0]?.toMs ?? 0);
    expect(sounds.length === 1 || gap <= 25).toBe(true);
  });

  it("are in what a burst listener gets, however late the second segment comes", () => {
    for (const delayMs of [0, 200]) {
      const { listener } = two("Before it.", { manner: { delayMs }, query: "format=ulaw_8000&pace=burst" });
      const sounds = stretches(heard(listener, "ulaw"), 8).filter((run) => run.isSound);
      const pauseMs = (sounds[1]?.fromMs ?? 0) - (sounds[0]?.toMs ?? 0);
      expect(Math.abs(pauseMs - 300)).toBeLessThanOrEqual(23);
    }
  });

  it("are not between utterances, and none is behind the last segment", () => {
    const rig = createRig({ ...SPLICES });
    const { send, listener } = rig.join("format=ulaw_8000");
    send({ type: "speak", text: "One here.", voice_id: VOICE });
    send({ type: "speak", text: "Two here.", voice_id: VOICE });
    new Answering(rig, { msPerChar: 20 }).run(3000);
    expect(listener.eventsOf("utterance.done").map((event) => [event.start_ms, event.end_ms])).toEqual([
      [0, 180],
      [180, 360],
    ]);
  });
});

describe("clicks", () => {
  it.each([
    ["where sounds meet", "Before it "],
    ["at a pause", "Before it. "],
  ])("are not heard %s", (_name, first) => {
    for (const [format, codec, perMs] of FORMATS) {
      const { listener } = two(first, { query: `format=${format}` });
      const pcm = heard(listener, codec);
      const sounds = stretches(pcm, perMs).filter((run) => run.isSound);
      const splices =
        sounds.length > 1 ? [sounds[0]?.toMs ?? 0, sounds[1]?.fromMs ?? 0] : [first.length * 30];
      for (const splice of splices) {
        const at = Math.round(splice * perMs);
        const near = 5 * perMs;
        expect(spliceStep(pcm.subarray(at - near, at), pcm.subarray(at, at + near))).toBeLessThanOrEqual(
          1.01,
        );
      }
    }
  });

  it("the raw splice of such tones would click: the measure sees it", () => {
    const { audio } = toneOf("pcm_16000", "abc", { msPerChar: 30 });
    const pcm = new Int16Array(audio.buffer, audio.byteOffset, audio.byteLength / 2);
    expect(spliceStep(new Int16Array(80), pcm.subarray(0, 80))).toBeGreaterThan(2);
  });
});

describe("times after trimming", () => {
  it.each([
    ["one chunk", {}],
    ["many chunks", { chunkMs: 40 }],
  ])("characters, words and the end stand where the sound is: %s", (_name, manner) => {
    const { listener } = two("Before it. ", {
      manner: { leadMs: 300, tailMs: 400, ...manner },
      query: "format=ulaw_8000&events=characters,words",
    });
    const sounds = stretches(heard(listener, "ulaw"), 8).filter((run) => run.isSound);
    const words = wordsOf(listener);
    expect(words.map((word) => word.text)).toEqual(["Before", "it", "Behind", "it"]);
    expect(Math.abs((words[0]?.start_ms ?? 0) - (sounds[0]?.fromMs ?? 0))).toBeLessThanOrEqual(1);
    expect(Math.abs((words[2]?.start_ms ?? 0) - (sounds[1]?.fromMs ?? 0))).toBeLessThanOrEqual(1);
    expect(Math.abs((words[3]?.end_ms ?? 0) - (sounds[1]?.toMs ?? 0))).toBeLessThanOrEqual(1);
    const times = listener
      .eventsOf("characters")
      .flatMap((event) => event.start_ms.flatMap((start, index) => [start, event.end_ms[index] ?? 0]));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    const [done] = listener.eventsOf("utterance.done");
    expect(times.at(-1)).toBeLessThanOrEqual(done?.end_ms ?? 0);
    expect(Math.abs((done?.end_ms ?? 0) - ((sounds[1]?.toMs ?? 0) + 60))).toBeLessThanOrEqual(1);
    expect((done?.end_ms ?? 0) + (done?.pad_ms ?? 0)).toBe(listener.frames.length * 20);
    expect(done?.timing).toBe("exact");
  });

  it("times that reach into silence that was taken off end with the audio", () => {
    const rig = createRig({ ...SPLICES });
    const { send, listener } = rig.join("format=ulaw_8000&events=characters,words");
    send({ type: "speak", text: "Hi you", voice_id: VOICE });
    const { audio } = toneOf("ulaw_8000", "Hi you", { msPerChar: 30, leadMs: 200, tailMs: 500 });
    requestAt(rig, 0).head();
    requestAt(rig, 0).chunk(audio, {
      alignment: {
        characters: [..."Hi you"],
        character_start_times_seconds: [0, 0.1, 0.2, 0.3, 0.35, 0.4],
        character_end_times_seconds: [0.1, 0.2, 0.3, 0.35, 0.4, 0.88],
      },
    });
    requestAt(rig, 0).handlers.end();
    rig.clock.advance(3000);
    const endMs = listener.eventsOf("utterance.done")[0]?.end_ms ?? 0;
    const times = listener
      .eventsOf("characters")
      .flatMap((event) => event.start_ms.flatMap((start, index) => [start, event.end_ms[index] ?? 0]));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(Math.min(...times)).toBe(0);
    expect(Math.max(...times)).toBeLessThanOrEqual(endMs);
    expect(wordsOf(listener).at(-1)?.end_ms).toBeLessThanOrEqual(endMs);
  });

  it("an interruption in the second segment is emitted in the client's text and the timeline unchanged", () => {
    const rig = createRig({ ...SPLICES, stallMs: 1e6 });
    const { send, listener } = rig.join("format=ulaw_8000");
    send({ type: "text", text: "Before it. ", voice_id: VOICE });
    send({ type: "flush" });
    send({ type: "text", text: "Behind it there is more." });
    send({ type: "end" });
    new Answering(rig, { msPerChar: 50, leadMs: 300, tailMs: 300 }).run(1200);
    send({ type: "interrupt" });
    const [cut] = listener.eventsOf("interrupted");
    // 20 + 550 + 300 of pause, then 50 ms a character.
    const expected = 11 + Math.floor((1200 - 870) / 50);
    expect(Math.abs((cut?.heard.end ?? 0) - expected)).toBeLessThanOrEqual(1);
  });

  it("the second answer waits for nobody: it is asked for while the first is heard", () => {
    const rig = createRig({ ...SPLICES, stallMs: 1e6 });
    const { send } = rig.join("format=ulaw_8000");
    send({ type: "text", text: "One. ", voice_id: VOICE });
    send({ type: "flush" });
    send({ type: "text", text: "Two." });
    send({ type: "end" });
    answer(rig, 0, { leadMs: 300, tailMs: 300 });
    expect(texts(rig)).toEqual(["One. ", "Two."]);
  });
});
