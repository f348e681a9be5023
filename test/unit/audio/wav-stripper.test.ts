/** WAV headers in the middle of audio whose length nobody says: taken out wherever reads are cut, and nothing else is. */
import { describe, expect, it } from "vitest";
import { UNKNOWN_DATA_BYTES, wavHeader } from "../../../src/audio/containers/wav.ts";
import { type Sampled, WavStripper } from "../../../src/audio/containers/wav-stripper.ts";

function stripped(bytes: Uint8Array, cuts: readonly number[]) {
  const parts: { readonly bytes: Buffer; readonly sampled: Sampled }[] = [];
  const stripper = new WavStripper({
    plain: null,
    onSamples: (samples, sampled) => parts.push({ bytes: Buffer.from(samples), sampled }),
  });
  const ends = [...cuts, bytes.length];
  for (const [index, end] of ends.entries()) stripper.push(bytes.subarray(ends[index - 1] ?? 0, end));
  stripper.finish();
  const at = (sampleRate: number): string =>
    Buffer.concat(
      parts.filter(({ sampled }) => sampled.sampleRate === sampleRate).map((part) => part.bytes),
    ).toString("latin1");
  return { at24: at(24_000), at16: at(16_000) };
}

const FIRST = wavHeader({ sampleRate: 24_000, dataBytes: UNKNOWN_DATA_BYTES });
const SECOND = wavHeader({ sampleRate: 16_000, dataBytes: UNKNOWN_DATA_BYTES });
/** With what looks like the beginning of a header, and is none. */
const SAMPLES = "RIFRIFF....WAVRIFF....WAVEfmt_RR";

describe("headers behind audio without a length", () => {
  const both = Buffer.concat([FIRST, Buffer.from(SAMPLES), SECOND, Buffer.from("samples.")]);

  it("are taken out, and say what follows, wherever two reads meet", () => {
    for (let cut = 1; cut < both.length; cut += 1)
      expect([cut, stripped(both, [cut])]).toEqual([cut, { at24: SAMPLES, at16: "samples." }]);
  });

  it("are taken out where every byte comes alone", () => {
    const cuts = Array.from({ length: both.length - 1 }, (_, index) => index + 1);
    expect(stripped(both, cuts)).toEqual({ at24: SAMPLES, at16: "samples." });
  });

  it.each(["R", "RIFF", "RIFF....WAVEfmt"])("audio that ends in %s is whole", (end) => {
    expect(stripped(Buffer.concat([FIRST, Buffer.from(end)]), []).at24).toBe(end);
  });
});
