/** The band of a telephone, as listeners get it: decoded, and its spectrum measured. */
import { describe, expect, it } from "vitest";
import { decodeUlaw } from "../../src/audio/codecs/g711.ts";
import { createOpusDecoder } from "../../src/audio/codecs/opus-decoder.ts";
import { bytesOf } from "../../src/audio/codecs/pcm.ts";
import type { FakeScript } from "../helpers/fake-upstream.ts";
import { isTimed, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { FakeCarrier } from "../kit/carriers/fake-carrier.ts";
import { bandPowerDb, whiteNoise } from "../kit/spectrum.ts";

const SPEAK = { type: "speak", text: "Hello there.", voice_id: "v" };

/** Every text is two seconds of noise, in which each frequency is as strong. */
const script: FakeScript = (request) => {
  const rate = Number((request.query.get("output_format") ?? "").split("_")[1]);
  const audio = bytesOf(whiteNoise(rate, 2, 0.3));
  const record = { audio_base64: Buffer.from(audio).toString("base64"), alignment: null };
  const body = isTimed(request) ? Buffer.from(`${JSON.stringify(record)}\n`) : audio;
  const type = isTimed(request) ? "application/json" : "audio/pcm";
  return { headers: { "content-type": type, "request-id": "r" }, body: [body], splitBytes: 4321 };
};

function decoded({ audio, frames }: TestClient, format: string): Int16Array {
  if (format === "ulaw_8000") return decodeUlaw(audio);
  if (format !== "opus_48000") {
    return Int16Array.from({ length: audio.length / 2 }, (_, index) => audio.readInt16LE(2 * index));
  }
  const decoder = createOpusDecoder();
  const samples = frames.flatMap((packet) => [...decoder.decode(packet)]);
  decoder.close();
  return Int16Array.from(samples);
}

/** How much weaker each band is than the middle of the telephone's, a Hz. */
function shape(samples: Int16Array, rate: number) {
  const density = (from: number, to: number): number =>
    bandPowerDb(samples, rate, [from, to]) - 10 * Math.log10(to - from);
  const middle = density(600, 2600);
  return {
    low: density(50, 150) - middle,
    high: rate === 8000 ? density(3800, 3950) - middle : density(4600, 7500) - middle,
    edge: density(3000, 3200) - middle,
  };
}

describe("band=telephone", () => {
  it.each(["pcm_24000", "pcm_16000", "ulaw_8000", "opus_48000"])(
    "leaves 300 to 3400 Hz, in %s",
    async (format) => {
      await using upstream = await startFakeUpstream(script);
      await using gateway = await gatewayAt(upstream.url);
      await using client = await TestClient.connect(
        gateway,
        `/live/s?format=${format}&band=telephone&pace=burst&events=none`,
      );
      client.send(SPEAK);
      const done = await client.next("utterance.done");
      expect(done).toMatchObject({ outcome: "done", end_ms: 2000 });
      const rate = Number(format.split("_")[1]);
      const { low, high, edge } = shape(decoded(client, format), rate);
      // Rounding to eight bits is noise of its own, and Opus fills what is empty.
      expect(low).toBeLessThan(format === "ulaw_8000" ? -22 : -25);
      expect(high).toBeLessThan(format === "ulaw_8000" ? -12 : -25);
      expect(Math.abs(edge)).toBeLessThan(1.5);
    },
  );

  it("is each listener's own: another one of the session gets all of the sound", async () => {
    await using upstream = await startFakeUpstream(script);
    await using gateway = await gatewayAt(upstream.url, { trimMs: 0 });
    const join = (query: string) =>
      TestClient.connect(gateway, `/live/s?format=pcm_24000&pace=burst&events=none&${query}`);
    await using full = await join("role=both");
    await using narrow = await join("role=listener&band=telephone");
    expect((await full.next("hello")).settings.band).toBe("full");
    expect((await narrow.next("hello")).settings.band).toBe("telephone");
    full.send(SPEAK);
    await Promise.all([full.next("utterance.done"), narrow.next("utterance.done")]);
    expect(full.audio.equals(bytesOf(whiteNoise(24_000, 2, 0.3)))).toBe(true);
    expect(narrow.audio.length).toBe(full.audio.length);
    expect(shape(decoded(narrow, "pcm_24000"), 24_000).high).toBeLessThan(-40);
  });

  it("joins the segments of a text without a step", async () => {
    const tone = (rate: number) =>
      Int16Array.from({ length: rate }, (_, at) => 8000 * Math.sin((2 * Math.PI * 1000 * at) / rate));
    await using upstream = await startFakeUpstream(({ query }) => {
      const rate = Number((query.get("output_format") ?? "").split("_")[1]);
      return { headers: { "content-type": "audio/pcm", "request-id": "r" }, body: [bytesOf(tone(rate))] };
    });
    const pauses = { trimMs: 0, pauseClauseMs: 0, pauseSentenceMs: 0, pauseParagraphMs: 0 };
    await using gateway = await gatewayAt(upstream.url, pauses);
    await using client = await TestClient.connect(
      gateway,
      "/live/s?format=pcm_16000&band=telephone&pace=burst&events=none",
    );
    for (const text of ["One sentence is here. ", "And another one. "]) {
      client.send({ type: "text", text, voice_id: "v" });
      client.send({ type: "flush" });
    }
    client.send({ type: "end" });
    await client.next("utterance.done");
    const samples = decoded(client, "pcm_16000");
    expect(samples.length).toBe(32_000);
    // A tone of 8000 at 1 kHz moves by 3142 a sample at most.
    const steps = [...samples.subarray(1)].map((sample, at) => Math.abs(sample - (samples[at] ?? 0)));
    expect(Math.max(...steps)).toBeLessThan(3600);
  });

  it("is changed by configure; an unknown band is refused with the field's name", async () => {
    await using upstream = await startFakeUpstream(script);
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_24000&pace=burst&events=none");
    client.send({ type: "configure", band: "telephone" });
    expect((await client.next("configured")).settings.band).toBe("telephone");
    client.send(SPEAK);
    await client.next("utterance.done");
    expect(shape(decoded(client, "pcm_24000"), 24_000).high).toBeLessThan(-40);
    client.send({ type: "configure", band: "wide" });
    expect(await client.next("error")).toMatchObject({ code: "invalid_field", field: "band" });
    await using refused = await TestClient.connect(gateway, "/live/s?band=wide");
    expect(await refused.next("error")).toMatchObject({ code: "invalid_field", field: "band" });
  });

  it("call-band gives it to callers, and band to players", async () => {
    await using upstream = await startFakeUpstream(script);
    await using gateway = await gatewayAt(upstream.url, { callBand: "telephone" });
    await using client = await TestClient.connect(gateway, "/live/s?format=pcm_16000&events=call");
    const carrier = await FakeCarrier.dial({
      carrier: "vonage",
      url: `${gateway.wsUrl}/carrier/vonage`,
      call: { parameters: { session: "s" } },
    });
    await client.next("call");
    const player = await fetch(`${gateway.url}/live/s/audio.pcm?rate=16000&band=telephone`);
    client.send(SPEAK);
    await client.next("utterance.done");
    await until("the caller has heard it", () => carrier.playedSamples >= 31_000);
    const heard = Buffer.from(carrier.heard());
    const samples = Int16Array.from({ length: heard.length / 2 }, (_, at) => heard.readInt16LE(2 * at));
    expect(shape(samples, 16_000).high).toBeLessThan(-40);
    expect(shape(decoded(client, "pcm_16000"), 16_000).high).toBeGreaterThan(-3);
    await carrier.hangUp();
    expect(carrier.violations).toEqual([]);
    const chunks: Uint8Array[] = [];
    for await (const chunk of player.body ?? []) {
      chunks.push(chunk);
      if (Buffer.concat(chunks).length >= 60_000) break;
    }
    const body = Buffer.concat(chunks);
    const played = Int16Array.from({ length: body.length >> 1 }, (_, at) => body.readInt16LE(2 * at));
    expect(shape(played, 16_000).high).toBeLessThan(-40);
  });
});
