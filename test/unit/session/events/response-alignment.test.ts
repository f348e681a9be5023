/** Speech that comes without times, and a thread that finds its words: when it is asked, and how long it is waited for. */
import { describe, expect, it } from "vitest";
import type {
  Aligner,
  AlignmentHandlers,
  AlignmentRequest,
  FoundWord,
} from "../../../../src/timing/aligner.ts";
import { evenAlignment } from "../../../helpers/session-rig.ts";
import { CHAR_MS, spell, stage, VOICE } from "../spelling.ts";

const TEXT = "Abc def ghi jkl.";
/** A second later each than by its letters, so that no guess is so. */
const SECONDS = [0.11, 0.29, 0.47, 0.61];

interface Asked {
  readonly request: AlignmentRequest;
  readonly handlers: AlignmentHandlers;
  bytes: number;
  isFinished: boolean;
  isClosed: boolean;
}

/** Notes what it is asked, and says what it is told to say. */
function fakeAligner() {
  const asked: Asked[] = [];
  const aligner: Aligner = {
    open: (request, handlers) => {
      const job: Asked = { request, handlers, bytes: 0, isFinished: false, isClosed: false };
      asked.push(job);
      return {
        push: (audio) => {
          job.bytes += audio.length;
        },
        finish: () => {
          job.isFinished = true;
        },
        close: () => {
          job.isClosed = true;
        },
      };
    },
  };
  return { aligner, asked };
}

function wordsOf(text: string): FoundWord[] {
  return [...text.matchAll(/\S+/g)].map(({ index, 0: word }, i) => {
    const startSeconds = SECONDS[i] ?? 0;
    return { start: index, end: index + word.length, startSeconds, endSeconds: startSeconds + 0.1 };
  });
}

function rig(settings = {}, query = "") {
  const { aligner, asked } = fakeAligner();
  const session = stage(`format=ulaw_8000&events=words,characters${query}`, settings, undefined, aligner);
  const speak = (text: string, id: string, more: object = {}): void =>
    session.send({ type: "speak", text, voice_id: VOICE, utterance_id: id, ...more });
  const chunk = (index: number, audio: Uint8Array): void =>
    session.requests[index]?.handlers.chunk({
      audio,
      alignment: null,
      normalizedAlignment: null,
      voiceSegments: [],
    });
  const starts = (): number[] =>
    session.listener.eventsOf("words").flatMap((event) => {
      const first = session.listener
        .eventsOf("utterance.started")
        .find((one) => one.utterance_id === event.utterance_id);
      return event.words.map((word) => Math.round(word.start_ms - (first?.start_ms ?? 0)));
    });
  return { ...session, asked, speak, chunk, starts };
}

/** Where the words begin, ms. */
const FOUND_MS = SECONDS.map((seconds) => Math.round(seconds * 1000));

describe("a response without times", () => {
  it("is given to the aligner with its text, language and format, and its words begin where they were found", () => {
    const { asked, speak, chunk, requests, clock, listener, starts } = rig();
    speak(TEXT, "u", { language_code: "de" });
    requests[0]?.head();
    chunk(0, spell(TEXT));
    requests[0]?.handlers.end();
    clock.advance(300);
    expect(asked.map(({ request }) => request)).toEqual([
      { text: TEXT, language: "de", format: "ulaw_8000" },
    ]);
    expect(asked[0]).toMatchObject({ bytes: TEXT.length * CHAR_MS * 8, isFinished: true });
    expect(starts()).toEqual([]);
    asked[0]?.handlers.found(wordsOf(TEXT));
    asked[0]?.handlers.ended("complete");
    clock.advance(2000);
    expect(starts()).toEqual(FOUND_MS);
    for (const event of [...listener.eventsOf("words"), ...listener.eventsOf("characters")])
      expect(event).toMatchObject({ timing: "estimated", bound_ms: 250 });
    const characters = listener.eventsOf("characters").flatMap((event) => event.characters);
    expect(characters.join("")).toBe(TEXT);
  });

  it("ends with guesses where the thread stays silent, before listeners would wait for what follows", () => {
    const { asked, speak, chunk, requests, clock, listener, counters } = rig();
    for (const id of ["u", "v"]) speak(TEXT, id);
    requests[0]?.head();
    chunk(0, spell(TEXT));
    requests[0]?.handlers.end();
    clock.advance(20);
    requests[1]?.head();
    chunk(1, spell(TEXT));
    requests[1]?.handlers.end();
    clock.advance(3000);
    expect(asked.every(({ isClosed }) => isClosed)).toBe(true);
    const words = listener.eventsOf("words");
    expect(words.flatMap((event) => event.words)).toHaveLength(8);
    for (const event of words) expect(event).toMatchObject({ timing: "estimated", bound_ms: 800 });
    expect(counters).toMatchObject({ underruns: 0, timesGuessed: 2, timesFound: 0 });
  });

  it("has no words where they were found in what turned out to say something else", () => {
    const { asked, speak, chunk, requests, clock, starts, counters } = rig();
    speak(TEXT, "u");
    requests[0]?.head();
    chunk(0, spell(TEXT));
    requests[0]?.handlers.end();
    clock.advance(100);
    asked[0]?.handlers.found(wordsOf(TEXT));
    asked[0]?.handlers.ended("unlike");
    clock.advance(2000);
    expect(starts()).toHaveLength(4);
    expect(starts()).not.toEqual(FOUND_MS);
    expect(counters).toMatchObject({ timesGuessed: 1 });
  });

  it("has its words while it goes on, where the voice had no times before", () => {
    const { asked, speak, chunk, requests, clock, starts } = rig();
    speak(TEXT, "u");
    requests[0]?.head();
    chunk(0, spell(TEXT));
    requests[0]?.handlers.end();
    clock.advance(100);
    asked[0]?.handlers.found(wordsOf(TEXT));
    asked[0]?.handlers.ended("complete");
    clock.advance(3000);
    speak(TEXT, "v");
    requests[1]?.head();
    chunk(1, spell(TEXT.slice(0, 5)));
    // Its first frames leave before.
    expect(asked).toHaveLength(1);
    clock.advance(20);
    expect(asked[1]?.bytes).toBe(5 * CHAR_MS * 8);
    chunk(1, spell(TEXT.slice(5, 10)));
    asked[1]?.handlers.found(wordsOf(TEXT).slice(0, 2));
    clock.advance(100);
    expect(starts().slice(4)).toEqual(FOUND_MS.slice(0, 2));
    expect(asked[1]).toMatchObject({ isFinished: false, isClosed: false });
  });

  it("has its words while it goes on, where its service says that it gives none", () => {
    const { asked, speak, chunk, requests, clock, starts } = rig();
    speak(TEXT, "u");
    requests[0]?.handlers.head({ timesFrom: "nowhere" });
    chunk(0, spell(TEXT.slice(0, 5)));
    clock.advance(20);
    chunk(0, spell(TEXT.slice(5, 10)));
    asked[0]?.handlers.found(wordsOf(TEXT).slice(0, 2));
    clock.advance(100);
    expect(starts()).toEqual(FOUND_MS.slice(0, 2));
    expect(asked[0]).toMatchObject({ isFinished: false, isClosed: false });
  });

  it("is given up where it is interrupted", () => {
    const { asked, speak, chunk, requests, clock, send } = rig();
    speak(TEXT, "u");
    requests[0]?.head();
    chunk(0, spell(TEXT));
    clock.advance(100);
    expect(asked[0]?.isClosed).toBe(false);
    send({ type: "interrupt" });
    clock.advance(20);
    expect(asked[0]?.isClosed).toBe(true);
  });
});

describe("a response with times", () => {
  it("asks for nothing, though some audio of it has none", () => {
    const { asked, speak, requests, clock, chunk } = rig();
    speak(TEXT, "u");
    requests[0]?.head();
    chunk(0, spell(TEXT.slice(0, 4)));
    requests[0]?.handlers.chunk({
      audio: spell(TEXT.slice(4)),
      alignment: evenAlignment(TEXT, CHAR_MS),
      normalizedAlignment: null,
      voiceSegments: [],
    });
    chunk(0, spell("          "));
    requests[0]?.handlers.end();
    clock.advance(2000);
    expect(asked).toEqual([]);
  });

  it.each([
    ["a little late", 40, 0],
    ["late", 60, 1],
  ])("asks where its times are late, and closes the job then: %s", (_, ms, jobs) => {
    // What comes is looked at at once.
    const { asked, speak, requests, clock, chunk, listener } = rig({}, "&pace=burst");
    speak(TEXT, "u");
    requests[0]?.head();
    chunk(0, spell(TEXT.slice(0, 8)));
    clock.advance(ms);
    expect(asked).toHaveLength(jobs);
    requests[0]?.handlers.chunk({
      audio: spell(TEXT.slice(8)),
      alignment: evenAlignment(TEXT, CHAR_MS),
      normalizedAlignment: null,
      voiceSegments: [],
    });
    requests[0]?.handlers.end();
    clock.advance(2000);
    expect(asked.map(({ isClosed }) => isClosed)).toEqual(Array.from({ length: jobs }, () => true));
    expect(listener.eventsOf("words").flatMap((event) => event.words)).toHaveLength(4);
  });
});
