import { OpusDecoder } from "opus-decoder";
import { afterEach, describe, expect, it } from "vitest";
import { MAX_LIVE_CODECS, OPUS_RATES } from "../../../src/audio/codecs/opus-codec.ts";
import { createOpusDecoder } from "../../../src/audio/codecs/opus-decoder.ts";
import { OpusEncoder } from "../../../src/audio/codecs/opus-encoder.ts";
import { GatewayError } from "../../../src/errors.ts";
import { concatPcm, fitTone, tone } from "./helpers.ts";

const open: { close(): void }[] = [];
const opened = <T extends { close(): void }>(codec: T): T => {
  open.push(codec);
  return codec;
};
afterEach(() => {
  for (const codec of open.splice(0)) codec.close();
});

function encoder(sampleRate: (typeof OPUS_RATES)[number]): OpusEncoder {
  return opened(new OpusEncoder({ sampleRate, bitrateKbps: 64, complexity: 5 }));
}

function encodeTone(codec: OpusEncoder, hz: number, frames = 25): Uint8Array[] {
  const size = codec.sampleRate / 50;
  const pcm = tone({ hz, rate: codec.sampleRate, samples: size * frames });
  return Array.from({ length: frames }, (_, at) => codec.encode(pcm.subarray(at * size, (at + 1) * size)));
}

describe("OpusEncoder and createOpusDecoder()", () => {
  it.each(OPUS_RATES)("a tone at %i Hz survives both our decoder and another one", async (rate) => {
    const packets = encodeTone(encoder(rate), 440);
    const decoder = opened(createOpusDecoder());
    const ours = concatPcm(packets.map((packet) => decoder.decode(packet)));
    expect(ours).toHaveLength(25 * 960);
    expect(fitTone(ours, 440, 48_000).snrDb).toBeGreaterThan(25);
    const other = new OpusDecoder({ channels: 1 });
    await other.ready;
    const theirs = other.decodeFrames(packets).channelData[0] ?? new Float32Array(0);
    other.free();
    expect(theirs).toHaveLength(25 * 960);
    const difference = ours.map((value, at) => value - Math.round((theirs[at] ?? 0) * 32_768));
    expect(Math.max(...difference.map(Math.abs))).toBeLessThan(40);
  });

  it("reset() gives the packets of a fresh encoder, and of a fresh decoder the samples", () => {
    const codec = encoder(24_000);
    const fresh = encodeTone(codec, 440);
    encodeTone(codec, 1234);
    codec.reset();
    expect(encodeTone(codec, 440)).toEqual(fresh);
    const decoder = opened(createOpusDecoder());
    const first = fresh.map((packet) => decoder.decode(packet));
    decoder.reset();
    expect(fresh.map((packet) => decoder.decode(packet))).toEqual(first);
  });

  it("open encoders up to the limit each give what one alone gives; the next is refused", () => {
    const alone = OPUS_RATES.map((rate) => {
      const codec = new OpusEncoder({ sampleRate: rate, bitrateKbps: 64, complexity: 5 });
      const packets = encodeTone(codec, 300 + rate / 100, 5);
      codec.close();
      return packets;
    });
    const decoders = Array.from({ length: 10 }, () => opened(createOpusDecoder()));
    const encoders = Array.from({ length: MAX_LIVE_CODECS - 10 }, (_, at) =>
      encoder(OPUS_RATES[at % 5] ?? 8000),
    );
    expect(() => encoder(8000)).toThrow(GatewayError);
    expect(() => createOpusDecoder()).toThrow(/60 are open/);
    // Interleaved frame by frame: memory that one of them had spoiled for another would show.
    const made: Uint8Array[][] = encoders.map(() => []);
    for (let frame = 0; frame < 5; frame += 1) {
      for (const [at, codec] of encoders.entries()) {
        const size = codec.sampleRate / 50;
        const hz = 300 + codec.sampleRate / 100;
        const pcm = tone({ hz, rate: codec.sampleRate, samples: size * 5 });
        const packet = codec.encode(pcm.subarray(frame * size, (frame + 1) * size));
        made[at]?.push(packet);
        expect(decoders[at % 10]?.decode(packet)).toHaveLength(960);
      }
    }
    for (const [at, packets] of made.entries()) expect(packets).toEqual(alone[at % 5]);
  });

  it("close() frees one place, also when called twice", () => {
    for (let at = 0; at < 3 * MAX_LIVE_CODECS; at += 1) {
      const codec = new OpusEncoder({
        sampleRate: OPUS_RATES[at % 5] ?? 8000,
        bitrateKbps: 32,
        complexity: 0,
      });
      expect(encodeTone(codec, 440, 1)).toHaveLength(1);
      codec.close();
      codec.close();
    }
    expect(encodeTone(encoder(48_000), 440, 1)).toHaveLength(1);
  });

  it("decode() reports a broken packet", () => {
    const decoder = opened(createOpusDecoder());
    expect(() => decoder.decode(Uint8Array.of(0xff, 0x00))).toThrow(GatewayError);
    expect(() => decoder.decode(new Uint8Array(5000))).toThrow(GatewayError);
    expect(decoder.decode(encodeTone(encoder(48_000), 440, 1)[0] ?? new Uint8Array(0))).toHaveLength(960);
  });

  it("encode() reports a frame that Opus does not have", () => {
    expect(() => encoder(48_000).encode(new Int16Array(961))).toThrow(GatewayError);
  });
});
