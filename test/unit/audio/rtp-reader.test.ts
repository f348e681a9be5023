import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RtpPacketizer, rtpPayload } from "../../../src/audio/containers/rtp.ts";
import {
  parseRtp,
  type RtpPacket,
  RtpSequence,
  TelephoneEvents,
} from "../../../src/audio/containers/rtp-reader.ts";

function parsed(packet: Uint8Array): RtpPacket {
  const read = parseRtp(packet);
  if (read === null) throw new Error("Not RTP");
  return read;
}

describe("parseRtp", () => {
  it("reads what the packetizer writes", () => {
    const stream = new RtpPacketizer({
      ...rtpPayload("ulaw_8000"),
      samplesPerFrame: 160,
      ssrc: 0xdeadbeef,
      sequence: 0xffff,
      timestamp: 0xffff_fff0,
    });
    const payload = Uint8Array.from({ length: 160 }, (_, at) => at);
    expect(parsed(stream.wrap(payload, true))).toEqual({
      payloadType: 0,
      hasMarker: true,
      sequence: 0xffff,
      timestamp: 0xffff_fff0,
      ssrc: 0xdeadbeef,
      payload,
    });
    expect(parsed(stream.wrap(payload, false))).toMatchObject({
      hasMarker: false,
      sequence: 0,
      timestamp: 0xffff_fff0 + 160 - 2 ** 32,
    });
  });

  it("skips contributing sources and the extension, and leaves padding out", () => {
    const packet = Uint8Array.of(
      ...[0x80 | 0x20 | 0x10 | 2, 8, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
      ...[1, 1, 1, 1, 2, 2, 2, 2],
      ...[0xbe, 0xde, 0, 1, 9, 9, 9, 9],
      ...[10, 20, 30, 0, 0, 3],
    );
    expect(parsed(packet)).toMatchObject({ payloadType: 8, payload: Uint8Array.of(10, 20, 30) });
  });

  it.each([
    ["nothing", []],
    ["half a header", [0x80, 0, 0, 1]],
    ["another version", [0x40, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2]],
    ["RTCP on the same port", [0x80, 200, 0, 6, 0, 0, 0, 9, 1, 1, 1, 1, 2, 2, 2, 2]],
    ["more sources than bytes", [0x8f, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2]],
    ["an extension cut short", [0x90, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2]],
    ["an extension longer than the packet", [0x90, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9]],
    ["more padding than bytes", [0xa0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 200]],
    ["padding of no length", [0xa0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 0]],
  ])("takes %s for what it is: no packet", (_, bytes) => {
    expect(parseRtp(Uint8Array.from(bytes))).toBeNull();
  });

  it("never throws, and never reads beyond the packet", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const packet = parseRtp(bytes);
        expect(packet === null || packet.payload.length <= bytes.length - 12).toBe(true);
      }),
    );
  });
});

describe("RtpSequence", () => {
  const verdicts = (sequences: readonly number[], ssrc = 1) => {
    const order = new RtpSequence();
    return sequences.map((sequence) => {
      const verdict = order.note({ sequence, ssrc });
      return verdict.kind === "stale" ? "stale" : verdict.missing;
    });
  };

  it.each([
    ["in order", [5, 6, 7], [0, 0, 0]],
    ["over the wrap", [65_534, 65_535, 0, 1], [0, 0, 0, 0]],
    ["with some lost", [5, 8, 9], [0, 2, 0]],
    ["lost over the wrap", [65_534, 2], [0, 3]],
    ["one twice", [5, 6, 6, 7], [0, 0, "stale", 0]],
    ["one late", [5, 7, 6, 8], [0, 1, "stale", 0]],
    ["begun again far back", [5000, 100, 101], [0, 0, 0]],
  ])("%s", (_, sequences, expected) => {
    expect(verdicts(sequences)).toEqual(expected);
  });

  it("begins again with another source", () => {
    const order = new RtpSequence();
    order.note({ sequence: 100, ssrc: 1 });
    expect(order.note({ sequence: 99, ssrc: 2 })).toEqual({ kind: "fresh", missing: 0 });
  });
});

describe("TelephoneEvents", () => {
  const event = (facts: {
    code: number;
    isOver: boolean;
    duration: number;
    timestamp: number;
  }): RtpPacket => ({
    payloadType: 101,
    hasMarker: false,
    sequence: 0,
    timestamp: facts.timestamp,
    ssrc: 1,
    payload: Uint8Array.of(facts.code, facts.isOver ? 0x8a : 0x0a, facts.duration >> 8, facts.duration & 255),
  });

  it("reports each key once, when it is over, however often that is said", () => {
    const keys = new TelephoneEvents();
    const reported = [
      event({ code: 5, isOver: false, duration: 160, timestamp: 1000 }),
      event({ code: 5, isOver: false, duration: 320, timestamp: 1000 }),
      event({ code: 5, isOver: true, duration: 800, timestamp: 1000 }),
      event({ code: 5, isOver: true, duration: 800, timestamp: 1000 }),
      event({ code: 5, isOver: true, duration: 800, timestamp: 1000 }),
      event({ code: 11, isOver: true, duration: 1600, timestamp: 9000 }),
    ].map((packet) => keys.push(packet));
    expect(reported.filter((key) => key !== null)).toEqual([
      { digit: "5", durationMs: 100 },
      { digit: "#", durationMs: 200 },
    ]);
  });

  it("leaves out what is no key", () => {
    const keys = new TelephoneEvents();
    expect(keys.push(event({ code: 36, isOver: true, duration: 1, timestamp: 1 }))).toBeNull();
    expect(
      keys.push({
        ...event({ code: 1, isOver: true, duration: 1, timestamp: 2 }),
        payload: Uint8Array.of(1),
      }),
    ).toBeNull();
  });
});
