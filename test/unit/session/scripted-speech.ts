/** Speech for the session rig: tones with silence around them, timed character by character, answered as they are asked for. */
import { decodeSamples, encodeSamples, type SampleCodec } from "../../../src/audio/codecs/samples.ts";
import type { Alignment } from "../../../src/timing/alignment.ts";
import type { SpeechRequest } from "../../../src/upstream/types.ts";
import type { MemoryListener } from "../../helpers/memory-listener.ts";
import type { createRig, FakeRequest } from "../../helpers/session-rig.ts";

export const VOICE = "v";
export type Rig = ReturnType<typeof createRig>;

/** As the gateway's settings have it. */
export const SPLICES = { trimMs: 500, pauseClauseMs: 120, pauseSentenceMs: 300, pauseParagraphMs: 500 };

export interface Manner {
  /** Default 20. */
  readonly msPerChar?: number;
  /** Silence before and behind the tone; default 0. */
  readonly leadMs?: number;
  readonly tailMs?: number;
  /** From the request to its answer; default 0. */
  readonly delayMs?: number;
  /** Length of the chunks; default all in one. */
  readonly chunkMs?: number;
}

interface SaidTone {
  readonly audio: Uint8Array;
  readonly alignment: Alignment;
  readonly ms: number;
}

/** A 440 Hz tone that begins and ends at its peak. */
export function toneOf(format: string, text: string, manner: Manner = {}): SaidTone {
  const { msPerChar = 20, leadMs = 0, tailMs = 0 } = manner;
  const [, name = "", rate = ""] = /^(ulaw|alaw|pcm)_(\d+)$/.exec(format) ?? [];
  const perMs = Number(rate) / 1000;
  const characters = [...text];
  const soundMs = characters.length * msPerChar;
  const pcm = new Int16Array(Math.round((leadMs + soundMs + tailMs) * perMs));
  const [from, to] = [Math.round(leadMs * perMs), Math.round((leadMs + soundMs) * perMs)];
  for (let at = from; at < to; at += 1)
    pcm[at] = Math.round(12_000 * Math.cos((2 * Math.PI * 440 * (at - from)) / Number(rate)));
  if (to > from) pcm[to - 1] = 12_000;
  return {
    audio: encodeSamples(name as SampleCodec, pcm),
    alignment: {
      characters,
      character_start_times_seconds: characters.map((_, index) => (leadMs + index * msPerChar) / 1000),
      character_end_times_seconds: characters.map((_, index) => (leadMs + (index + 1) * msPerChar) / 1000),
    },
    ms: leadMs + soundMs + tailMs,
  };
}

/** Answers a request in full, with a request id of its own. */
export function answer(rig: Rig, index: number, manner: Manner = {}): void {
  const request = requestAt(rig, index);
  const { audio, alignment, ms } = toneOf(request.request.outputFormat, textOf(request), manner);
  request.handlers.head({ requestId: `r${index}`, characterCost: textOf(request).length });
  const chunkMs = manner.chunkMs ?? ms;
  const bytesPerMs = audio.byteLength / ms;
  const width = request.request.outputFormat.startsWith("pcm") ? 2 : 1;
  let first = 0;
  for (let from = 0; from < ms; from += chunkMs) {
    const to = Math.min(ms, from + chunkMs);
    const bytes = (at: number): number => Math.round((at * bytesPerMs) / width) * width;
    const ends = alignment.character_end_times_seconds;
    let last = first;
    while (last < ends.length && (to >= ms || (ends[last] ?? 0) * 1000 <= to + 0.001)) last += 1;
    request.chunk(audio.subarray(bytes(from), bytes(to)), {
      alignment: {
        characters: alignment.characters.slice(first, last),
        character_start_times_seconds: alignment.character_start_times_seconds.slice(first, last),
        character_end_times_seconds: ends.slice(first, last),
      },
    });
    first = last;
  }
  request.handlers.end();
}

export function requestAt(rig: Rig, index: number): FakeRequest {
  const request = rig.requests[index];
  if (request === undefined) throw new Error(`No request ${index} was made`);
  return request;
}

/** What the upstream was asked to say. */
export function textOf({ request }: FakeRequest): string {
  return request.kind === "speech" ? request.text : request.inputs.map((input) => input.text).join("");
}

export function texts(rig: Rig): string[] {
  return rig.requests.map(textOf);
}

export function speechAt(rig: Rig, index: number): SpeechRequest {
  const { request } = requestAt(rig, index);
  if (request.kind !== "speech") throw new Error(`Request ${index} is a dialogue`);
  return request;
}

/** Turns the clock in small steps and answers every request so long after it came. */
export class Answering {
  readonly #rig: Rig;
  readonly #manner: Manner;
  readonly #dueMs: number[] = [];
  #next: number;

  /** `from`: requests before this one are somebody else's. */
  constructor(rig: Rig, manner: Manner = {}, from = 0) {
    this.#rig = rig;
    this.#manner = manner;
    this.#next = from;
  }

  run(ms: number, stepMs = 5): void {
    this.#answerDue();
    for (let passed = 0; passed < ms; passed += stepMs) {
      this.#rig.clock.advance(stepMs);
      this.#answerDue();
    }
  }

  #answerDue(): void {
    const nowMs = this.#rig.clock.nowMs();
    for (;;) {
      while (this.#dueMs.length < this.#rig.requests.length)
        this.#dueMs.push(nowMs + (this.#manner.delayMs ?? 0));
      if (this.#next >= this.#rig.requests.length || (this.#dueMs[this.#next] ?? 0) > nowMs) return;
      const index = this.#next;
      this.#next += 1;
      if (!requestAt(this.#rig, index).isAborted) answer(this.#rig, index, this.#manner);
    }
  }
}

export function wordsOf(listener: MemoryListener) {
  return listener.eventsOf("words").flatMap((event) => event.words);
}

/** Everything heard, as samples. */
export function heard(listener: MemoryListener, codec: SampleCodec): Int16Array {
  return decodeSamples(codec, Buffer.concat(listener.frames));
}

interface Run {
  readonly isSound: boolean;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Stretches of sound and silence; silence shorter than 5 ms belongs to the sound. */
export function stretches(pcm: Int16Array, perMs: number): Run[] {
  const runs: { isSound: boolean; from: number; to: number }[] = [];
  let silent = 0;
  const add = (isSound: boolean, from: number, to: number): void => {
    const last = runs.at(-1);
    if (to <= from) return;
    if (last?.isSound === isSound) last.to = to;
    else runs.push({ isSound, from, to });
  };
  let soundEnd = 0;
  for (let at = 0; at < pcm.length; at += 1) {
    if (Math.abs(pcm[at] ?? 0) <= 100) {
      silent += 1;
      continue;
    }
    if (silent >= 5 * perMs) add(false, soundEnd, at);
    add(true, runs.at(-1)?.isSound ? soundEnd : at, at + 1);
    soundEnd = at + 1;
    silent = 0;
  }
  add(false, soundEnd, pcm.length);
  return runs.map(({ isSound, from, to }) => ({ isSound, fromMs: from / perMs, toMs: to / perMs }));
}
