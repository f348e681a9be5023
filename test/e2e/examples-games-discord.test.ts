/** What a Discord bot does with the live audio: discord.js hands `StreamType.OggOpus` to prism-media's demuxer. */
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import prism from "prism-media";
import { describe, expect, it } from "vitest";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { decodeMonoPackets } from "../kit/mono-packets.ts";

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
    const heard = await decodeMonoPackets(packets);
    expect(Math.max(...heard)).toBeGreaterThan(0.01);
  });
});
