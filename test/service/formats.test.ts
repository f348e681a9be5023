/** Every output format on real speech, judged by ffmpeg, ffprobe and opusinfo. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OUTPUT_FORMATS, STREAM_FORMATS } from "../../src/audio/formats.ts";
import { measures } from "../helpers/measures.ts";
import { type Client, decode, linesOf, loudness, startClient, VOICE } from "./client.ts";

const TEXT = "Every format carries this sentence.";
const PATH = `/v1/text-to-speech/${VOICE}`;
/** MP3 carries its encoder's and decoder's delay (1105 samples) and fills its last frame; no player can know it. */
const MP3_DELAY_SECONDS = 0.08;
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  mp3: "audio/mpeg",
  pcm: "audio/pcm",
  wav: "audio/wav",
  opus: "audio/opus",
  ulaw: "audio/basic",
  alaw: "audio/x-alaw-basic",
};
let client: Client;
let folder: string;

beforeAll(async () => {
  client = await startClient();
  folder = mkdtempSync(join(tmpdir(), "voicewire-formats-"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await client[Symbol.asyncDispose]();
});

interface Whole {
  readonly audio_base64: string;
  readonly alignment: {
    readonly character_end_times_seconds: readonly number[];
    readonly characters: readonly string[];
  };
}

describe("output formats of the full endpoints", () => {
  it.each(OUTPUT_FORMATS)("%s decodes to speech as long as its alignment", async (format) => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "output_format",
      "codec, rate and length of the audio, by ffmpeg",
    );
    measures("POST /v1/text-to-speech/{voice_id}", "text", "the characters that are timed");
    const timed = await client.post(`${PATH}/with-timestamps?output_format=${format}`, { text: TEXT });
    expect(timed.status).toBe(200);
    expect(timed.headers["content-length"]).toBe(String(timed.body.length));
    const { audio_base64, alignment } = JSON.parse(timed.body.toString()) as Whole;
    expect(alignment.characters.join("")).toBe(TEXT);
    const samples = decode(Buffer.from(audio_base64, "base64"), format);
    const endSeconds = alignment.character_end_times_seconds.at(-1) ?? 0;
    const delaySeconds = format.startsWith("mp3_") ? MP3_DELAY_SECONDS : 0;
    expect(samples.length / 16_000).toBeGreaterThan(endSeconds - 0.06);
    expect(samples.length / 16_000).toBeLessThan(endSeconds + delaySeconds + 0.06);
    expect(loudness(samples)).toBeGreaterThan(1000);
    const plain = await client.post(`${PATH}?output_format=${format}`, { text: TEXT });
    const codec = format.split("_")[0] ?? "";
    expect(plain.headers["content-type"]).toBe(CONTENT_TYPES[codec]);
    expect(plain.headers["content-length"]).toBe(String(plain.body.length));
    expect(Math.abs(decode(plain.body, format).length - samples.length)).toBeLessThan(1000);
  });

  it("a WAV file states its true sizes", async () => {
    const { body } = await client.post(`${PATH}?output_format=wav_24000`, { text: TEXT });
    expect(body.readUInt32LE(4)).toBe(body.length - 8);
    expect(body.readUInt32LE(40)).toBe(body.length - 44);
    const facts = probe(body, "x.wav");
    expect(facts).toMatchObject({ codec_name: "pcm_s16le", sample_rate: "24000", channels: 1 });
    expect(Number(facts.duration)).toBeCloseTo((body.length - 44) / 48_000, 3);
  });

  it("opusinfo finds nothing wrong with Ogg Opus", async () => {
    const { body } = await client.post(`${PATH}?output_format=opus_48000_64`, { text: TEXT });
    const path = join(folder, "x.opus");
    writeFileSync(path, body);
    const report = execFileSync("opusinfo", [path], { encoding: "utf8" });
    expect(report).not.toMatch(/warning|error|corrupt/i);
    expect(report).toMatch(/Playback length: 0m:0\d/);
  });

  it("ffprobe sees the bit rate that was asked for in MP3", async () => {
    for (const format of ["mp3_22050_32", "mp3_44100_192"]) {
      const { body } = await client.post(`${PATH}?output_format=${format}`, { text: TEXT });
      const [, rate, kbps] = format.split("_");
      expect(probe(body, "x.mp3")).toMatchObject({
        codec_name: "mp3",
        sample_rate: rate,
        bit_rate: `${kbps}000`,
        channels: 1,
      });
    }
  });
});

describe("output formats of the streaming endpoints", () => {
  it.each(STREAM_FORMATS)("%s streams the same speech, plain and in lines", async (format) => {
    const plain = await client.post(`${PATH}/stream?output_format=${format}`, { text: TEXT });
    expect(plain.headers["transfer-encoding"]).toBe("chunked");
    expect(plain.headers["content-type"]).toBe(CONTENT_TYPES[format.split("_")[0] ?? ""]);
    const timed = await client.post(`${PATH}/stream/with-timestamps?output_format=${format}`, { text: TEXT });
    const lines = linesOf(timed.body);
    const joined = Buffer.concat(lines.map((line) => Buffer.from(line.audio_base64, "base64")));
    if (format.startsWith("pcm_")) {
      for (const line of lines) expect(Buffer.from(line.audio_base64, "base64").length % 2).toBe(0);
    }
    const [plainSamples, timedSamples] = [decode(plain.body, format), decode(joined, format)];
    expect(loudness(plainSamples)).toBeGreaterThan(1000);
    expect(Math.abs(plainSamples.length - timedSamples.length)).toBeLessThan(1000);
  });
});

interface Stream {
  readonly codec_name: string;
  readonly sample_rate: string;
  readonly channels: number;
  readonly duration: string;
}

function probe(bytes: Uint8Array, name: string): Stream {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  const json = execFileSync("ffprobe", ["-v", "error", "-show_streams", "-of", "json", path], {
    encoding: "utf8",
  });
  const [stream] = (JSON.parse(json) as { streams: Stream[] }).streams;
  if (stream === undefined) throw new Error("No stream");
  return stream;
}
