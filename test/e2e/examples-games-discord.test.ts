/** What a Discord bot does with the live audio: discord.js hands `StreamType.OggOpus` to prism-media's demuxer. */
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { OpusDecoder } from "opus-decoder";
import prism from "prism-media";
import { describe, expect, it } from "vitest";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";

/** Samples of one packet at 48 kHz, by its table of contents (RFC 6716, section 3.1); one frame a packet. */
function samplesOf(packet: Buffer): number {
  const config = (packet[0] ?? 0) >> 3;
  expect((packet[0] ?? 0) & 3).toBe(0);
  if (config < 12) return [480, 960, 1920, 2880][config & 3] ?? 0;
  return config < 16 ? ([480, 960][config & 1] ?? 0) : ([120, 240, 480, 960][config & 3] ?? 0);
}

describe("audio.ogg for a Discord bot", () => {
  it("is packets of 20 ms that decode on both sides", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using speaker = await TestClient.connect(gateway, "/live/bot?format=pcm_24000&events=none");
    const leaving = new AbortController();
    const answer = await fetch(`${gateway.url}/live/bot/audio.ogg`, { signal: leaving.signal });
    expect(answer.headers.get("content-type")).toMatch(/^audio\/ogg/);
    const packets: Buffer[] = [];
    const body = Readable.fromWeb(answer.body as ReadableStream<Uint8Array>);
    const demuxer = body.pipe(new prism.opus.OggDemuxer());
    demuxer.on("data", (packet: Buffer) => packets.push(packet));
    body.on("error", () => demuxer.end());
    speaker.send({ type: "speak", text: "Hello there, general listener.", voice_id: "v" });
    await until("a second of packets", () => packets.length >= 50, { deadlineMs: 15_000 });
    leaving.abort();
    expect(packets.map(samplesOf)).toEqual(packets.map(() => 960));
    const decoder = new OpusDecoder({ channels: 2 });
    await decoder.ready;
    const { channelData, errors, samplesDecoded } = decoder.decodeFrames(packets);
    decoder.free();
    expect(errors).toEqual([]);
    expect(samplesDecoded).toBe(packets.length * 960);
    // Mono packets sound on both sides.
    expect(Math.max(...(channelData[0] ?? []))).toBeGreaterThan(0.01);
    expect(channelData[1]).toEqual(channelData[0]);
  });
});
