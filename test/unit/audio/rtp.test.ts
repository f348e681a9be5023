import { describe, expect, it } from "vitest";
import { RtpPacketizer, rtpPayloadType } from "../../../src/audio/containers/rtp.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

describe("RtpPacketizer", () => {
  it("wrap() writes RFC 3550's header: version 2, marker, type, sequence, timestamp, SSRC", () => {
    const rtp = new RtpPacketizer({
      payloadType: 0,
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
      payloadType: 111,
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
      payloadType: 8,
      samplesPerFrame: 160,
      ssrc: 1,
      sequence: 7,
      timestamp: 0,
    });
    rtp.wrap(new Uint8Array(0), true);
    rtp.skip(50);
    expect(hex(rtp.wrap(new Uint8Array(0), true))).toBe("80880008" + "00001fe0" + "00000001");
  });

  it("wrap() sends L16 in network byte order and leaves everything else as it is", () => {
    const options = { samplesPerFrame: 2, ssrc: 0, sequence: 0, timestamp: 0 };
    const little = Uint8Array.of(0x34, 0x12, 0x78, 0x56);
    for (const format of ["pcm_16000", "pcm_44100"] as const) {
      const l16 = new RtpPacketizer({ ...options, payloadType: rtpPayloadType(format) });
      expect(hex(l16.wrap(little, false).subarray(12))).toBe("12345678");
    }
    const ulaw = new RtpPacketizer({ ...options, payloadType: rtpPayloadType("ulaw_8000") });
    expect(hex(ulaw.wrap(little, false).subarray(12))).toBe("34127856");
    expect(hex(little)).toBe("34127856");
  });

  it("refuses a payload type of more than 7 bits", () => {
    const options = { samplesPerFrame: 2, ssrc: 0, sequence: 0, timestamp: 0 };
    expect(() => new RtpPacketizer({ ...options, payloadType: 128 })).toThrow(RangeError);
  });
});

describe("rtpPayloadType()", () => {
  it("gives RFC 3551's static types and dynamic ones for the rest", () => {
    expect(rtpPayloadType("ulaw_8000")).toBe(0);
    expect(rtpPayloadType("alaw_8000")).toBe(8);
    expect(rtpPayloadType("pcm_44100")).toBe(11);
    expect(rtpPayloadType("opus_48000")).toBe(111);
    expect(rtpPayloadType("pcm_16000")).toBeGreaterThanOrEqual(96);
  });
});
