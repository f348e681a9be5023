import { describe, expect, it } from "vitest";
import { RtpPacketizer, rtpPayload } from "../../../src/audio/containers/rtp.ts";
import { AUDIO_FORMATS } from "../../../src/audio/formats.ts";
import type { AudioFormat } from "../../../src/protocol/vocabulary.ts";

const FORMATS = Object.keys(AUDIO_FORMATS) as AudioFormat[];

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** RFC 3551, table 4: mu-law, A-law, and L16 of one channel. */
const STATIC_TYPES: readonly number[] = [0, 8, 11];

describe("RtpPacketizer", () => {
  it("wrap() writes RFC 3550's header: version 2, marker, type, sequence, timestamp, SSRC", () => {
    const rtp = new RtpPacketizer({
      ...rtpPayload("ulaw_8000"),
      samplesPerFrame: 160,
      ssrc: 0xdeadbeef,
      sequence: 0x1234,
      timestamp: 0x01020304,
    });
    expect(hex(rtp.wrap(Uint8Array.of(0xff, 0x7f), true))).toBe(
      "80801234" + "01020304" + "deadbeef" + "ff7f",
    );
    expect(hex(rtp.wrap(Uint8Array.of(0xaa), false))).toBe("80001235" + "010203a4" + "deadbeef" + "aa");
  });

  it("wrap() wraps sequence and timestamp around", () => {
    const rtp = new RtpPacketizer({
      ...rtpPayload("opus_48000"),
      samplesPerFrame: 960,
      ssrc: 1,
      sequence: 0xffff,
      timestamp: 0xfffffff0,
    });
    expect(hex(rtp.wrap(new Uint8Array(0), false))).toBe("806fffff" + "fffffff0" + "00000001");
    expect(hex(rtp.wrap(new Uint8Array(0), false))).toBe("806f0000" + "000003b0" + "00000001");
  });

  it("skip() moves the timestamp and not the sequence", () => {
    const rtp = new RtpPacketizer({
      ...rtpPayload("alaw_8000"),
      samplesPerFrame: 160,
      ssrc: 1,
      sequence: 7,
      timestamp: 0,
    });
    rtp.wrap(new Uint8Array(0), true);
    rtp.skip(50);
    expect(hex(rtp.wrap(new Uint8Array(0), true))).toBe("80880008" + "00001fe0" + "00000001");
  });

  it.each(FORMATS)("wrap() swaps the bytes of %s where it is PCM, and no others", (format) => {
    const little = Uint8Array.of(0x34, 0x12, 0x78, 0x56);
    const rtp = new RtpPacketizer({
      ...rtpPayload(format),
      samplesPerFrame: 2,
      ssrc: 0,
      sequence: 0,
      timestamp: 0,
    });
    const sent = hex(rtp.wrap(little, false).subarray(12));
    expect(sent).toBe(format.startsWith("pcm_") ? "12345678" : "34127856");
    expect(hex(little)).toBe("34127856");
  });

  it("refuses a payload type of more than 7 bits", () => {
    const options = { isL16: false, samplesPerFrame: 2, ssrc: 0, sequence: 0, timestamp: 0 };
    expect(() => new RtpPacketizer({ ...options, payloadType: 128 })).toThrow(RangeError);
  });
});

describe("rtpPayload()", () => {
  it("gives RFC 3551's static types where it has one for the format", () => {
    expect(rtpPayload("ulaw_8000").payloadType).toBe(0);
    expect(rtpPayload("alaw_8000").payloadType).toBe(8);
    expect(rtpPayload("pcm_44100").payloadType).toBe(11);
  });

  it("gives all others a dynamic type, which only rates of PCM share", () => {
    const owners = new Map<number, string>();
    for (const format of FORMATS) {
      const { payloadType } = rtpPayload(format);
      const isDynamic = payloadType >= 96 && payloadType <= 127;
      const where = `${format} has type ${payloadType}: where RFC 3551 gives it to that codec, add it to STATIC_TYPES here`;
      expect(isDynamic || STATIC_TYPES.includes(payloadType), where).toBe(true);
      const owner = format.startsWith("pcm_") ? "PCM" : format;
      expect(owners.get(payloadType) ?? owner, `${format} has payload type ${payloadType}`).toBe(owner);
      owners.set(payloadType, owner);
    }
  });
});
