/** A rendition made of what is kept: its samples stand where they do for whoever had it from the beginning. */
import { describe, expect, it } from "vitest";
import { encodeSamples } from "../../../../src/audio/codecs/samples.ts";
import type { Rendition } from "../../../../src/delivery/rendition.ts";
import { RecentAudio } from "../../../../src/session/output/recent-audio.ts";
import { renditionFrom } from "../../../../src/session/output/rendered-audio.ts";
import { ticksPerSample } from "../../../../src/timing/ticks.ts";
import { FakeClock } from "../../../helpers/fake-clock.ts";
import { SlowEncoder } from "../../../helpers/slow-encoder.ts";
import { noise } from "../../audio/helpers.ts";

const MS = 14_112;
const RATE = 16_000;
const SECOND_MS = 500;

/** Two utterances at 16 kHz; the first has `samples` of them. */
function keptAudio(samples: number): RecentAudio {
  const buffer = new RecentAudio(1 << 20);
  const push = (startMs: number, pcm: Int16Array): void => {
    const bytes = Uint8Array.from(encodeSamples("pcm", pcm));
    const ticks = pcm.length * ticksPerSample(RATE);
    buffer.push(startMs * MS, {
      format: "pcm_16000",
      ticks,
      pcmRate: RATE,
      raw: () => [bytes],
      pcm: () => pcm,
    });
  };
  push(0, noise(samples, 1));
  push(SECOND_MS, noise(4800, 2));
  return buffer;
}

function made(samples: number, fromMs: number, format: "pcm_8000" | "pcm_24000" | "pcm_44100"): Rendition {
  const recent = keptAudio(samples);
  return renditionFrom(
    {
      writeTicks: (SECOND_MS + 300) * MS,
      recent,
      utteranceTicks: fromMs < SECOND_MS ? 0 : SECOND_MS * MS,
      isOpen: true,
    },
    fromMs * MS,
    {
      format,
      frameMs: 20,
      framing: "raw",
      band: "full",
      maxRingBytes: 1_000_000,
      clock: new FakeClock(),
      opusPool: new SlowEncoder(1).pool,
      onEncodedFrame: () => undefined,
      onError: (error) => {
        throw error;
      },
    },
  );
}

function framesFrom(rendition: Rendition, ms: number): Buffer {
  const frames: Buffer[] = [];
  for (let index = rendition.indexAt(ms * MS); index < rendition.next; index += 1) {
    frames.push(Buffer.from(rendition.frame(index) ?? []));
  }
  return Buffer.concat(frames);
}

describe("renditionFrom()", () => {
  it.each(["pcm_8000", "pcm_24000", "pcm_44100"] as const)(
    "puts what follows a silence in its place, wherever the speech before it ends: %s",
    (format) => {
      const wanted = framesFrom(made(7000, SECOND_MS, format), SECOND_MS);
      expect(wanted.length).toBeGreaterThan(4000);
      for (let samples = 7000; samples < 7050; samples += 1) {
        const got = framesFrom(made(samples, 100, format), SECOND_MS);
        expect({ samples, isSame: got.equals(wanted) }).toEqual({ samples, isSame: true });
      }
    },
  );
});
