/** Voices of models in the pool of voice workers, spoken by a scripted engine. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { GatewayError } from "../../../../../src/errors.ts";
import {
  type JobChunk,
  type JobInput,
  type JobSpec,
  PLAIN_JOB,
} from "../../../../../src/service/voice/messages.ts";
import type {
  EngineAudio,
  EngineHandlers,
  EnginePiece,
} from "../../../../../src/service/voice/neural/speech-engine.ts";
import { VoicePool } from "../../../../../src/service/voice/pool.ts";
import { until } from "../../../../helpers/until.ts";
import { watchedLog } from "../../../../helpers/watched-log.ts";
import { TINY_RATE, TINY_TEXT, tinySpeech, tinyWords } from "../../../../kit/tiny-voice.ts";

/** Answers when it is told to, in any order. */
class ScriptedEngine {
  readonly restarts = 0;
  readonly asked: { piece: EnginePiece; handlers: EngineHandlers; isCancelled: boolean }[] = [];
  isClosed = false;

  speak(piece: EnginePiece, handlers: EngineHandlers): { cancel(): void } {
    const one = { piece, handlers, isCancelled: false };
    this.asked.push(one);
    return {
      cancel: () => {
        one.isCancelled = true;
      },
    };
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

const NEURAL: JobInput = {
  text: TINY_TEXT,
  voiceId: "tiny.2",
  languageCode: null,
  neural: { model: "tiny", speaker: 2, language: "en" },
};
const SPEC: JobSpec = {
  ...PLAIN_JOB,
  inputs: [NEURAL],
  format: "pcm_22050",
  wantsTiming: true,
  normalization: "auto",
};

const engine = new ScriptedEngine();
const pool = new VoicePool({ workers: 1, log: watchedLog, warmsUp: false, engine });

beforeAll(() => pool.start());
afterEach(() => {
  engine.asked.length = 0;
});
afterAll(() => pool.close());

function rig() {
  const say = (spec: JobSpec) => {
    const heard = { chunks: [] as JobChunk[], isDone: false, error: undefined as GatewayError | undefined };
    const job = pool.open(spec, {
      chunk: (chunk) => {
        heard.chunks.push(chunk);
        job.acknowledge(chunk.audio.length);
      },
      done: () => {
        heard.isDone = true;
      },
      failed: (error) => {
        heard.error = error;
      },
    });
    return { heard, job };
  };
  const asked = async (count: number) => {
    await until(`${count} pieces are asked for`, () => engine.asked.length >= count);
    const one = engine.asked[count - 1];
    if (one === undefined) throw new RangeError("Nothing was asked for");
    return one;
  };
  return { say, asked };
}

const silence = (seconds: number): EngineAudio => ({
  samples: new Int16Array(seconds * TINY_RATE),
  sampleRate: TINY_RATE,
});

/** Start of each character of the text, seconds. */
const startsOf = (chunks: readonly JobChunk[]) =>
  chunks.flatMap(({ timing }) => timing?.alignment?.character_start_times_seconds ?? []);
const textOf = (chunks: readonly JobChunk[]) =>
  chunks.flatMap(({ timing }) => timing?.alignment?.characters ?? []).join("");
const samplesOf = (chunks: readonly JobChunk[]) =>
  chunks.reduce((sum, { audio }) => sum + audio.length / 2, 0);

describe("a job with the voice of a model", () => {
  it("times each word of real speech within a tenth of a second, and gives all of its samples", async () => {
    const { say, asked } = rig();
    const { heard } = say(SPEC);
    const { piece, handlers } = await asked(1);
    expect(piece).toEqual({ model: "tiny", speaker: 2, text: TINY_TEXT, speed: 1, isRepeatable: false });
    const words = await tinyWords();
    const samples = tinySpeech(words);
    const { length } = samples;
    handlers.spoken({ samples, sampleRate: TINY_RATE });
    await until("it is spoken", () => heard.isDone);
    expect(samplesOf(heard.chunks)).toBe(length);
    expect(textOf(heard.chunks)).toBe(TINY_TEXT);
    const starts = startsOf(heard.chunks);
    let at = 0;
    for (const { word, startSeconds } of words) {
      at = TINY_TEXT.toLowerCase().indexOf(word, at);
      expect(Math.abs((starts[at] ?? 0) - startSeconds), word).toBeLessThan(0.1);
    }
  });

  it("spreads the words over what sounds where it is not like the text", async () => {
    const { say, asked } = rig();
    const input = { ...NEURAL, neural: { model: "tiny", speaker: 0, language: null } };
    const { heard } = say({ ...SPEC, inputs: [{ ...input, text: "Aaaa bbbb." }] });
    const { handlers } = await asked(1);
    const samples = Int16Array.from({ length: 2 * TINY_RATE }, (_, at) =>
      at < TINY_RATE ? 0 : Math.round(8000 * Math.sin(at / 5)),
    );
    handlers.spoken({ samples, sampleRate: TINY_RATE });
    await until("it is spoken", () => heard.isDone);
    const starts = startsOf(heard.chunks);
    expect(starts[0]).toBeGreaterThan(0.9);
    expect(starts[5]).toBeGreaterThan(1.3);
    expect(starts[5]).toBeLessThan(1.7);
  });

  it("asks piece by piece, in plain text, faster where it is to be faster, and resamples", async () => {
    const { say, asked } = rig();
    const text = 'Tom & Jerry < [[Spike]]. <break time="1s"/>[[Then]] more.';
    const { heard } = say({
      ...SPEC,
      speed: 1.2,
      seed: 3,
      normalization: "off",
      inputs: [{ ...NEURAL, text }],
      wantsTiming: false,
    });
    const first = await asked(1);
    expect(first.piece).toMatchObject({ speed: 1.2, isRepeatable: true });
    expect(first.piece.text).toBe("Tom & Jerry < [[Spike]]. ");
    first.handlers.spoken({ samples: new Int16Array(16_000).fill(1000), sampleRate: 16_000 });
    for (let count = 2; !heard.isDone; count += 1) {
      const next = await Promise.race([asked(count), until("it is over", () => heard.isDone)]);
      if (next === undefined) break;
      next.handlers.spoken(silence(0.5));
    }
    // Its break is heard as well.
    expect(samplesOf(heard.chunks)).toBeGreaterThan(2.4 * TINY_RATE);
  });

  it("takes turns with the embedded voice in a dialogue", async () => {
    const { say, asked } = rig();
    const embedded: JobInput = { text: "Hello there.", voiceId: "21m00Tcm4TlvDq8ikWAM", languageCode: null };
    const { heard } = say({ ...SPEC, inputs: [embedded, NEURAL, embedded] });
    (await asked(1)).handlers.spoken(silence(2));
    await until("it is spoken", () => heard.isDone);
    const voices = heard.chunks.flatMap(
      ({ timing }) => timing?.voiceSegments.map(({ voice_id }) => voice_id) ?? [],
    );
    expect(voices.filter((voice, index) => voice !== voices[index - 1])).toEqual([
      embedded.voiceId,
      "tiny.2",
      embedded.voiceId,
    ]);
  });

  it("lets others speak while it waits", async () => {
    const { say, asked } = rig();
    const waiting = say(SPEC);
    await asked(1);
    const other = say({ ...SPEC, inputs: [{ ...NEURAL, text: "Three." }] });
    (await asked(2)).handlers.spoken(silence(1));
    await until("the other one is spoken", () => other.heard.isDone);
    expect(waiting.heard.chunks).toEqual([]);
    waiting.job.cancel();
  });

  it("that is cancelled asks no more, and what comes late is dropped", async () => {
    const { say, asked } = rig();
    const { heard, job } = say({ ...SPEC, inputs: [{ ...NEURAL, text: `${TINY_TEXT} `.repeat(5) }] });
    const first = await asked(1);
    job.cancel();
    expect(first.isCancelled).toBe(true);
    first.handlers.spoken(silence(1));
    await until("it is over", () => pool.stats.jobs_active === 0);
    expect(engine.asked).toHaveLength(1);
    expect(heard).toMatchObject({ chunks: [], isDone: false, error: undefined });
  });

  it("fails with the engine's error, once", async () => {
    const { say, asked } = rig();
    const before = pool.stats;
    const { heard } = say(SPEC);
    const { handlers } = await asked(1);
    const error = new GatewayError("voice_model_broken", "No such voice", { field: "voice-models" });
    handlers.failed(error);
    await until("it is over", () => pool.stats.jobs_active === 0);
    expect(heard).toMatchObject({ chunks: [], isDone: false, error });
    expect(pool.stats).toMatchObject({
      jobs_failed: before.jobs_failed + 1,
      jobs_cancelled: before.jobs_cancelled,
    });
  });

  it("gives silence where the engine can say nothing", async () => {
    const { say, asked } = rig();
    const { heard } = say(SPEC);
    (await asked(1)).handlers.spoken({ samples: new Int16Array(0), sampleRate: TINY_RATE });
    await until("it is spoken", () => heard.isDone);
    expect(textOf(heard.chunks)).toBe(TINY_TEXT);
    expect(new Set(heard.chunks.flatMap(({ audio }) => [...audio]))).toEqual(new Set([0]));
  });
});
