import { beforeAll, describe, expect, it } from "vitest";
import { Resampler } from "../../../../src/audio/resample/resample.ts";
import { powerSpectrum } from "../../../../src/service/convert/envelope.ts";
import { medianPitch, PitchTracker, WORK_RATE } from "../../../../src/service/convert/pitch-tracker.ts";
import { enginePitch } from "../../../../src/service/convert/stored-voice.ts";
import { ratiosOf, ShiftStream, VoiceTransformer } from "../../../../src/service/convert/transformer.ts";
import { ProfileMeter, type VoiceProfile } from "../../../../src/service/convert/voice-profile.ts";
import { Engine } from "../../../../src/service/voice/engine/engine.ts";
import { findVoice, type Voice } from "../../../../src/service/voice/engine/voices.ts";
import { correlationOf, floatsOf, loudnessOf, rms, trackPitch } from "./measures.ts";

const MALE = "bIHbv24MWmeRgasZH58o";
const FEMALE = "21m00Tcm4TlvDq8ikWAM";
const TEXT = "Please tell me when the next train leaves for the city, and whether I can still buy a ticket.";

let engine: Engine;
beforeAll(async () => {
  engine = await Engine.load();
});

function voiceOf(id: string): Voice {
  const voice = findVoice(id);
  if (voice === undefined) throw new Error(`No voice ${id}`);
  return voice;
}

function say(id: string, pitch = voiceOf(id).pitch): Float32Array {
  const voice = voiceOf(id);
  const pieces: Int16Array[] = [];
  const sound = { name: `${voice.engine}+${voice.variant}`, rate: voice.rate, pitch, range: voice.range };
  const resampler = new Resampler({ fromRate: engine.sampleRate, toRate: WORK_RATE });
  engine.speak(TEXT, sound, (samples) => {
    pieces.push(resampler.push(samples.slice()).slice());
    return false;
  });
  pieces.push(resampler.flush());
  return floatsOf(Int16Array.from(pieces.flatMap((piece) => [...piece])));
}

function profileOf(samples: Float32Array): VoiceProfile {
  const meter = new ProfileMeter();
  meter.push(samples);
  meter.finish();
  if (meter.profile === null) throw new Error("Nobody speaks");
  return meter.profile;
}

function convert(source: Float32Array, target: VoiceProfile, pieceSamples = source.length): Float32Array {
  const transformer = new VoiceTransformer(target);
  const made: number[] = [];
  for (let at = 0; at < source.length; at += pieceSamples) {
    made.push(...transformer.push(source.slice(at, at + pieceSamples)));
  }
  made.push(...transformer.flush());
  return Float32Array.from(made);
}

/** Hz; mean frequency of the voiced sound between 300 and 5000 Hz. */
function centroidOf(samples: Float32Array): number {
  let weighted = 0;
  let total = 0;
  for (const [frame, hz] of trackPitch(samples).entries()) {
    if (hz === 0) continue;
    const powers = powerSpectrum(samples.slice(Math.max(0, frame * 120 - 512), frame * 120 + 512));
    for (let bin = 13; bin < 213; bin += 1) {
      const amplitude = Math.sqrt(powers[bin] ?? 0);
      weighted += amplitude * bin * (WORK_RATE / 1024);
      total += amplitude;
    }
  }
  return weighted / total;
}

function tone(hz: number): Float32Array {
  return Float32Array.from({ length: WORK_RATE }, (_, at) => {
    let sum = 0;
    for (let harmonic = 1; harmonic <= 12; harmonic += 1) {
      sum += Math.sin((2 * Math.PI * hz * harmonic * at) / WORK_RATE) / harmonic;
    }
    return 0.2 * sum;
  });
}

describe("pitch tracking", { timeout: 90_000 }, () => {
  it.each([62, 98, 147, 233, 330, 480])("finds %i Hz, and neither twice nor half of it", (hz) => {
    const frames = trackPitch(tone(hz)).slice(10, -10);
    for (const frame of frames) expect(Math.abs(frame / hz - 1)).toBeLessThan(0.02);
  });

  it("finds no pitch in noise and none in silence", () => {
    let seed = 1;
    const noise = Float32Array.from({ length: WORK_RATE }, () => {
      seed = (seed * 16_807) % 2_147_483_647;
      return 0.3 * (seed / 1_073_741_824 - 1);
    });
    for (const samples of [noise, new Float32Array(WORK_RATE)]) {
      const frames = trackPitch(samples);
      expect(frames.length).toBe(201);
      expect(frames.filter((hz) => hz > 0).length).toBeLessThan(frames.length * 0.05);
    }
  });

  it.each(["pNInz6obpgDQGcFmaJgB", MALE])(
    "does not take the noise of consonants for a high pitch: %s",
    (id) => {
      const voiced = trackPitch(say(id)).filter((hz) => hz > 0);
      const usual = medianPitch(voiced) ?? 0;
      expect(voiced.length).toBeGreaterThan(300);
      expect(voiced.filter((hz) => hz > 1.75 * usual).length).toBeLessThan(0.04 * voiced.length);
    },
  );

  it.each([
    [100, 200],
    [150, 300],
    [200, 100],
  ])("follows a voice that goes from %i Hz to %i Hz after a pause", (from, to) => {
    const pause = new Float32Array(WORK_RATE / 10);
    const usual = Array.from({ length: 5 }, () => [tone(from).subarray(0, 6000), pause]).flat();
    const pieces = [...usual, tone(to).subarray(0, 6000), pause];
    const samples = Float32Array.from(pieces.flatMap((piece) => [...piece]));
    const frames = trackPitch(samples).slice(-Math.round((6000 + pause.length) / 120) + 3);
    const high = frames.slice(0, 44);
    expect(high.filter((hz) => Math.abs(hz / to - 1) < 0.03).length).toBeGreaterThan(40);
  });

  it("is the same in pieces of any size", () => {
    const samples = say(MALE);
    const whole = trackPitch(samples);
    expect(whole.length).toBe(Math.ceil(samples.length / 120) + 1);
    const tracker = new PitchTracker();
    const inPieces: number[] = [];
    for (let at = 0; at < samples.length; at += 777) {
      inPieces.push(...tracker.push(samples.slice(at, at + 777)));
    }
    expect([...inPieces, ...tracker.flush()]).toEqual(whole);
  });
});

describe("voice transformation", { timeout: 90_000 }, () => {
  it.each([
    [MALE, FEMALE],
    [FEMALE, MALE],
  ])(
    "takes %s to the pitch and the formants of %s and keeps length, words, melody and loudness",
    (from, to) => {
      const source = say(from);
      const target = say(to);
      const made = convert(source, profileOf(target));
      expect(made.length).toBe(source.length);
      const before = trackPitch(source);
      const after = trackPitch(made);
      const wanted = medianPitch(trackPitch(target)) ?? 0;
      expect(Math.abs((medianPitch(after) ?? 0) / wanted - 1)).toBeLessThan(0.1);
      const both = before.map((hz, at) => [hz, after[at] ?? 0]).filter(([a, b]) => a !== 0 && b !== 0);
      const melody = (side: 0 | 1) => both.map((pair) => Math.log(pair[side] ?? 1));
      expect(correlationOf(melody(0), melody(1))).toBeGreaterThan(0.6);
      expect(correlationOf(loudnessOf(source), loudnessOf(made))).toBeGreaterThan(0.9);
      expect(Math.abs(20 * Math.log10(rms(made) / rms(source)))).toBeLessThan(2);
      expect(Math.sign(centroidOf(made) - centroidOf(source))).toBe(
        Math.sign(centroidOf(target) - centroidOf(source)),
      );
    },
  );

  it("makes the same of pieces as of the whole, but for the moment at which the pitch is settled", () => {
    const source = say(MALE);
    const ratios = ratiosOf(profileOf(source), profileOf(say(FEMALE)));
    const run = (pieceSamples: number) => {
      const stream = new ShiftStream(ratios);
      const made: number[] = [];
      for (let at = 0; at < source.length; at += pieceSamples) {
        made.push(...stream.push(source.slice(at, at + pieceSamples)));
      }
      return [...made, ...stream.flush()];
    };
    expect(run(2400 * 5)).toEqual(run(2400));
  });

  it("leaves speech as it is where nothing has to be moved", () => {
    const source = say(FEMALE);
    const stream = new ShiftStream({ pitch: 1, formants: 1 });
    const made = [...stream.push(source), ...stream.flush()];
    const error = Float32Array.from(made, (sample, at) => sample - (source[at] ?? 0));
    expect(rms(error)).toBeLessThan(0.25 * rms(source));
  });

  it("moves formants without the pitch", () => {
    const source = say(MALE);
    for (const formants of [0.8, 1.25]) {
      const stream = new ShiftStream({ pitch: 1, formants });
      const made = Float32Array.from([...stream.push(source), ...stream.flush()]);
      expect(Math.sign(centroidOf(made) - centroidOf(source))).toBe(Math.sign(formants - 1));
      const ratio = (medianPitch(trackPitch(made)) ?? 0) / (medianPitch(trackPitch(source)) ?? 1);
      expect(Math.abs(ratio - 1)).toBeLessThan(0.03);
    }
  });

  it("keeps unvoiced sound sample for sample", () => {
    let seed = 7;
    const hiss = Float32Array.from({ length: WORK_RATE }, () => {
      seed = (seed * 16_807) % 2_147_483_647;
      return 0.1 * (seed / 1_073_741_824 - 1);
    });
    const stream = new ShiftStream({ pitch: 2, formants: 1.2 });
    const made = Float32Array.from([...stream.push(hiss), ...stream.flush()]);
    const error = made.map((sample, at) => sample - (hiss[at] ?? 0));
    expect(rms(error.subarray(1000, -1000))).toBeLessThan(0.3 * rms(hiss));
  });
});

describe("the pitch of a sampled voice", { timeout: 90_000 }, () => {
  it.each([0.8, 1.2])("is %d times the base's when the engine is asked for it", (ratio) => {
    for (const id of [MALE, FEMALE]) {
      const base = medianPitch(trackPitch(say(id))) ?? 0;
      const moved = medianPitch(trackPitch(say(id, enginePitch(voiceOf(id).pitch, ratio)))) ?? 0;
      expect(Math.abs(moved / base / ratio - 1)).toBeLessThan(0.05);
    }
  });

  it("stays within what the engine has", () => {
    expect(enginePitch(90, 4)).toBe(100);
    expect(enginePitch(10, 0.2)).toBe(0);
    expect(enginePitch(37, 1)).toBe(37);
  });
});
