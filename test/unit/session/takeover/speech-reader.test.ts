/** What is read of a session while it is spoken: where each word ends, once, and all of that again where it was wrong. */
import { describe, expect, it } from "vitest";
import type { SavedPlaces } from "../../../../src/session/saved-session.ts";
import { msOfTicks, TICKS_PER_MS } from "../../../../src/timing/ticks.ts";
import { stage } from "../spelling.ts";

/** Five words, of which some were read, with all their audio there. */
function openRead() {
  const { session, speak, answerAll, clock } = stage("format=ulaw_8000&lead_ms=200");
  speak("alpha bravo charlie delta echo", "u");
  const reader = session.speechReader();
  const all = reader.readAll();
  answerAll();
  clock.advance(20);
  const first = reader.readPlaces();
  const [utterance] = session.queue.notOver;
  if (utterance === undefined) throw new Error("Nothing is spoken");
  return { reader, all, first, clock, transcript: utterance.transcript };
}

function endsOf([places]: readonly SavedPlaces[]): number[] {
  return places?.heard.map(({ end }) => end) ?? [];
}

describe("what is read of speech", () => {
  it("is each word once: those that have come since", () => {
    const { reader, all, first, clock } = openRead();
    expect(all.utterances[0]).toMatchObject({ startMs: null, heard: [{ end: 0, ms: 0 }] });
    expect(endsOf(first)[0]).toBe(0);
    expect(reader.readPlaces()).toEqual([]);
    const ends = [...endsOf(first)];
    for (let ms = 0; ms < 1400; ms += 20) {
      clock.advance(20);
      ends.push(...endsOf(reader.readPlaces()));
    }
    // The last one is all of the text, at the end of its audio.
    expect(ends).toEqual([0, 5, 11, 19, 25, 30, 30]);
  });

  it("is estimated as audio is sent where no word within reach has times", () => {
    const { reader, transcript, clock } = openRead();
    const second = transcript.words[1];
    if (second === undefined) throw new Error("No second word was read");
    transcript.voidFrom(second.start);
    const ends = endsOf(reader.readPlaces());
    for (let ms = 0; ms < 1300; ms += 20) {
      clock.advance(20);
      ends.push(...endsOf(reader.readPlaces()));
    }
    expect(ends).toEqual([0, 5, 26, 30, 30]);
  });

  it("is all again where a word is void", () => {
    const { reader, first, transcript } = openRead();
    const last = transcript.words.at(-1);
    if (last === undefined) throw new Error("No word was read");
    transcript.voidFrom(last.start);
    const [again] = reader.readPlaces();
    expect(again?.heard[0]).toEqual({ end: 0, ms: 0 });
    expect(again?.heard.length).toBeLessThan(first[0]?.heard.length ?? 0);
  });

  it("is all again where the audio of a word ends sooner than was thought", () => {
    const { reader, transcript } = openRead();
    const endTicks = (transcript.words.at(-1)?.endTicks ?? 0) - 10 * TICKS_PER_MS;
    transcript.endAt(endTicks);
    const [again] = reader.readPlaces();
    expect(again?.heard[0]).toEqual({ end: 0, ms: 0 });
    expect(again?.heard.at(-1)?.ms).toBe(msOfTicks(endTicks));
  });
});
