/** A node tells its buddy of a session while that speaks, and dies: from what was told, each word is heard once. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { Replicas } from "../../src/cluster/takeover/replicas.ts";
import { Replicator } from "../../src/cluster/takeover/replicator.ts";
import { GatewayError } from "../../src/errors.ts";
import { systemClock } from "../../src/kit/clock.ts";
import type { SavedSession } from "../../src/session/saved-session.ts";
import { NO_REGISTER } from "../../src/session/sessions.ts";
import type { MemoryListener } from "../helpers/memory-listener.ts";
import { createRig, evenAlignment, type FakeRequest } from "../helpers/session-rig.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { answer, CHAR_MS, heardOf, read, spell, textOf, VOICE } from "../unit/session/spelling.ts";

/** A frame is a letter long: of each letter all is heard, or nothing. */
const QUERY = `format=ulaw_8000&lead_ms=200&frame_ms=${CHAR_MS}`;
const STEP_MS = 20;

type Rig = ReturnType<typeof createRig>;

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

const microtasks = async (): Promise<void> => {
  for (let turn = 0; turn < 8; turn += 1) await Promise.resolve();
};

/** A session whose node tells another one, on a clock that is turned by hand. */
async function openTold() {
  const hub = new MemoryHub({ clock: systemClock });
  const buses = { owner: hub.open(), buddy: hub.open() };
  const told: { replicator?: Replicator } = {};
  const owner = createRig({ maxTextChars: 10_000 }, undefined, watchedLog, undefined, {
    ...NO_REGISTER,
    keeper: {
      changed: (session) => told.replicator?.changed(session),
      connected: (session, connection) => told.replicator?.connected(session, connection),
      disconnected: (session, token) => told.replicator?.disconnected(session, token),
      passed: (session, id) => told.replicator?.passed(session, id),
      sending: (session) => told.replicator?.sending(session),
    },
  });
  told.replicator = await Replicator.open({
    bus: buses.owner,
    incarnation: "one",
    sessions: () => owner.sessions,
    clock: owner.clock,
    log: watchedLog,
  });
  const replicas = await Replicas.open({
    bus: buses.buddy,
    incarnation: "two",
    maxChars: 1_000_000,
    log: watchedLog,
  });
  told.replicator.choose("two");
  return { owner, replicas };
}

/** Says what is asked for, so many characters in each step; `isTimed`: with times. */
class Speech {
  readonly #said = new Map<FakeRequest, number>();
  readonly #chars: number;
  readonly #isTimed: boolean;

  constructor(chars: number, isTimed: boolean) {
    this.#chars = chars;
    this.#isTimed = isTimed;
  }

  /** `breakAt`: the first answer breaks off behind so many characters. */
  step({ requests }: Rig, breakAt = Number.POSITIVE_INFINITY): void {
    for (const open of requests) {
      const from = this.#said.get(open) ?? 0;
      const text = textOf(open);
      if (open.isAborted || from > text.length) continue;
      const end = Math.min(text.length, from + this.#chars);
      const piece = text.slice(from, end);
      if (from === 0) open.head();
      if (piece !== "") {
        const timing = this.#isTimed ? { alignment: evenAlignment(piece, CHAR_MS, from * CHAR_MS) } : {};
        open.chunk(spell(piece), timing);
      }
      this.#said.set(open, end === text.length ? end + 1 : end);
      if (end === text.length) open.handlers.end();
      else if (open === requests[0] && end >= breakAt) {
        this.#said.set(open, Number.POSITIVE_INFINITY);
        open.handlers.error(new GatewayError("upstream_failed", "It broke off"));
      }
    }
  }
}

/** The letters that were heard, and the end of the audio, ms. */
function heardBy(listener: MemoryListener): { readonly letters: string; readonly endMs: number } {
  const spans = heardOf(listener, "ulaw_8000", CHAR_MS);
  const last = spans.at(-1);
  const endMs = (last?.startMs ?? 0) + (last?.audio.length ?? 0) / 8;
  return { letters: spans.map(({ audio }) => read(audio)).join(""), endMs };
}

/** What somebody hears at another node who comes back with all that was sent. */
function hearOn(saved: SavedSession, token: string, endMs: number): string {
  const there = createRig({ maxTextChars: 10_000 });
  const session = there.sessions.open("s");
  session.restore(JSON.parse(JSON.stringify(saved)) as SavedSession, "former");
  const { listener } = there.join(`${QUERY}&resume=${token}&at_ms=${endMs}`);
  const answered = new Set<FakeRequest>();
  for (let passed = 0; passed < 60_000 && !session.isIdle; passed += STEP_MS) {
    for (const open of there.requests) {
      if (open.isAborted || answered.has(open)) continue;
      answered.add(open);
      answer(open);
    }
    there.clock.advance(STEP_MS);
  }
  return heardBy(listener).letters;
}

/** Letters of the words of which all letters were heard. */
function wholeWords(words: readonly string[], heard: string): string {
  let whole = "";
  for (const word of words) {
    if (whole.length + word.length > heard.length) break;
    whole += word;
  }
  return whole;
}

const word = fc.stringMatching(/^[a-z]{1,7}$/);
const text = fc.array(word, { minLength: 1, maxLength: 12 });
const texts = fc.array(text, { minLength: 1, maxLength: 3 });
/** Characters in 20 ms: from real time on. */
const chars = fc.integer({ min: 1, max: 20 });
const steps = fc.integer({ min: 5, max: 300 });

describe("speech that goes on at a buddy", () => {
  it("each word is heard once, wherever the node dies", async () => {
    await fc.assert(
      fc.asyncProperty(texts, chars, steps, async (said, rate, stop) => {
        const { owner, replicas } = await openTold();
        const { listener, send, participant } = owner.join(QUERY);
        for (const words of said) send({ type: "speak", text: words.join(" "), voice_id: VOICE });
        await settle();
        const speech = new Speech(rate, true);
        for (let step = 0; step < stop; step += 1) {
          speech.step(owner);
          owner.clock.advance(STEP_MS);
        }
        await settle();
        const { letters, endMs } = heardBy(listener);
        const words = said.flat();
        const rest = words.join("").slice(wholeWords(words, letters).length);
        expect(hearOn(toldOf(replicas), participant.returnToken, endMs)).toBe(rest);
      }),
      { numRuns: 60 },
    );
  });

  it("each word is heard once, also where a node wakes late and dies as its frames leave", async () => {
    const lateMs = fc.array(fc.integer({ min: 0, max: 900 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(
        texts,
        chars,
        fc.integer({ min: 5, max: 60 }),
        lateMs,
        async (said, rate, stop, late) => {
          const { owner, replicas } = await openTold();
          const { listener, send, participant } = owner.join(QUERY);
          for (const words of said) send({ type: "speak", text: words.join(" "), voice_id: VOICE });
          const speech = new Speech(rate, true);
          for (let step = 0; step < stop; step += 1) {
            await settle();
            speech.step(owner);
            owner.clock.stall(late[step % late.length] ?? 0);
            owner.clock.advance(STEP_MS);
          }
          // No turn of the event loop behind the last frames: only what was written before them has left.
          await microtasks();
          const { letters, endMs } = heardBy(listener);
          const words = said.flat();
          const rest = words.join("").slice(wholeWords(words, letters).length);
          expect(hearOn(toldOf(replicas), participant.returnToken, endMs)).toBe(rest);
        },
      ),
      { numRuns: 150 },
    );
  });

  it("the rest is what the node itself would say, also where answers break off or speech is interrupted", async () => {
    const breakAt = fc.option(fc.integer({ min: 3, max: 30 }), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(texts, chars, steps, steps, breakAt, async (said, rate, cut, stop, broken) => {
        const { owner, replicas } = await openTold();
        const { listener, send, session, participant } = owner.join(QUERY);
        const speak = (): void => {
          for (const words of said) send({ type: "speak", text: words.join(" "), voice_id: VOICE });
        };
        speak();
        await settle();
        const speech = new Speech(rate, true);
        for (let step = 0; step < cut + stop; step += 1) {
          if (step === cut) {
            if (session.currentId !== null) send({ type: "interrupt" });
            speak();
            await settle();
          }
          speech.step(owner, broken);
          owner.clock.advance(STEP_MS);
        }
        await settle();
        const { endMs } = heardBy(listener);
        const own = hearOn(session.save(), participant.returnToken, endMs);
        expect(hearOn(toldOf(replicas), participant.returnToken, endMs)).toBe(own);
      }),
      { numRuns: 60 },
    );
  });

  it("no word is lost where speech has no times", async () => {
    await fc.assert(
      fc.asyncProperty(texts, chars, steps, async (said, rate, stop) => {
        const { owner, replicas } = await openTold();
        const { listener, send, session, participant } = owner.join(QUERY);
        for (const words of said) send({ type: "speak", text: words.join(" "), voice_id: VOICE });
        await settle();
        const speech = new Speech(rate, false);
        for (let step = 0; step < stop; step += 1) {
          speech.step(owner);
          owner.clock.advance(STEP_MS);
        }
        await settle();
        const { endMs } = heardBy(listener);
        const own = hearOn(session.save(), participant.returnToken, endMs);
        expect(hearOn(toldOf(replicas), participant.returnToken, endMs).endsWith(own)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  it("interrupted speech does not go on, also where nothing followed it", async () => {
    const { owner, replicas } = await openTold();
    const { send, session } = owner.join(QUERY);
    send({ type: "speak", text: "alpha bravo charlie", voice_id: VOICE });
    await settle();
    const speech = new Speech(20, true);
    for (let step = 0; step < 20; step += 1) {
      speech.step(owner);
      owner.clock.advance(STEP_MS);
    }
    // As over HTTP: no command of a connection.
    session.interruptions.interrupt(undefined, undefined);
    await settle();
    expect(toldOf(replicas).utterances).toEqual([]);
  });
});

function toldOf(replicas: Replicas): SavedSession {
  const saved = replicas.take("s")?.saved;
  if (saved === undefined) throw new Error("Nothing was told of the session");
  return saved;
}
