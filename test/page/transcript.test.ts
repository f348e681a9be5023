import { describe, expect, it } from "vitest";
import { Transcript } from "../../src/page/speech/transcript.ts";
import type { InterruptedEvent, UtteranceDoneEvent, WordsEvent } from "../../src/protocol/events.ts";

const base = { seq: 1, at_ms: 0 };

/** Words of 100 ms each from `startMs` on, found in the text one after the other. */
function wordsOf(id: string, text: string, startMs: number, list: readonly string[]): WordsEvent {
  let at = 0;
  const words = list.map((word, index) => {
    const start = text.indexOf(word, at);
    at = start + word.length;
    const start_ms = startMs + index * 100;
    return { text: word, start, end: at, start_ms, end_ms: start_ms + 100 };
  });
  return { type: "words", ...base, utterance_id: id, words, timing: "exact" };
}

function done(id: string, start_ms: number, end_ms: number): UtteranceDoneEvent {
  return {
    type: "utterance.done",
    ...base,
    utterance_id: id,
    outcome: "done",
    start_ms,
    end_ms,
    pad_ms: 0,
    characters_billed: null,
    characters_spoken: 1,
    timing: "exact",
    latency: null,
    segments: [],
  };
}

function interrupted(id: string, text: string, end: number, ms: number): InterruptedEvent {
  const heard = { text: text.slice(0, end), end, ms, source: "ack", bound_ms: 40 } as const;
  const unheard_text = text.slice(end);
  return { type: "interrupted", ...base, utterance_id: id, heard, unheard_text, resumable: true, next_ms: 0 };
}

function characters(id: string, start: number, list: readonly string[]) {
  const end = start + list.join("").length;
  return {
    type: "characters",
    ...base,
    utterance_id: id,
    start,
    end,
    characters: list,
    start_ms: [],
    end_ms: [],
    timing: "exact",
  } as const;
}

describe("Transcript", () => {
  it("litAt() is the word whose time it is, in order of its own text", () => {
    const transcript = new Transcript();
    transcript.addOwn("a", [{ text: "one two three", voiceId: null }]);
    transcript.started("a", 1000);
    transcript.words(wordsOf("a", "one two three", 1000, ["one", "two", "three"]));
    expect(transcript.litAt(990)).toBeNull();
    expect(transcript.litAt(1000)?.word.text).toBe("one");
    expect(transcript.litAt(1199)?.word.text).toBe("two");
    expect(transcript.litAt(1200)?.word.text).toBe("three");
  });

  it("litAt() keeps a word lit through a short pause and lets it go after a long one", () => {
    const transcript = new Transcript();
    transcript.addOwn("a", [{ text: "one", voiceId: null }]);
    transcript.started("a", 0);
    transcript.words(wordsOf("a", "one", 0, ["one"]));
    expect(transcript.litAt(300)?.isSounding).toBe(true);
    expect(transcript.litAt(400)?.isSounding).toBe(false);
  });

  it("recovered() drops the words from there on, of that utterance only, until they come again", () => {
    const transcript = new Transcript();
    for (const id of ["a", "b"]) transcript.addOwn(id, [{ text: "one two three", voiceId: null }]);
    transcript.started("a", 1000);
    transcript.words(wordsOf("a", "one two three", 1000, ["one", "two", "three"]));
    transcript.words(wordsOf("b", "one two three", 5000, ["one", "two"]));
    transcript.recovered({ utterance_id: "a", start: 3 });
    expect(transcript.litAt(1250)?.word.text).toBe("one");
    expect(transcript.find("b")?.words).toHaveLength(2);
    // Later than before: without the warning the old ones would stand in its way.
    transcript.characters({
      ...characters("a", 3, [" ", "t", "w"]),
      start_ms: [1100, 1400, 1450],
      end_ms: [1400, 1450, 1500],
    });
    expect(transcript.litAt(1350)?.word.text).toBe("one");
    expect(transcript.litAt(1400)?.word.text).toBe("tw");
  });

  it("litAt() lets the last word go when the timeline stops at the end of the speech", () => {
    const transcript = new Transcript();
    transcript.addOwn("a", [{ text: "one", voiceId: null }]);
    transcript.started("a", 0);
    transcript.words(wordsOf("a", "one", 0, ["one"]));
    transcript.done(done("a", 0, 100));
    expect(transcript.litAt(99.9999)?.isSounding).toBe(false);
  });

  it("litAt() goes from one queued utterance to the next", () => {
    const transcript = new Transcript();
    for (const [id, startMs] of [
      ["a", 0],
      ["b", 300],
    ] as const) {
      transcript.addOwn(id, [{ text: "one two", voiceId: null }]);
      transcript.started(id, startMs);
      transcript.words(wordsOf(id, "one two", startMs, ["one", "two"]));
    }
    expect(transcript.litAt(150)).toMatchObject({ index: 1, utterance: { id: "a" } });
    expect(transcript.litAt(300)).toMatchObject({ index: 0, utterance: { id: "b" } });
  });

  it("offsets hold for emoji, combining marks, right-to-left text and Chinese", () => {
    for (const [text, list] of [
      ["👩🏽‍🚀 naïve 🎉 ok", ["naïve", "ok"]],
      ["مساء الخير", ["مساء", "الخير"]],
      ["晚上好。你好", ["晚上好", "你好"]],
    ] as const) {
      const transcript = new Transcript();
      transcript.addOwn("a", [{ text, voiceId: null }]);
      transcript.started("a", 0);
      const { words } = transcript.words(wordsOf("a", text, 0, list));
      expect(words.map((word) => text.slice(word.start, word.end))).toEqual(list);
    }
  });

  it("interrupted() ends the lighting where it was heard, and words behind the cut never light", () => {
    const transcript = new Transcript();
    const text = "one two three";
    transcript.addOwn("a", [{ text, voiceId: null }]);
    transcript.started("a", 0);
    transcript.words(wordsOf("a", text, 0, ["one", "two", "three"]));
    const utterance = transcript.interrupted(interrupted("a", text, 7, 190));
    expect(utterance.receipt).toMatchObject({ heardEnd: 7, heardMs: 190, source: "ack" });
    expect(transcript.litAt(250)?.isSounding).toBe(false);
    expect(transcript.wordsBetween(0, 1000).map((word) => word.text)).toEqual(["one", "two"]);
  });

  it("resumed() goes on in the same text: the receipt goes, and its words light where they come again", () => {
    const transcript = new Transcript();
    const text = "one two three";
    transcript.addOwn("a", [{ text, voiceId: null }]);
    transcript.started("a", 0);
    transcript.words(wordsOf("a", text, 0, ["one", "two", "three"]));
    transcript.interrupted(interrupted("a", text, 4, 120));
    transcript.done({ ...done("a", 0, 120), outcome: "interrupted" });
    // Another one is spoken meanwhile.
    transcript.addOwn("b", [{ text: "four", voiceId: null }]);
    transcript.started("b", 120);
    transcript.words(wordsOf("b", "four", 120, ["four"]));
    transcript.done(done("b", 120, 220));
    const place = { start: 4, start_ms: 220, kept_end: 13, timing: "exact" } as const;
    const utterance = transcript.resumed({ type: "utterance.resumed", ...base, utterance_id: "a", ...place });
    expect(utterance).toMatchObject({ state: "speaking", receipt: null, isOver: false });
    const again = wordsOf("a", text, 120, ["one", "two", "three"]).words.slice(1);
    transcript.words({ ...wordsOf("a", text, 0, []), words: again });
    expect(utterance.words.map((word) => word.text)).toEqual(["one", "two", "three"]);
    expect([150, 230, 330].map((atMs) => transcript.litAt(atMs)?.word.text)).toEqual([
      "four",
      "two",
      "three",
    ]);
    transcript.interrupted({ ...interrupted("a", text, 7, 250), at_ms: 320 });
    expect(utterance.endMs).toBe(320);
    expect(transcript.litAt(330)?.isSounding).toBe(false);
    expect(transcript.done({ ...done("c", 0, 0), outcome: "cancelled" }).isOver).toBe(true);
  });

  it("a listener's text is put together from characters, words and lines as they come", () => {
    const transcript = new Transcript();
    transcript.started("a", 0);
    transcript.characters(characters("a", 0, ["H", "i", ",", " "]));
    transcript.characters(characters("a", 4, ["y", "o", "u", "."]));
    expect(transcript.find("a")?.text).toBe("Hi, you.");
    const segment = { type: "segment", ...base, utterance_id: "a", start_ms: 0, end_ms: 1 } as const;
    transcript.segment({ ...segment, voice_id: "x", dialogue_input_index: 0, start: 0, end: 8 });
    transcript.characters(characters("a", 8, ["Y", "e", "s"]));
    const utterance = transcript.segment({
      ...segment,
      voice_id: "y",
      dialogue_input_index: 1,
      start: 8,
      end: 11,
    });
    expect(utterance.lines).toEqual([
      { start: 0, end: 8, voiceId: "x" },
      { start: 8, end: 11, voiceId: "y" },
    ]);
  });

  it("a listener's text comes from the words where the characters were normalized", () => {
    const transcript = new Transcript();
    transcript.started("a", 0);
    transcript.characters({ ...characters("a", 0, ["f", "i", "v", "e"]), end: 2 });
    expect(transcript.find("a")?.text).toBe("");
    transcript.words(wordsOf("a", "$5 ok", 0, ["$5", "ok"]));
    expect(transcript.find("a")?.text).toBe("$5 ok");
  });

  it("words() keeps order when they come late, and replaces a word that comes again", () => {
    const transcript = new Transcript();
    transcript.addOwn("a", [{ text: "one two three", voiceId: null }]);
    const event = wordsOf("a", "one two three", 0, ["one", "two", "three"]);
    const [one, two, three] = event.words;
    if (one === undefined || two === undefined || three === undefined) throw new Error("No words");
    for (const word of [one, three, two, { ...two, end_ms: 180 }])
      transcript.words({ ...event, words: [word] });
    expect(transcript.find("a")?.words.map((word) => [word.text, word.end_ms])).toEqual([
      ["one", 100],
      ["two", 180],
      ["three", 300],
    ]);
  });

  it("started() again forgets the times of the first attempt", () => {
    const transcript = new Transcript();
    transcript.addOwn("a", [{ text: "one", voiceId: null }]);
    transcript.started("a", 0);
    transcript.words(wordsOf("a", "one", 0, ["one"]));
    transcript.started("a", 500);
    expect(transcript.find("a")?.words).toEqual([]);
    expect(transcript.litAt(50)).toBeNull();
  });

  it("loseTrack() ends what was under way; it speaks on when events of it come again", () => {
    const transcript = new Transcript();
    transcript.addOwn("a", [{ text: "one", voiceId: null }]);
    transcript.started("a", 0);
    expect(transcript.loseTrack().map((utterance) => utterance.state)).toEqual(["lost"]);
    expect(transcript.find("a")?.isOver).toBe(true);
    transcript.words(wordsOf("a", "one", 0, ["one"]));
    expect(transcript.find("a")?.state).toBe("speaking");
  });

  it("giveUp() says how far what was lost was heard, until events of it come again", () => {
    const transcript = new Transcript();
    transcript.addOwn("a", [{ text: "one two three", voiceId: null }]);
    transcript.started("a", 0);
    transcript.words(wordsOf("a", "one two three", 0, ["one", "two", "three"]));
    transcript.addOwn("b", [{ text: "waits", voiceId: null }]);
    const middleOfThird = transcript.find("a")?.words[2]?.start_ms ?? 0;
    expect(transcript.giveUp(middleOfThird)).toEqual([]);
    transcript.loseTrack();
    expect(transcript.giveUp(middleOfThird).map(({ id, lostFrom }) => [id, lostFrom])).toEqual([
      ["a", 7],
      ["b", 0],
    ]);
    transcript.forgetTimes();
    expect(transcript.giveUp(0)).toEqual([]);
    expect(transcript.find("a")?.lostFrom).toBe(7);
    transcript.words(wordsOf("b", "waits", 0, ["waits"]));
    expect(transcript.find("b")).toMatchObject({ state: "speaking", lostFrom: null });
  });

  it("keeps the latest forty utterances", () => {
    const transcript = new Transcript();
    for (let index = 0; index < 60; index += 1)
      transcript.addOwn(`u${index}`, [{ text: "x", voiceId: null }]);
    expect(transcript.utterances.length).toBe(40);
    expect(transcript.utterances[0]?.id).toBe("u20");
  });
});
