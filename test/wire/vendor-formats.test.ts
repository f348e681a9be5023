/** Every format of Set A over a socket: what consecutive generations leave behind each other plays as one stream. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STREAM_FORMATS } from "../../src/audio/formats.ts";
import { decode, loudness, startClient, VOICE } from "../service/client.ts";
import { audioOf, charsOf, type Heard, startVendorApp, type VendorApp, VendorClient } from "./vendor-rig.ts";

/** Samples at 16 kHz, as `decode` gives them. */
const RATE = 16_000;
const SENTENCES = ["The first sentence is spoken here. ", "And here is the second one. "];

let service: Awaited<ReturnType<typeof startClient>>;
let app: VendorApp;
const folder = mkdtempSync(join(tmpdir(), "vendor-formats-"));

beforeAll(async () => {
  service = await startClient();
  app = await startVendorApp(service.service.url);
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Two generations of one context, and where the second begins by what the messages say. */
async function speak(
  format: string,
): Promise<{ audio: Buffer; heard: readonly Heard[]; secondMs: number; endMs: number }> {
  const path = `/v1/text-to-speech/${VOICE}/multi-stream-input?auto_mode=true&absolute_times=true&output_format=${format}`;
  await using client = await VendorClient.connect(app, path);
  for (const text of SENTENCES) client.send({ text, context_id: "a" });
  client.send({ context_id: "a", close_context: true });
  await client.final("a");
  const starts = client.heard.flatMap((one) => one.alignment?.charStartTimesMs ?? []);
  const durations = client.heard.flatMap((one) => one.alignment?.charDurationsMs ?? []);
  return {
    audio: audioOf(client.heard),
    heard: client.heard,
    secondMs: starts[SENTENCES[0]?.length ?? 0] ?? 0,
    endMs: (starts.at(-1) ?? 0) + (durations.at(-1) ?? 0),
  };
}

describe("two generations in one context", () => {
  it.each(STREAM_FORMATS)(
    "%s plays as one stream, as long as its timing says, with speech in both",
    async (format) => {
      const { audio, heard, secondMs, endMs } = await speak(format);
      expect(charsOf(heard)).toBe(SENTENCES.join(""));
      const samples = decode(audio, format);
      const ms = (samples.length / RATE) * 1000;
      // MP3 and Opus: what the encoders add at the ends of two responses.
      expect(ms).toBeGreaterThanOrEqual(endMs - 2);
      expect(ms).toBeLessThan(endMs + 200);
      const cut = Math.round((secondMs / 1000) * RATE);
      expect(loudness(samples.subarray(0, cut))).toBeGreaterThan(300);
      expect(loudness(samples.subarray(cut, cut + RATE))).toBeGreaterThan(300);
      if (!/^(mp3|opus)/.test(format)) expect(Math.abs(ms - endMs)).toBeLessThan(2);
      if (format.startsWith("pcm")) {
        for (const one of heard) expect(Buffer.from(one.audio ?? "", "base64").length % 2).toBe(0);
      }
    },
  );

  it("Opus is one logical Ogg stream without a fault, from its headers to its last page", async () => {
    const { audio } = await speak("opus_48000_64");
    const file = join(folder, "speech.ogg");
    writeFileSync(file, audio);
    const { stdout, stderr, status } = spawnSync("opusinfo", [file], { encoding: "utf8" });
    expect([status, stdout.match(/New logical stream/g)?.length]).toEqual([0, 1]);
    expect(`${stdout}${stderr}`).not.toMatch(/warning|error|invalid|negative/i);
  });

  it("MP3 is frames and nothing else: ffmpeg finds no fault, and the length of both", async () => {
    const { audio, endMs } = await speak("mp3_44100_128");
    const file = join(folder, "speech.mp3");
    writeFileSync(file, audio);
    const { stderr, status } = spawnSync("ffmpeg", ["-v", "warning", "-i", file, "-f", "null", "-"], {
      encoding: "utf8",
    });
    expect([status, stderr.replace(/.*Estimating duration from bitrate.*\n/, "")]).toEqual([0, ""]);
    const show = ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", file];
    const seconds = Number(execFileSync("ffprobe", show, { encoding: "utf8" }));
    expect(seconds * 1000).toBeGreaterThan(endMs - 2);
  });
});

describe("against the embedded service", () => {
  it("an unknown voice closes the socket with 1008, as the vendor says it", async () => {
    await using client = await VendorClient.connect(app, "/v1/text-to-speech/nobody/stream-input");
    client.send({ text: "Hello. " }, { text: "" });
    const reason = "A voice with voice_id nobody does not exist.";
    expect(await client.untilClosed()).toEqual({ code: 1008, reason });
    expect(client.heard).toEqual([{ message: reason, error: "voice_id_does_not_exist", code: 1008 }]);
  });

  it("a dialogue of two voices is spoken with its timing", async () => {
    const path = "/v1/text-to-dialogue/multi-stream-input?model_id=eleven_v3&output_format=pcm_16000";
    await using client = await VendorClient.connect(app, path);
    const other = "pNInz6obpgDQGcFmaJgB";
    client.send({ context_id: "a", voices: [VOICE, other] });
    client.send({
      context_id: "a",
      inputs: [
        { text: "How are you? ", voice_id: VOICE },
        { text: "Very well. ", voice_id: other },
      ],
      flush: true,
    });
    client.send({ context_id: "a", close_context: true });
    await client.final("a");
    const text = client.heard.map((one) => one.alignment?.chars.join("") ?? "").join("");
    expect(text.replaceAll(/\s+/g, " ").trim()).toBe("How are you? Very well.");
    expect(loudness(decode(audioOf(client.heard), "pcm_16000"))).toBeGreaterThan(300);
    expect(client.heard.filter((one) => one.is_final_audio_for_turn === true)).toHaveLength(1);
  });
});
