import { describe, expect, it } from "vitest";
import { isWavHeader, UNKNOWN_DATA_BYTES, wavHeader } from "../../../src/audio/containers/wav.ts";

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

  it("is known by its first 12 bytes", () => {
    const header = wavHeader({ sampleRate: 8000, dataBytes: 0 });
    expect([header, header.subarray(0, 12)].map(isWavHeader)).toEqual([true, true]);
    const others = [header.subarray(0, 11), header.subarray(1), Buffer.from("RIFFxxxxWAV?....")];
    expect(others.map(isWavHeader)).toEqual([false, false, false]);
  });
});
