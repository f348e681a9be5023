import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { encodeWavFile } from "../../../src/audio/containers/encode.ts";
import { UNKNOWN_DATA_BYTES, WavStripper, wavHeader } from "../../../src/audio/containers/wav.ts";
import { noise, pieces, splits } from "./helpers.ts";

const AUDIO = bytesOf(noise(120));
const text = (value: string): number[] => [...Buffer.from(value, "latin1")];

function chunk(name: string, body: readonly number[]): number[] {
  const size = [body.length & 0xff, body.length >> 8, 0, 0];
  return [...text(name), ...size, ...body, ...(body.length % 2 === 1 ? [0] : [])];
}

function strip(chunks: readonly Uint8Array[]): number[] {
  const stripper = new WavStripper();
  const out = chunks.flatMap((piece) => [...stripper.push(piece)]);
  return [...out, ...stripper.flush()];
}

describe("wavHeader()", () => {
  it("writes the canonical 44 bytes", () => {
    expect(Buffer.from(wavHeader({ sampleRate: 22_050, dataBytes: 1000 })).toString("hex")).toBe(
      "52494646" +
        "0c040000" +
        "57415645" +
        "666d7420" +
        "10000000" +
        "01000100" +
        "22560000" +
        "44ac0000" +
        "02001000" +
        "64617461" +
        "e8030000",
    );
  });

  it("says all ones for a length that is not known", () => {
    const header = new DataView(wavHeader({ sampleRate: 8000, dataBytes: UNKNOWN_DATA_BYTES }).buffer);
    expect([header.getUint32(4, true), header.getUint32(40, true)]).toEqual([0xffffffff, 0xffffffff]);
  });
});

describe("WavStripper", () => {
  const fmt = [...wavHeader({ sampleRate: 16_000, dataBytes: 0 }).subarray(20, 36)];
  const streams: Record<string, number[]> = {
    "a file": [...encodeWavFile(noise(120), 16_000)],
    "a stream of unknown length": [
      ...wavHeader({ sampleRate: 16_000, dataBytes: UNKNOWN_DATA_BYTES }),
      ...AUDIO,
    ],
    "a file with chunks before and behind": [
      ...text("RIFF"),
      0,
      0,
      0,
      0,
      ...text("WAVE"),
      ...chunk("JUNK", [1, 2, 3]),
      ...chunk("fmt ", [...fmt, 0, 0]),
      ...chunk("LIST", text("abcdef")),
      ...chunk("data", [...AUDIO]),
      ...chunk("LIST", text("behind")),
    ],
    "samples without a header": [...AUDIO],
  };

  it.each(Object.entries(streams))("push() leaves only the samples of %s, for any split", (_, bytes) => {
    fc.assert(
      fc.property(splits(bytes.length, 40), (cuts) => {
        expect(strip(pieces(Uint8Array.from(bytes), cuts))).toEqual([...AUDIO]);
      }),
    );
  });

  it("format says what the header said", () => {
    const stripper = new WavStripper();
    stripper.push(encodeWavFile(noise(4), 44_100));
    expect(stripper.format).toEqual({ isPcm: true, channels: 1, sampleRate: 44_100, bitsPerSample: 16 });
    const plain = new WavStripper();
    plain.push(AUDIO);
    expect(plain.format).toBeNull();
  });

  it("passes samples that only begin like a header", () => {
    for (const bytes of [text("RIFFxxxxWAV?...."), text("RI"), text("RIFx"), text("RIFFxxxxWAV")]) {
      expect(strip([Uint8Array.from(bytes)])).toEqual(bytes);
      expect(strip(bytes.map((byte) => Uint8Array.of(byte)))).toEqual(bytes);
    }
  });

  it("isInsideHeader tells of a header that is cut off", () => {
    const stripper = new WavStripper();
    stripper.push(encodeWavFile(noise(4), 8000).subarray(0, 30));
    expect(stripper.isInsideHeader).toBe(true);
    expect(stripper.flush()).toHaveLength(0);
  });
});
