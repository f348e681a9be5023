/** The phrase cache at its interface: what is a hit, what it hands out, and what it keeps. */
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { PhraseCache } from "../../../src/upstream/cache/phrase-cache.ts";
import type { DialogueRequest, SpeechRequest, SynthesisChunk } from "../../../src/upstream/types.ts";
import { bare, rig, shown, timed } from "./phrase-cache-rig.ts";
import { RAW_SPEECH, Recorder, SPEECH, turns } from "./rig.ts";

const DIALOGUE: DialogueRequest = {
  kind: "dialogue",
  inputs: [
    { text: "Knock knock.", voiceId: "tone-a" },
    { text: "Who's there?", voiceId: "tone-b" },
  ],
  outputFormat: "ulaw_8000",
  wantsTiming: true,
};
const HOUR_MS = 3_600_000;

/** Asks for it and plays the answer, if the upstream is asked. */
async function speak(
  { cache, asked }: ReturnType<typeof rig>,
  request: SpeechRequest | DialogueRequest,
  answer: readonly SynthesisChunk[] = [timed(800)],
): Promise<{ recorder: Recorder; isHit: boolean }> {
  const before = asked.length;
  const recorder = new Recorder();
  cache.open(request, recorder);
  const isHit = asked.length === before;
  if (!isHit) asked.at(-1)?.answer(...answer);
  await turns(1);
  return { recorder, isHit };
}

describe("PhraseCache: hits", () => {
  it("hands out what came: head, chunks, end, after open has returned", async () => {
    const bench = rig();
    const chunks = [timed(800), timed(0, { startSeconds: 0.4 }), timed(160, { fill: 9, startSeconds: 0.8 })];
    const first = await speak(bench, SPEECH, chunks);
    const recorder = new Recorder();
    bench.cache.open(SPEECH, recorder);
    expect(recorder.calls).toEqual([]);
    await turns(1);
    expect(recorder.calls).toEqual(["head", "chunk", "end"]);
    expect(shown(recorder.chunks)).toEqual(shown(chunks));
    expect(shown(recorder.chunks)).toEqual(shown(first.recorder.chunks));
    expect(bench.cache.stats()).toMatchObject({ hits: 1, misses: 1, shared: 0, entries: 1 });
  });

  it("keeps a dialogue's voice segments, and timing of any shape", async () => {
    const bench = rig();
    const segment = {
      voice_id: "tone-a",
      start_time_seconds: 0,
      end_time_seconds: 0.35,
      character_start_index: 0,
      character_end_index: 3,
      dialogue_input_index: 0,
    };
    const odd = [
      '{"characters":["a","b"],"character_start_times_seconds":[0,null],"character_end_times_seconds":[1,2]}',
      '{"characters":["a","b"],"character_start_times_seconds":[0,1],"character_end_times_seconds":[null,2]}',
      '{"characters":["a","b"],"character_start_times_seconds":[0,1],"character_end_times_seconds":[1]}',
      '{"characters":["ab",""],"character_start_times_seconds":[0,1],"character_end_times_seconds":[1,2]}',
      '{"characters":[],"character_start_times_seconds":[],"character_end_times_seconds":[]}',
    ];
    const chunks: SynthesisChunk[] = [
      { ...timed(80), voiceSegments: [segment] },
      { ...timed(80), alignment: null },
      ...odd.map((json) => ({ ...timed(80), alignment: JSON.parse(json), normalizedAlignment: null })),
    ];
    await speak(bench, DIALOGUE, chunks);
    const { recorder, isHit } = await speak(bench, DIALOGUE);
    expect(isHit).toBe(true);
    expect(shown(recorder.chunks)).toEqual(shown(chunks));
  });

  it("says that nothing was billed, and names the request that it was made by", async () => {
    const bench = rig();
    expect((await speak(bench, SPEECH)).recorder.heads).toEqual([{ requestId: "r1", characterCost: 17 }]);
    expect((await speak(bench, SPEECH)).recorder.heads).toEqual([{ requestId: "r1", characterCost: 0 }]);
  });

  it("does not name a request that the upstream has forgotten by now", async () => {
    const bench = rig();
    await speak(bench, SPEECH);
    bench.clock.advance(2 * HOUR_MS);
    expect((await speak(bench, SPEECH)).recorder.heads).toEqual([{ characterCost: 0 }]);
  });

  it("respects pause, resume and abort", async () => {
    const bench = rig();
    await speak(bench, SPEECH, [timed(10), timed(20), timed(30)]);
    const recorder = new Recorder();
    const synthesis = bench.cache.open(SPEECH, recorder);
    recorder.onChunk = () => synthesis.pause();
    await turns(1);
    expect(recorder.chunks.map(({ audio }) => audio.length)).toEqual([10]);
    synthesis.resume();
    expect(recorder.chunks).toHaveLength(1);
    await turns(1);
    expect(recorder.chunks).toHaveLength(2);
    synthesis.abort();
    synthesis.resume();
    await turns(1);
    expect(recorder.chunks).toHaveLength(2);
    expect(recorder.isOver).toBe(false);
  });

  it("is not damaged by receivers that write into what they got", async () => {
    const bench = rig();
    const chunks = [timed(100)];
    const damage = ({ chunks: got }: Recorder): void => {
      for (const { audio, alignment } of got) {
        if (alignment === null) throw new Error("Timing was asked for");
        audio.fill(0);
        (alignment.characters as string[]).fill("x");
        (alignment.character_start_times_seconds as number[]).length = 0;
        structuredClone(audio, { transfer: [audio.buffer as ArrayBuffer] });
      }
    };
    damage((await speak(bench, SPEECH, chunks)).recorder);
    damage((await speak(bench, SPEECH)).recorder);
    expect((await speak(bench, SPEECH)).recorder.chunks).toEqual(chunks);
  });

  it("gives who wants no timing the audio of who does, and not the other way round", async () => {
    const bench = rig();
    await speak(bench, RAW_SPEECH, [bare(50, 1)]);
    expect((await speak(bench, SPEECH, [timed(60, { fill: 2 }), timed(0), timed(5)])).isHit).toBe(false);
    const { recorder, isHit } = await speak(bench, RAW_SPEECH);
    expect(isHit).toBe(true);
    expect(shown(recorder.chunks)).toEqual(shown([bare(60, 2), bare(5)]));
    // One copy is enough.
    expect(bench.cache.stats().entries).toBe(1);
  });
});

describe("PhraseCache: keys", () => {
  const settings = { stability: 0.4, speed: 1.1 };
  const base: SpeechRequest = { ...SPEECH, modelId: "m", voiceSettings: settings };
  const others: readonly (readonly [string, SpeechRequest | DialogueRequest])[] = [
    ["text", { ...base, text: "Hello there, me." }],
    ["voice", { ...base, voiceId: "tone-b" }],
    ["model", { ...base, modelId: "n" }],
    ["language", { ...base, languageCode: "de" }],
    ["seed", { ...base, seed: 1 }],
    ["normalization", { ...base, applyTextNormalization: "off" }],
    ["a setting", { ...base, voiceSettings: { ...settings, speed: 1 } }],
    ["no settings", { ...SPEECH, modelId: "m" }],
    ["format", { ...base, outputFormat: "pcm_8000" }],
    ["text before", { ...base, previousText: "Oh." }],
    ["text behind", { ...base, nextText: "Oh." }],
    ["requests before", { ...base, previousRequestIds: ["r1"] }],
    ["dialogue", DIALOGUE],
  ];
  it.each(others)("another %s is another phrase", async (_what, request) => {
    const bench = rig();
    await speak(bench, base);
    expect((await speak(bench, request)).isHit).toBe(false);
    expect((await speak(bench, request)).isHit).toBe(true);
    expect((await speak(bench, base)).isHit).toBe(true);
  });

  it("a dialogue's voices, texts, their order and settings are part of it", async () => {
    const bench = rig();
    const [first, second] = DIALOGUE.inputs;
    if (first === undefined || second === undefined) throw new Error("A dialogue of two is expected");
    await speak(bench, DIALOGUE);
    expect((await speak(bench, { ...DIALOGUE, inputs: [second, first] })).isHit).toBe(false);
    const swapped = [
      { ...first, voiceId: second.voiceId },
      { ...second, voiceId: first.voiceId },
    ];
    expect((await speak(bench, { ...DIALOGUE, inputs: swapped })).isHit).toBe(false);
    expect((await speak(bench, { ...DIALOGUE, settings: { stability: 1 } })).isHit).toBe(false);
    expect((await speak(bench, DIALOGUE)).isHit).toBe(true);
  });

  it("is blind to the order of settings, to the priority and to logging that is on anyway", async () => {
    const bench = rig();
    await speak(bench, base);
    const same = { ...base, voiceSettings: { speed: 1.1, stability: 0.4 }, priority: 0, enableLogging: true };
    expect((await speak(bench, same)).isHit).toBe(true);
  });

  it("a chain of requests that name the ones before hits as a whole", async () => {
    const bench = rig();
    const further: SpeechRequest = { ...base, text: "And so on.", previousRequestIds: ["r1"] };
    await speak(bench, base);
    await speak(bench, further);
    const again = await speak(bench, base);
    const ids = again.recorder.heads.flatMap(({ requestId }) => requestId ?? []);
    expect((await speak(bench, { ...further, previousRequestIds: ids })).isHit).toBe(true);
  });
});

describe("PhraseCache: what is not kept", () => {
  it("zero retention, which goes straight through and shares nothing", async () => {
    const bench = rig();
    const request = { ...SPEECH, enableLogging: false };
    await speak(bench, SPEECH);
    bench.cache.open(request, new Recorder());
    bench.cache.open(request, new Recorder());
    expect(bench.asked).toHaveLength(3);
    for (const asked of bench.asked.slice(1)) asked.answer(timed(80));
    expect((await speak(bench, request)).isHit).toBe(false);
    expect(bench.cache.stats()).toMatchObject({ entries: 1, hits: 0, misses: 1, shared: 0 });
  });

  it("texts that are too long, all inputs of a dialogue together", async () => {
    const bench = rig({ maxPhraseChars: 24 });
    expect(SPEECH.text.length).toBeLessThanOrEqual(24);
    await speak(bench, SPEECH);
    await speak(bench, { ...DIALOGUE, inputs: [...DIALOGUE.inputs, { text: "!", voiceId: "tone-a" }] });
    expect(bench.cache.stats().entries).toBe(1);
    await speak(bench, DIALOGUE);
    expect(bench.cache.stats().entries).toBe(2);
  });

  it("what can't be sent: the upstream says why", async () => {
    const bench = rig();
    const recorder = new Recorder();
    bench.cache.open({ ...SPEECH, voiceId: ".." }, recorder);
    bench.last().fail(new GatewayError("unknown_voice", "Voice id can't be used"));
    expect((await recorder.failed()).code).toBe("unknown_voice");
    expect(bench.cache.stats()).toMatchObject({ misses: 0, bytes: 0 });
  });

  it("errors, before and after audio: they reach the reader, and nothing stays", async () => {
    const bench = rig();
    for (const chunks of [[], [timed(80)]]) {
      const recorder = new Recorder();
      bench.cache.open(SPEECH, recorder);
      bench
        .last()
        .head()
        .chunks(...chunks)
        .fail(new GatewayError("upstream_truncated", "It ended early"));
      expect((await recorder.failed()).code).toBe("upstream_truncated");
      expect(shown(recorder.chunks)).toEqual(shown(chunks));
    }
    expect(bench.asked).toHaveLength(2);
    expect(bench.cache.stats()).toMatchObject({ entries: 0, bytes: 0 });
  });

  it.each([
    ["no audio at all", SPEECH, [timed(0)]],
    ["half a sample", { ...SPEECH, outputFormat: "pcm_8000" }, [timed(81)]],
  ])("answers that every listener would fail by: %s", async (_what, request, answer) => {
    const bench = rig();
    expect((await speak(bench, request, answer)).recorder.isEnded).toBe(true);
    expect((await speak(bench, request, answer)).isHit).toBe(false);
  });

  it("speech that was given up", async () => {
    const bench = rig();
    const recorder = new Recorder();
    const synthesis = bench.cache.open(SPEECH, recorder);
    bench.last().head().chunks(timed(80));
    synthesis.abort();
    synthesis.abort();
    expect(bench.last().aborts).toBe(1);
    expect(bench.cache.stats()).toMatchObject({ entries: 0, bytes: 0 });
    expect((await speak(bench, SPEECH)).isHit).toBe(false);
  });
});

describe("PhraseCache: bounds", () => {
  const spoken = (index: number): SpeechRequest => ({ ...SPEECH, text: `Number ${index}.` });

  it("never takes more than maxBytes, and drops what was not asked for longest", async () => {
    const maxBytes = 200_000;
    const bench = rig({ maxBytes, maxPhraseBytes: 100_000 });
    for (let index = 0; index < 3; index += 1) await speak(bench, spoken(index), [timed(45_000)]);
    expect(bench.cache.stats().entries).toBe(3);
    await speak(bench, spoken(0));
    for (let index = 3; index < 5; index += 1) await speak(bench, spoken(index), [timed(45_000)]);
    expect(bench.cache.stats().bytes).toBeLessThanOrEqual(maxBytes);
    const hits: number[] = [];
    for (const index of [0, 3, 4]) if ((await speak(bench, spoken(index))).isHit) hits.push(index);
    expect(hits).toEqual([0, 3, 4]);
    expect((await speak(bench, spoken(1))).isHit).toBe(false);
  });

  it("counts what it holds: the bytes of the audio and the timing, and what is around them", async () => {
    const bench = rig();
    await speak(bench, spoken(1), [timed(10_000), timed(20_000)]);
    const { bytes } = bench.cache.stats();
    expect(bytes).toBeGreaterThan(30_000);
    expect(bytes).toBeLessThan(30_000 + 8_000);
    await speak(bench, spoken(2), [timed(10_000), timed(20_000)]);
    expect(bench.cache.stats().bytes).toBe(2 * bytes);
    bench.cache.close();
    expect(bench.cache.stats()).toMatchObject({ bytes: 0, entries: 0 });
  });

  it("a phrase that grows too big goes on for its reader, and its copy is dropped", async () => {
    const bench = rig({ maxPhraseBytes: 50_000 });
    const chunks = [timed(20_000), timed(20_000), timed(20_000), timed(20_000)];
    const { recorder } = await speak(bench, SPEECH, chunks);
    expect(shown(recorder.chunks)).toEqual(shown(chunks));
    expect(recorder.isEnded).toBe(true);
    expect(bench.cache.stats()).toMatchObject({ entries: 0, bytes: 0 });
  });

  it("does not drop for another what is being read: that would free nothing", async () => {
    const bench = rig({ maxBytes: 100_000, maxPhraseBytes: 80_000 });
    await speak(bench, spoken(1), [timed(60_000)]);
    const slow = new Recorder();
    const synthesis = bench.cache.open(spoken(1), slow);
    synthesis.pause();
    const { recorder } = await speak(bench, spoken(2), [timed(60_000)]);
    expect(recorder.isEnded).toBe(true);
    expect(bench.cache.stats().bytes).toBeLessThanOrEqual(100_000);
    expect((await speak(bench, spoken(1))).isHit).toBe(true);
    synthesis.resume();
    await slow.over();
    expect(slow.bytes).toBe(60_000);
    await speak(bench, spoken(2), [timed(60_000)]);
    expect((await speak(bench, spoken(1))).isHit).toBe(false);
  });

  it("a cache too small for anything passes all through", async () => {
    const bench = rig({ maxBytes: 100 });
    expect((await speak(bench, SPEECH)).recorder.isEnded).toBe(true);
    expect((await speak(bench, SPEECH)).isHit).toBe(false);
    expect(bench.cache.stats()).toMatchObject({ bytes: 0, entries: 0, misses: 2 });
  });

  it("keeps without end", async () => {
    const bench = rig();
    await speak(bench, SPEECH);
    bench.clock.advance(1000 * HOUR_MS);
    expect((await speak(bench, SPEECH)).isHit).toBe(true);
    expect(bench.clock.pending).toBe(0);
  });
});

describe("PhraseCache.close()", () => {
  it("forgets all, keeps nothing more, and lets what is being read come to its end", async () => {
    const bench = rig();
    await speak(bench, SPEECH, [timed(10), timed(20)]);
    const reading = new Recorder();
    const synthesis = bench.cache.open(SPEECH, reading);
    synthesis.pause();
    const coming = new Recorder();
    bench.cache.open({ ...SPEECH, text: "Further." }, coming);
    bench.cache.close();
    bench.cache.close();
    expect(bench.clock.pending).toBe(0);
    bench.last().answer(timed(30));
    synthesis.resume();
    await turns(1);
    expect([reading.bytes, reading.isEnded, coming.bytes, coming.isEnded]).toEqual([30, true, 30, true]);
    expect(bench.cache.stats()).toMatchObject({ bytes: 0, entries: 0 });
    expect((await speak(bench, SPEECH)).isHit).toBe(false);
    expect(bench.cache.stats()).toMatchObject({ bytes: 0, misses: 2 });
  });

  it("needs no clock of its own", () => {
    const { cache } = rig();
    const outer = new PhraseCache({ upstream: cache, maxBytes: 1000 });
    expect(outer.stats()).toEqual({
      hits: 0,
      misses: 0,
      shared: 0,
      bytes: 0,
      entries: 0,
      savedCharacters: 0,
    });
    outer.close();
  });
});
