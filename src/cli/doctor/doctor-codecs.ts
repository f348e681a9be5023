/** The codec check of doctor: a tone through each encoder and decoder, and whether it comes out again. */
import { decodeAlaw, decodeUlaw, encodeAlaw, encodeUlaw } from "../../audio/codecs/g711.ts";
import { createMp3Encoder } from "../../audio/codecs/mp3.ts";
import { createOpusDecoder } from "../../audio/codecs/opus-decoder.ts";
import { OpusEncoder } from "../../audio/codecs/opus-encoder.ts";
import type { CheckResult } from "./check-result.ts";

/** Gives a tone at 48 kHz to a codec and gets back what its decoder makes of it. */
type RoundTrip = (tone: Int16Array) => Promise<Int16Array>;

const RATE = 48_000;
const FRAME = 960;
const TONE_HZ = 440;
const AMPLITUDE = 12_000;

const CODECS: Readonly<Record<string, RoundTrip>> = {
  "mu-law": async (tone) => decodeUlaw(encodeUlaw(tone)),
  "A-law": async (tone) => decodeAlaw(encodeAlaw(tone)),
  Opus: async (tone) => {
    const encoder = new OpusEncoder({ sampleRate: RATE, bitrateKbps: 64, complexity: 5 });
    const decoder = createOpusDecoder();
    try {
      return joined(framesOf(tone).map((frame) => decoder.decode(encoder.encode(frame))));
    } finally {
      encoder.close();
      decoder.close();
    }
  },
};

export async function checkCodecs(): Promise<CheckResult> {
  const tone = Int16Array.from({ length: FRAME * 20 }, (_, index) =>
    Math.round(AMPLITUDE * Math.sin((2 * Math.PI * TONE_HZ * index) / RATE)),
  );
  const broken: string[] = [];
  for (const [name, roundTrip] of Object.entries(CODECS)) {
    try {
      const loudness = rms(await roundTrip(tone));
      // The tone's own is 8485; half of it means that something is missing.
      if (loudness < AMPLITUDE * 0.35) broken.push(`${name} (comes out as silence)`);
    } catch (thrown) {
      broken.push(`${name} (${messageOf(thrown)})`);
    }
  }
  await checkMp3(tone).catch((thrown: unknown) => broken.push(`MP3 (${messageOf(thrown)})`));
  if (broken.length === 0) {
    return { status: "ok", detail: `${Object.keys(CODECS).join(", ")} encode and decode, MP3 encodes` };
  }
  return { status: "fail", detail: broken.join("; "), fix: "run `npm ci` again on this machine" };
}

/** The gateway writes MP3 and never reads it: whole frames of 128 kbit/s must come out. */
async function checkMp3(tone: Int16Array): Promise<void> {
  const encoder = await createMp3Encoder({ sampleRate: 44_100, bitrateKbps: 128 });
  const bytes = Buffer.concat([encoder.encode(tone), encoder.finish()]);
  // ISO 11172-3 section 2.4.1.3: a frame begins with eleven ones.
  const isFrame = bytes[0] === 0xff && ((bytes[1] ?? 0) & 0xe0) === 0xe0;
  if (!isFrame || bytes.length < (tone.length / 44_100) * 16_000) throw new Error("no frames come out");
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function framesOf(pcm: Int16Array): Int16Array[] {
  return Array.from({ length: Math.floor(pcm.length / FRAME) }, (_, index) =>
    pcm.slice(index * FRAME, (index + 1) * FRAME),
  );
}

function joined(parts: readonly Int16Array[]): Int16Array {
  return Int16Array.from(parts.flatMap((part) => [...part]));
}

/** Root mean square of the samples' middle half: codecs begin and end softly. */
function rms(pcm: Int16Array): number {
  const middle = pcm.subarray(pcm.length >> 2, pcm.length - (pcm.length >> 2));
  const sum = middle.reduce((total, sample) => total + sample * sample, 0);
  return Math.sqrt(sum / Math.max(1, middle.length));
}
