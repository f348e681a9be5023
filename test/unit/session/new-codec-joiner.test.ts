/** One that joins in the middle in a codec which nobody has yet: it hears what those hear who had it from the beginning. */
import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/audio/bytes.ts";
import { encodeSamples, sampledFormatOf } from "../../../src/audio/codecs/samples.ts";
import { OggOpusEncoder } from "../../../src/audio/containers/ogg-encoder.ts";
import { createRig, evenAlignment, type FakeRequest } from "../../helpers/session-rig.ts";
import { SlowEncoder } from "../../helpers/slow-encoder.ts";
import { noise, tone } from "../audio/helpers.ts";

/** The first one ends in the middle of a frame; filled, all frames end with one of 120 ms. */
const TEXTS = ["The first is shorter than it.", "And the second goes on for a while behind it."];
const PER_LETTER_MS = 37;
const LENGTHS_MS = TEXTS.map((text) => text.length * PER_LETTER_MS);
const ALL_MS = LENGTHS_MS.reduce((sum, ms) => sum + ms, 500);
/** Of Opus: what it is made of rises from silence. A rendition of samples is made from a frame before its first one on. */
const RISE_MS = 5;
/** Of the highest rate: whoever joins, the upstream is asked for that. */
const BEST = "format=pcm_48000&frame_ms=40";
const EARLY = "format=pcm_48000&lead_ms=5000&events=none";
const BURST = "format=pcm_48000&pace=burst&events=none";
const SPOKEN = "role=listener&events=words";

type Rig = ReturnType<typeof createRig>;
type Joined = ReturnType<Rig["join"]>;

function answer(open: FakeRequest | undefined, seed: number): void {
  if (open === undefined) throw new Error("No such request");
  const text = TEXTS[seed] ?? "";
  const ms = LENGTHS_MS[seed] ?? 0;
  const format = open.request.outputFormat;
  const sampled = sampledFormatOf(format);
  open.head();
  const alignment = evenAlignment(text, PER_LETTER_MS);
  if (sampled === null) {
    const opus = new OggOpusEncoder({ bitrateKbps: 64 });
    const pcm = tone({ hz: 440 + 110 * seed, rate: 48_000, samples: ms * 48 });
    open.chunk(concatBytes([opus.push(pcm), opus.flush()]), { alignment });
    opus.close();
  } else {
    const pcm = noise(Math.round((ms * sampled.sampleRate) / 1000), seed + 1);
    open.chunk(Uint8Array.from(encodeSamples(sampled.codec, pcm)), { alignment });
  }
  open.handlers.end();
}

interface Staged {
  /** Utterances, default 2. */
  readonly count?: number | undefined;
  readonly resumeMs?: number;
  readonly encoders?: number;
}

/** Utterances for these listeners. */
function stage(listeners: readonly string[], options: Staged = {}) {
  const encoder = new SlowEncoder(1, options.encoders);
  const { resumeMs = 5000, count = TEXTS.length } = options;
  const rig = createRig({ maxListeners: 100, aheadMs: 5000, graceMs: 60_000, resumeMs }, encoder.pool);
  let answered: number | null = null;
  const answerAll = (): void => {
    answered ??= 0;
    for (; answered < rig.requests.length; answered += 1) answer(rig.requests[answered], answered);
  };
  const run = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5) {
      if (answered !== null) answerAll();
      rig.clock.advance(5);
      encoder.turn();
      await Promise.resolve();
    }
  };
  const speaker = rig.join("role=speaker&events=none");
  const there = listeners.map((query) => rig.join(`role=listener&${query}`));
  const ask = (): void => {
    TEXTS.slice(0, count).forEach((text, seed) => {
      speaker.send({ type: "speak", text, voice_id: "v", utterance_id: `u${seed}` });
    });
  };
  return { rig, run, there, ask, answerAll };
}

/** It comes when the first utterance was asked for, so that it changes nothing of what is asked for. */
async function fromTheBeginning(
  listeners: readonly string[],
  query: string,
  count?: number,
): Promise<Joined> {
  const { rig, run, ask, answerAll } = stage(listeners, { count });
  ask();
  const joined = rig.join(`${SPOKEN}&${query}`);
  answerAll();
  await run(ALL_MS);
  return joined;
}

interface Late {
  readonly listeners: readonly string[];
  readonly query: string;
  readonly atMs: number;
  readonly count?: number | undefined;
}

async function inTheMiddle({ listeners, query, atMs, count }: Late): Promise<Joined> {
  const { rig, run, ask, answerAll } = stage(listeners, { count });
  ask();
  answerAll();
  await run(atMs);
  const joined = rig.join(`${SPOKEN}&${query}`);
  await run(ALL_MS - atMs);
  return joined;
}

function startMsOf({ listener }: Joined): number {
  return listener.eventsOf("hello")[0]?.audio?.start_ms ?? Number.NaN;
}

const samplesOf = (audio: Buffer): Int16Array => new Int16Array(Uint8Array.from(audio).buffer);

function audioFrom({ listener }: Joined, fromMs: number): Buffer {
  const { start_ms = 0, frame_ms = 1 } = listener.eventsOf("hello")[0]?.audio ?? {};
  const bytesPerMs = (listener.frames[0]?.byteLength ?? 0) / frame_ms;
  return Buffer.concat(listener.frames).subarray(Math.round((fromMs - start_ms) * bytesPerMs));
}

const QUERIES = [
  "format=ulaw_8000",
  "format=alaw_8000&frame_ms=60",
  "format=pcm_16000&frame_ms=30",
  "format=pcm_24000",
  "format=pcm_44100&frame_ms=10",
  // The packets of the encoder in the test are its samples.
  "format=opus_48000",
  "format=opus_48000&frame_ms=60",
];

describe.each([
  ["where all take it as it is heard", ["format=alaw_8000", BEST], 2],
  ["where one takes it as it is made", ["format=alaw_8000", BURST], 2],
  ["where one gets it long before it is due", ["format=alaw_8000", EARLY], 2],
  ["of what comes in the first one's codec", ["format=alaw_8000"], 1],
])("a joiner in a codec that nobody has, %s", (_, listeners, count) => {
  it.each(QUERIES)("gets all from the playhead on, whenever it comes: %s", async (query) => {
    const steady = await fromTheBeginning(listeners, query, count);
    const endMs = LENGTHS_MS.slice(0, count).reduce((sum, ms) => sum + ms, 0);
    for (let atMs = 15; atMs < endMs; atMs += 185) {
      const late = await inTheMiddle({ listeners, query, atMs, count });
      const hello = late.listener.eventsOf("hello")[0];
      const startMs = hello?.audio?.start_ms ?? 0;
      expect(startMs).toBeLessThanOrEqual(hello?.at_ms ?? 0);
      expect(startMs).toBeGreaterThan((hello?.at_ms ?? 0) - (hello?.audio?.frame_ms ?? 0));
      const fromMs = startMs + (query.includes("opus") ? RISE_MS : 0);
      const [got, wanted] = [late, steady].map((one) => audioFrom(one, fromMs));
      expect({ atMs, isSame: got?.equals(wanted ?? Buffer.alloc(0)) }).toEqual({ atMs, isSame: true });
    }
  });
});

describe("a joiner in a codec that nobody has", () => {
  it.each([["format=opus_48000"], ["format=opus_48000", "format=opus_48000&pace=burst&events=none"]])(
    "gets Opus that came from upstream decoded without a splice: %s",
    async (...listeners) => {
      const query = "format=pcm_48000";
      const steady = await fromTheBeginning(listeners, query, 1);
      for (const atMs of [15, 220, 400, 790]) {
        const late = await inTheMiddle({ listeners, query, atMs, count: 1 });
        const startMs = startMsOf(late);
        expect(startMs).toBeLessThanOrEqual(late.listener.eventsOf("hello")[0]?.at_ms ?? 0);
        const [got, wanted] = [late, steady].map((one) => samplesOf(audioFrom(one, startMs + RISE_MS)));
        expect(got?.length).toBe(wanted?.length);
        const differences = (got ?? new Int16Array()).map((sample, at) =>
          Math.abs(sample - (wanted?.[at] ?? 0)),
        );
        const most = differences.reduce((one, other) => Math.max(one, other), 0);
        expect(most).toBeLessThan(100);
      }
    },
  );

  it("gets it in its other codec, too, where it changes its own", async () => {
    const listeners = ["format=alaw_8000", BURST];
    const steady = await fromTheBeginning(listeners, "format=ulaw_8000");
    const { run, there, ask, answerAll } = stage(listeners);
    const [changing] = there;
    if (changing === undefined) throw new Error("Nobody is there");
    ask();
    answerAll();
    await run(615);
    const before = changing.listener.frames.length;
    changing.send({ type: "configure", format: "ulaw_8000" });
    const [configured] = changing.listener.eventsOf("configured");
    const startMs = configured?.audio?.start_ms ?? 0;
    expect(startMs).toBe(600);
    await run(4000);
    const got = Buffer.concat(changing.listener.frames.slice(before));
    expect(got.equals(audioFrom(steady, startMs))).toBe(true);
  });

  it("begins behind what was made where no audio is kept", async () => {
    const { rig, run, ask, answerAll } = stage(["format=alaw_8000", EARLY], { resumeMs: 0 });
    ask();
    answerAll();
    await run(400);
    const late = rig.join(`${SPOKEN}&format=ulaw_8000`);
    await run(4000);
    expect(startMsOf(late)).toBeGreaterThan(2400);
    expect(late.listener.frames).toEqual([]);
    expect(late.listener.eventsOf("utterance.done")).toHaveLength(2);
  });

  it("begins again behind an utterance that is over: nothing is encoded for it", async () => {
    const { rig, run, ask, answerAll } = stage(["format=alaw_8000"]);
    ask();
    answerAll();
    await run(4000);
    const late = rig.join(`${SPOKEN}&format=ulaw_8000`);
    await run(500);
    expect(startMsOf(late)).toBe(late.listener.eventsOf("hello")[0]?.at_ms);
    expect(late.listener.frames).toEqual([]);
  });

  it("gets an error where no encoder is free for it", async () => {
    const { rig, run, ask, answerAll } = stage(["format=alaw_8000", BURST], { encoders: 0 });
    ask();
    answerAll();
    await run(400);
    const late = rig.join(`${SPOKEN}&format=opus_48000`);
    await run(4000);
    const types = late.listener.events.map(({ type }) => type);
    expect(types[0]).toBe("hello");
    expect(late.listener.eventsOf("error")).toMatchObject([{ code: "encoder_failed" }]);
    expect(rig.counters.refusals.byReason.get("encoder_failed")).toBe(1);
  });
});
