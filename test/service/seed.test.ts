/** The same request with the same seed is answered with the same bytes: side by side, later and after a restart. */
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startService } from "../../src/service/service.ts";
import { measures } from "../helpers/measures.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { encodeWavFile } from "../kit/wav-file.ts";
import { samplesOf } from "../unit/service/convert/measures.ts";
import { OTHER_VOICE, startClient, VOICE } from "./client.ts";
import { startConvertApp } from "./convert-app.ts";

const TEXT = "The lamp is on. Nobody lit it, thought the six.";
const FORMATS = ["mp3_44100_128", "pcm_24000", "ulaw_8000", "opus_48000_64"];

const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function answers(seed: number, { isRepeated = false } = {}): Promise<string[]> {
  await using client = await startClient();
  const ask = async (path: string, body: object) => {
    const answer = await client.post(path, { ...body, seed });
    expect(answer.status).toBe(200);
    return hashOf(answer.body);
  };
  const speech = FORMATS.map((format) => ({
    path: `/v1/text-to-speech/${VOICE}/stream?output_format=${format}`,
    body: { text: TEXT },
  }));
  const inputs = [VOICE, OTHER_VOICE].map((voice_id) => ({ text: TEXT, voice_id }));
  const dialogues = FORMATS.map((format) => ({
    path: `/v1/text-to-dialogue?output_format=${format}`,
    body: { inputs },
  }));
  // With their times, which are part of the bytes, and the same in each format.
  const timed = [
    { path: `/v1/text-to-speech/${VOICE}/with-timestamps?output_format=pcm_24000`, body: { text: TEXT } },
    { path: "/v1/text-to-dialogue/stream/with-timestamps?output_format=pcm_24000", body: { inputs } },
  ];
  const asked = [...speech, ...dialogues, ...timed];
  // All at once, so that the jobs take turns in one engine; then one after the other.
  const together = await Promise.all(asked.map(({ path, body }) => ask(path, body)));
  for (const [index, { path, body }] of asked.entries()) {
    if (isRepeated) expect(await ask(path, body), path).toBe(together[index]);
  }
  return together;
}

/** `recording` in another voice, in a service of its own, with each of the seeds. */
async function converted(recording: Int16Array, seeds: readonly number[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  const app = await startConvertApp(folder);
  try {
    const hashes: string[] = [];
    for (const seed of seeds) {
      const form = new FormData();
      form.set("audio", new Blob([encodeWavFile(recording, 24_000) as Uint8Array<ArrayBuffer>]), "said.wav");
      form.set("seed", String(seed));
      const url = `${app.url}/v1/speech-to-speech/${OTHER_VOICE}?output_format=opus_48000_64`;
      const answer = await fetch(url, { method: "POST", body: form });
      expect(answer.status).toBe(200);
      hashes.push(hashOf(new Uint8Array(await answer.arrayBuffer())));
    }
    return hashes;
  } finally {
    await app.close();
    await rm(folder, { recursive: true, force: true });
  }
}

describe("a seed", { timeout: 120_000 }, () => {
  it("is answered with the same bytes by speech and dialogue, after a restart too", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "seed", "the same bytes, and others with another seed");
    measures("POST /v1/text-to-dialogue", "seed", "the same bytes, and others with another seed");
    const first = await answers(7, { isRepeated: true });
    expect(await answers(7)).toEqual(first);
    const other = await answers(8);
    for (const [index, hash] of first.entries()) expect(other[index]).not.toBe(hash);
  });

  it("makes others of it in each of fifty ways, however short the text is", async () => {
    await using client = await startClient();
    const hashes = new Set<string>();
    for (let seed = 0; seed < 50; seed += 1) {
      const { body } = await client.post(`/v1/text-to-speech/${VOICE}?output_format=pcm_16000`, {
        ...{ text: "Hi.", seed },
      });
      hashes.add(hashOf(body));
    }
    expect(hashes.size).toBe(50);
  });

  it("is answered with the same bytes by speech to speech, after a restart too", async () => {
    measures("POST /v1/speech-to-speech/{voice_id}", "seed", "the same bytes, and others with another seed");
    await using client = await startClient();
    const body = { text: TEXT, seed: 1 };
    const said = await client.post(`/v1/text-to-speech/${VOICE}?output_format=pcm_24000`, body);
    const recording = samplesOf(said.body);
    const [one, same, other] = await converted(recording, [7, 7, 8]);
    expect(same).toBe(one);
    expect(await converted(recording, [7])).toEqual([one]);
    expect(other).not.toBe(one);
  });

  it("is heard as the same samples in two sessions of a gateway, over two segments", async () => {
    const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false });
    const gateway = await gatewayAt(service.url, { voice: VOICE });
    const heard = async (session: string, seed: number) => {
      await using client = await TestClient.connect(gateway, `/live/${session}?format=pcm_16000&events=none`);
      // What was flushed is a request of its own.
      client.send({ type: "text", text: "The lamp is on, and ", seed });
      client.send({ type: "flush" });
      client.send({ type: "text", text: "nobody lit it." });
      client.send({ type: "end" });
      expect((await client.next("utterance.done")).outcome).toBe("done");
      return hashOf(client.audio);
    };
    try {
      const [first, same, other] = await Promise.all([
        heard("seed-a", 7),
        heard("seed-b", 7),
        heard("seed-c", 8),
      ]);
      expect(same).toBe(first);
      expect(other).not.toBe(first);
    } finally {
      await gateway.close();
      await service.close();
    }
  });
});
