import { OpusDecoder } from "opus-decoder";
import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/audio/bytes.ts";
import { createOpusDecoder } from "../../../src/audio/codecs/opus-decoder.ts";
import { OpusEncoder } from "../../../src/audio/codecs/opus-encoder.ts";
import { decodeSamples, encodeSamples, type SampleCodec } from "../../../src/audio/codecs/samples.ts";
import { OggOpusEncoder } from "../../../src/audio/containers/ogg-encoder.ts";
import { GatewayError } from "../../../src/errors.ts";
import { type Slice, Source, silenceSlice } from "../../../src/session/source.ts";
import { TICKS_PER_SECOND, ticksPerSample } from "../../../src/timing/ticks.ts";
import { spliceStep } from "../../helpers/splice-step.ts";
import { concatPcm, largestStep, noise, pieces, tone } from "../audio/helpers.ts";

const PCM_RATES = [8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];
interface Kind {
  readonly format: string;
  readonly codec: SampleCodec;
  readonly rate: number;
}
const KINDS: readonly Kind[] = [
  { format: "ulaw_8000", codec: "ulaw", rate: 8000 },
  { format: "alaw_8000", codec: "alaw", rate: 8000 },
  ...PCM_RATES.map((rate) => ({ format: `pcm_${rate}`, codec: "pcm" as const, rate })),
];
const MS = TICKS_PER_SECOND / 1000;

/** Noise that is not sound, off centre: what a codec leaves where nobody speaks. */
function hush(samples: number): Int16Array {
  return noise(samples, 7).map((sample) => 20 + (sample >> 10));
}

function sound(samples: number): Int16Array {
  return Int16Array.from({ length: samples }, (_, at) => (at % 2 === 0 ? 9000 : -9000));
}

function samplesOf(ms: number, rate: number): number {
  return Math.round((ms * rate) / 1000);
}

/** Pieces of `size` bytes, each at an odd address of memory that others use too. */
function chunks(bytes: Uint8Array, size: number): Uint8Array[] {
  const shared = new Uint8Array(bytes.length + 1);
  shared.set(bytes, 1);
  const cuts = Array.from({ length: Math.ceil(bytes.length / size) + 1 }, (_, at) =>
    Math.min(at * size, bytes.length),
  );
  return cuts.slice(1).map((end, index) => shared.subarray(1 + (cuts[index] ?? 0), 1 + end));
}

function drain(source: Source, maxTicks: number): Slice[] {
  const slices: Slice[] = [];
  for (let slice = source.take(maxTicks); slice !== undefined; slice = source.take(maxTicks)) {
    slices.push(slice);
  }
  return slices;
}

function rawOf(slices: readonly Slice[]): Uint8Array {
  // Plain bytes and no Buffer, so that they compare.
  return new Uint8Array(concatBytes(slices.flatMap((slice) => [...slice.raw()])));
}

function sourceOf(format: string, bytes: Uint8Array): Source {
  const source = new Source(format);
  source.push(bytes);
  return source;
}

/** Pushes chunk by chunk and asks after each, as the feed does. */
function dropLeading(
  source: Source,
  parts: readonly Uint8Array[],
  limit: { maxTicks: number; keepTicks: number },
): { dropped: number | null; asked: number } {
  let dropped = source.dropLeadingSilence(limit, false);
  let asked = 0;
  for (const [index, part] of parts.entries()) {
    source.push(part);
    if (dropped !== null) continue;
    asked = index + 1;
    dropped = source.dropLeadingSilence(limit, index === parts.length - 1);
  }
  return { dropped, asked };
}

describe.each(KINDS)("Source of $format", ({ format, codec, rate }) => {
  const perSample = ticksPerSample(rate);
  const width = codec === "pcm" ? 2 : 1;
  const encode = (...parts: Int16Array[]) => encodeSamples(codec, concatPcm(parts));
  const limit = { maxTicks: 40 * MS, keepTicks: 10 * MS };
  const keep = Math.ceil(limit.keepTicks / perSample);
  const most = Math.floor(limit.maxTicks / perSample);

  it("passes bytes through as they came, for any split and any slice", () => {
    const bytes = encodeSamples(codec, noise(1200));
    for (const size of [1, 3, 160, 5000]) {
      for (const maxTicks of [1, 7 * perSample, 20 * MS]) {
        const source = new Source(format);
        for (const part of chunks(bytes, size)) source.push(part);
        expect(source.receivedTicks).toBe(1200 * perSample);
        const slices = drain(source, maxTicks);
        expect(rawOf(slices)).toEqual(bytes);
        expect(slices.reduce((total, slice) => total + slice.ticks, 0)).toBe(1200 * perSample);
        expect(source.hasAudio).toBe(false);
        source.finish();
      }
    }
  });

  it.each([
    ["shorter than what is kept", 4],
    ["shorter than the limit", 25],
    ["as long as the limit and less than what is kept more", 45],
    ["longer than the limit", 90],
    ["none", 0],
  ])("dropLeadingSilence(): %s, the same for any split", (_, silentMs) => {
    const silent = samplesOf(silentMs, rate);
    const bytes = encode(hush(silent), sound(300), hush(100), sound(50));
    const expected = Math.max(0, Math.min(silent, most) - keep);
    for (const size of [1, 5, 333, 100_000]) {
      const source = new Source(format);
      const { dropped, asked } = dropLeading(source, chunks(bytes, size), limit);
      expect(dropped).toBe(expected * perSample);
      // It answers with the first sound, or as soon as the limit is reached.
      expect(asked).toBe(Math.ceil((Math.min(silent + 1, most) * width) / size));
      expect(source.receivedTicks).toBe((bytes.length / width) * perSample);
      expect(source.dropLeadingSilence(limit, true)).toBe(0);
      expect(rawOf(drain(source, 20 * MS))).toEqual(bytes.slice(expected * width));
    }
  });

  it("dropLeadingSilence(): answers for a response that is all silent when it is complete", () => {
    const silent = samplesOf(30, rate);
    const source = sourceOf(format, encode(hush(silent)));
    expect(source.dropLeadingSilence(limit, false)).toBeNull();
    expect(source.hasAudio).toBe(true);
    expect(source.dropLeadingSilence(limit, true)).toBe((silent - keep) * perSample);
    expect(source.trailingSilenceTicks).toBe(keep * perSample);
    expect(drain(source, 100 * MS).reduce((total, slice) => total + slice.ticks, 0)).toBe(keep * perSample);
    expect(new Source(format).dropLeadingSilence(limit, false)).toBeNull();
    expect(new Source(format).dropLeadingSilence(limit, true)).toBe(0);
  });

  it("dropLeadingSilence(): nothing to drop is known at once", () => {
    const source = sourceOf(format, encode(hush(100)));
    expect(source.dropLeadingSilence({ maxTicks: 10 * MS, keepTicks: 10 * MS }, false)).toBe(0);
    const taken = sourceOf(format, encode(hush(1000)));
    taken.take(perSample);
    expect(taken.dropLeadingSilence(limit, true)).toBe(0);
  });

  it.each([4, 25, 45, 90, 0])("dropTrailingSilence(): of %d ms, the same for any split", (silentMs) => {
    const silent = samplesOf(silentMs, rate);
    const bytes = encode(hush(500), sound(101), hush(silent));
    const expected = Math.max(0, Math.min(silent - keep, most));
    for (const size of [1, 5, 333, 100_000]) {
      const source = new Source(format);
      for (const part of chunks(bytes, size)) source.push(part);
      expect(source.trailingSilenceTicks).toBe(silent * perSample);
      expect(source.dropTrailingSilence(limit)).toBe(expected * perSample);
      expect(source.trailingSilenceTicks).toBe((silent - expected) * perSample);
      expect(source.receivedTicks).toBe((bytes.length / width) * perSample);
      expect(rawOf(drain(source, 20 * MS))).toEqual(bytes.slice(0, bytes.length - expected * width));
      expect(source.trailingSilenceTicks).toBe((silent - expected) * perSample);
      source.finish();
    }
  });

  it("dropTrailingSilence(): drops no more than is here, and counts what was taken as kept", () => {
    const silent = samplesOf(30, rate);
    for (const left of [0, 3, keep]) {
      const source = sourceOf(format, encode(sound(40), hush(silent)));
      source.take((40 + silent - left) * perSample);
      expect(source.trailingSilenceTicks).toBe(silent * perSample);
      expect(source.dropTrailingSilence(limit)).toBe(Math.min(left, silent - keep) * perSample);
      expect(source.hasAudio).toBe(left > silent - keep);
    }
  });

  it("made with the memory of another gives only what was pushed to it", () => {
    const first = new Source(format);
    first.push(new Uint8Array(9000).fill(7));
    first.take(100 * MS);
    const second = new Source(format, first.close());
    expect(second.hasAudio).toBe(false);
    expect(second.take(MS)).toBeUndefined();
    const bytes = new Uint8Array(20_000).map((_, at) => at % 251);
    for (const chunk of chunks(bytes, 3000)) second.push(chunk);
    expect(rawOf(drain(second, 50 * MS))).toEqual(bytes);
  });

  it("fadeIn(): changes the first samples only, however they are taken", () => {
    // Quiet samples within the rise do not end it, wherever a slice begins.
    const bytes = encode(sound(10), hush(4), sound(986));
    const length = Math.floor((3 * MS) / perSample);
    const whole = rawOf(drain(faded(), 100 * MS));
    const pcm = decodeSamples(codec, whole);
    expect(Math.abs(pcm[0] ?? 1)).toBeLessThanOrEqual(8);
    expect(Math.abs(pcm[length - 1] ?? 0)).toBeGreaterThan(7000);
    expect(whole.slice(length * width)).toEqual(bytes.slice(length * width));
    for (const maxTicks of [perSample, 5 * perSample, (length - 1) * perSample, 20 * MS]) {
      expect(rawOf(drain(faded(), maxTicks))).toEqual(whole);
    }
    // Asked before anything came.
    const early = new Source(format);
    early.fadeIn(3 * MS);
    early.push(bytes);
    expect(rawOf(drain(early, 20 * MS))).toEqual(whole);

    function faded(): Source {
      const source = sourceOf(format, bytes);
      source.fadeIn(3 * MS);
      return source;
    }
  });

  it("fadeOut(): changes the last samples only, once", () => {
    const bytes = encode(sound(1000));
    const length = Math.floor((3 * MS) / perSample);
    for (const size of [1, 7, 100_000]) {
      const source = new Source(format);
      for (const part of chunks(bytes, size)) source.push(part);
      source.fadeOut(3 * MS);
      expect(source.trailingSilenceTicks).toBeGreaterThan(0);
      source.fadeOut(3 * MS);
      const raw = rawOf(drain(source, 20 * MS));
      const start = bytes.length - length * width;
      expect(raw).toHaveLength(bytes.length);
      expect(raw.slice(0, start)).toEqual(bytes.slice(0, start));
      const end = decodeSamples(codec, raw.slice(start));
      expect(Math.abs(end[length - 1] ?? 1)).toBeLessThanOrEqual(8);
      expect(Math.abs(end[0] ?? 0)).toBeGreaterThan(7000);
    }
  });

  it("fades leave a quiet start or end alone, and never change pushed audio", () => {
    const quiet = encode(hush(60), sound(300), hush(60));
    const source = sourceOf(format, quiet);
    source.fadeIn(3 * MS);
    source.fadeOut(3 * MS);
    expect(rawOf(drain(source, 20 * MS))).toEqual(quiet);

    const loud = encode(sound(400));
    const before = loud.slice();
    const shared = sourceOf(format, loud);
    shared.fadeIn(3 * MS);
    shared.fadeOut(3 * MS);
    expect(rawOf(drain(shared, 20 * MS))).not.toEqual(before);
    expect(loud).toEqual(before);
  });

  it("fadeOut(): takes what is left where that is shorter than the fade", () => {
    const source = sourceOf(format, encode(sound(400)));
    source.take(398 * perSample);
    source.fadeOut(3 * MS);
    const pcm = decodeSamples(codec, rawOf(drain(source, 20 * MS)));
    expect(pcm).toHaveLength(2);
    expect(Math.abs(pcm[1] ?? 1)).toBeLessThanOrEqual(8);
    source.fadeOut(3 * MS);
    expect(source.hasAudio).toBe(false);
  });

  it("joins two tones that were cut at their peaks without a click", () => {
    const cut = peaks(rate);
    const window = samplesOf(5, rate);
    const step = (join: Int16Array, at: number) =>
      spliceStep(join.slice(at - window, at), join.slice(at, at + window));
    const plain = joined(format, cut, 0);
    const smooth = joined(format, cut, 3 * MS);
    const splice = cut.before.length;
    expect(smooth).toHaveLength(plain.length);
    expect(step(plain, splice)).toBeGreaterThan(4);
    expect(step(smooth, splice)).toBeLessThan(0.1);
    // The fade itself is nowhere steeper than one and a half times the tone.
    expect(largestStep(smooth)).toBeLessThan(1.5 * largestStep(cut.before));
    if (rate >= 24_000) {
      const gain = highBandDb(smooth, splice, rate) - highBandDb(plain, splice, rate);
      expect(gain).toBeLessThan(-40);
    }
  });

  it("silenceSlice() is whole samples of silence", () => {
    const slice = silenceSlice(format, 20 * MS + perSample - 1);
    const samples = Math.floor((20 * MS + perSample - 1) / perSample);
    expect(slice).toMatchObject({ format, ticks: samples * perSample, pcmRate: rate });
    expect(rawOf([slice])).toEqual(encode(new Int16Array(samples)));
    expect(slice.pcm()).toHaveLength(samples);
    expect(Math.max(...slice.pcm())).toBeLessThanOrEqual(8);
    expect(silenceSlice(format, perSample - 1).ticks).toBe(0);
    expect(silenceSlice(format, -5).ticks).toBe(0);
  });
});

interface Cut {
  readonly before: Int16Array;
  readonly after: Int16Array;
}

/** 440 Hz up to a peak, then from a trough on. */
function peaks(rate: number): Cut {
  const samples = Math.round(rate / 5);
  const whole = tone({ hz: 440, rate, samples });
  const end = Math.round((40.25 * rate) / 440) + 1;
  const start = Math.round((20.75 * rate) / 440);
  return { before: whole.slice(0, end), after: whole.slice(start) };
}

function joined(format: string, { before, after }: Cut, fadeTicks: number): Int16Array {
  const codec = (format.split("_")[0] ?? "") as SampleCodec;
  const first = sourceOf(format, encodeSamples(codec, before));
  const second = sourceOf(format, encodeSamples(codec, after));
  first.fadeOut(fadeTicks);
  second.fadeIn(fadeTicks);
  return concatPcm([...drain(first, 20 * MS), ...drain(second, 20 * MS)].map((slice) => slice.pcm()));
}

/** Energy above 6 kHz of the 20 ms around a splice, dB. */
function highBandDb(pcm: Int16Array, splice: number, rate: number): number {
  const length = Math.round(rate / 50);
  let energy = 0;
  for (let bin = Math.ceil((6000 * length) / rate); bin < length / 2; bin += 1) {
    let [re, im] = [0, 0];
    for (let at = 0; at < length; at += 1) {
      const window = 0.5 - 0.5 * Math.cos((2 * Math.PI * (at + 0.5)) / length);
      const sample = (pcm[splice - length / 2 + at] ?? 0) * window;
      re += sample * Math.cos((2 * Math.PI * bin * at) / length);
      im += sample * Math.sin((2 * Math.PI * bin * at) / length);
    }
    energy += re * re + im * im;
  }
  return 10 * Math.log10(energy);
}

describe("Source of PCM that ends inside a sample", () => {
  it("fades and drops whole samples, and ends well", () => {
    const bytes = encodeSamples("pcm", concatPcm([sound(200), hush(50)]));
    const source = sourceOf("pcm_16000", concatBytes([bytes, Uint8Array.of(9)]));
    expect(source.dropTrailingSilence({ maxTicks: 100 * MS, keepTicks: 0 })).toBe(
      50 * ticksPerSample(16_000),
    );
    source.fadeOut(3 * MS);
    expect(rawOf(drain(source, 20 * MS)).slice(0, 300)).toEqual(bytes.slice(0, 300));
    expect(() => source.finish()).not.toThrow();
    // The other half of the sample comes.
    source.push(Uint8Array.of(1));
    expect(rawOf(drain(source, 20 * MS))).toEqual(Uint8Array.of(9, 1));
    source.finish();
  });

  it("is empty when it is closed", () => {
    const source = sourceOf("pcm_16000", new Uint8Array(7));
    source.close();
    source.close();
    expect(source.hasAudio).toBe(false);
    expect(source.take(MS)).toBeUndefined();
  });
});

describe("Source of Opus", () => {
  it("speechTicks is what is heard of it: without the pre-skip, and without what fills its last packet", () => {
    const short = new OggOpusEncoder({ bitrateKbps: 64 });
    const bytes = concatBytes([short.push(new Int16Array(5000)), short.flush()]);
    short.close();
    const source = new Source("opus_48000_64");
    source.push(bytes);
    expect(source.receivedTicks).toBe((6 * 960 * TICKS_PER_SECOND) / 48_000);
    expect(source.speechTicks).toBe((5000 * TICKS_PER_SECOND) / 48_000);
  });

  const encoder = new OggOpusEncoder({ bitrateKbps: 64 });
  const quiet = concatPcm([new Int16Array(9600), tone({ hz: 440, rate: 48_000, samples: 9600 })]);
  const ogg = concatBytes([encoder.push(quiet), encoder.push(new Int16Array(9600)), encoder.flush()]);
  encoder.close();

  it("takes packets as they are: nothing is dropped or faded", () => {
    const plain = rawOf(drain(sourceOf("opus_48000_64", ogg), 20 * MS));
    const source = new Source("opus_48000_64");
    const limit = { maxTicks: 400 * MS, keepTicks: 0 };
    expect(source.dropLeadingSilence(limit, false)).toBe(0);
    for (const part of pieces(ogg, [0, 10, 500, ogg.length])) source.push(part);
    source.fadeIn(3 * MS);
    source.fadeOut(3 * MS);
    expect(source.dropTrailingSilence(limit)).toBe(0);
    expect(source.trailingSilenceTicks).toBe(0);
    const slices = drain(source, 20 * MS);
    expect(rawOf(slices)).toEqual(plain);
    expect(slices.every((slice) => slice.ticks === 20 * MS && slice.pcm().length === 960)).toBe(true);
    expect(source.receivedTicks).toBe(slices.length * 20 * MS);
    expect(source.preSkipTicks).toBeGreaterThan(0);
    source.finish();
    source.close();
  });

  it("silenceSlice() is whole packets, never longer than asked", () => {
    const cases: [number, number][] = [
      [-1, 0],
      [0, 0],
      [19.9, 0],
      [20, 1],
      [59, 2],
      [1000, 50],
    ];
    for (const [ms, packets] of cases) {
      const slice = silenceSlice("opus_48000_64", Math.round(ms * MS));
      expect(slice.raw(), `${ms} ms`).toHaveLength(packets);
      expect(slice.ticks).toBe(packets * 20 * MS);
      expect(slice.pcm().length).toBe(packets * 960);
      expect(slice.pcm().every((sample) => sample === 0)).toBe(true);
    }
  });

  it("silence packets decode to digital silence", async () => {
    const packets = silenceSlice("opus_48000_64", 100 * MS).raw();
    const ours = createOpusDecoder();
    for (const packet of packets) expect(ours.decode(packet)).toEqual(new Int16Array(960));
    ours.close();
    const browsers = new OpusDecoder({ channels: 1, sampleRate: 48_000 });
    await browsers.ready;
    for (const packet of packets) {
      const { channelData, samplesDecoded, errors } = browsers.decodeFrame(packet);
      expect(errors).toEqual([]);
      expect(samplesDecoded).toBe(960);
      // Its arithmetic leaves 2e-34 there, which is to keep it from denormal numbers.
      expect(Math.max(...(channelData[0] ?? [1]).map(Math.abs))).toBeLessThan(1e-30);
    }
    browsers.free();
  });

  it("silence packets end a sound without a click", () => {
    const opus = new OpusEncoder({ sampleRate: 48_000, bitrateKbps: 64, complexity: 5 });
    const decoder = createOpusDecoder();
    const pcm = tone({ hz: 440, rate: 48_000, samples: 9600 });
    const packets = pieces(
      pcm,
      Array.from({ length: 11 }, (_, at) => at * 960),
    ).map((frame) => opus.encode(frame));
    const before = concatPcm(packets.map((packet) => decoder.decode(packet)));
    const after = concatPcm(
      silenceSlice("opus_48000_64", 60 * MS)
        .raw()
        .map((packet) => decoder.decode(packet)),
    );
    opus.close();
    decoder.close();
    expect(spliceStep(before.slice(-240), after.slice(0, 240))).toBeLessThanOrEqual(1.5);
    expect(Math.max(...after.slice(1920).map(Math.abs))).toBeLessThanOrEqual(1);
  });
});

describe("formats that can't be cut", () => {
  it.each(["mp3_44100_128", "wav_24000", "nonsense"])("%s is refused", (format) => {
    expect(() => new Source(format)).toThrow(GatewayError);
    expect(() => silenceSlice(format, MS)).toThrow(GatewayError);
  });
});
