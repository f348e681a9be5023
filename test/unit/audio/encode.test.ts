import { MPEGDecoder } from "mpg123-decoder";
import { OggOpusDecoder } from "ogg-opus-decoder";
import { describe, expect, it } from "vitest";
import { concatBytes } from "../../../src/audio/bytes.ts";
import { MAX_LIVE_CODECS } from "../../../src/audio/codecs/opus-codec.ts";
import { bytesOf } from "../../../src/audio/codecs/pcm.ts";
import { createStreamEncoder } from "../../../src/audio/containers/encode.ts";
import { OUTPUT_FORMATS, parseUpstreamFormat } from "../../../src/audio/formats.ts";
import { encodeWavFile } from "../../kit/wav-file.ts";
import { ffmpegDecode, fitTone, hasProgram, largestStep, peakHz, run, tone } from "./helpers.ts";

function formatOf(name: string): { codec: string; sampleRate: number; bitrateKbps: number | null } {
  const format = parseUpstreamFormat(name);
  if (format === undefined) throw new Error(`No format ${name}`);
  return format;
}

async function encodeAll(name: string, pcm: Int16Array, step: number): Promise<Uint8Array> {
  const encoder = await createStreamEncoder(name);
  const out: Uint8Array[] = [];
  for (let at = 0; at < pcm.length; at += step) out.push(encoder.push(pcm.subarray(at, at + step)).slice());
  out.push(encoder.flush());
  encoder.close();
  encoder.close();
  return concatBytes(out);
}

/** What ffmpeg needs to know about bytes without a header. */
function rawFormat(name: string): string[] {
  const { codec, sampleRate } = formatOf(name);
  const raw = { pcm: "s16le", ulaw: "mulaw", alaw: "alaw" }[codec];
  return raw === undefined ? [] : ["-f", raw, "-ar", `${sampleRate}`, "-ac", "1"];
}

const SECONDS = 1;

describe.each(OUTPUT_FORMATS)("createStreamEncoder(%s)", (name) => {
  const { codec, sampleRate, bitrateKbps } = formatOf(name);
  const input = tone({ hz: 440, rate: sampleRate, samples: sampleRate * SECONDS });

  it("gives the same bytes, however the samples are cut", async () => {
    const bytes = await encodeAll(name, input, input.length);
    const pieces = await encodeAll(name, input, 777);
    // The serial number of an Ogg stream is random, and so are then its checksums.
    if (codec === "opus") expect(pieces).toHaveLength(bytes.length);
    else expect(Buffer.compare(pieces, bytes)).toBe(0);
  });

  it.skipIf(!hasProgram("ffmpeg"))(
    "ffmpeg hears the tone, as long as it was, without a click (skipped without ffmpeg)",
    async () => {
      const bytes = await encodeAll(name, input, Math.round(sampleRate / 50));
      const output = ffmpegDecode(bytes, { rate: sampleRate, format: rawFormat(name) });
      // MP3 comes in whole frames with the encoder's delay before; everything else is exact.
      const late = output.length - input.length;
      if (codec === "mp3") expect(late).toBeGreaterThanOrEqual(0);
      expect(late).toBeLessThanOrEqual(codec === "mp3" ? 3 * 1152 : 0);
      if (codec !== "mp3") expect(late).toBe(0);
      expect(peakHz(output, sampleRate)).toBe(440);
      const { amplitude, snrDb } = fitTone(output, 440, sampleRate);
      expect(Math.abs(20 * Math.log10(amplitude / 12_000))).toBeLessThan(1);
      expect(snrDb).toBeGreaterThan(codec === "mp3" && bitrateKbps === 32 ? 15 : 25);
      const steepest = 12_000 * ((2 * Math.PI * 440) / sampleRate);
      expect(largestStep(output, sampleRate * 0.2, sampleRate * 0.8)).toBeLessThan(steepest * 1.3 + 700);
    },
  );
});

/** Formats whose bytes say what they are. */
const WITH_HEADER = OUTPUT_FORMATS.filter((name) => rawFormat(name).length === 0);

describe.each(WITH_HEADER)("createStreamEncoder(%s)", (name) => {
  const { codec, sampleRate, bitrateKbps } = formatOf(name);
  const input = tone({ hz: 440, rate: sampleRate, samples: sampleRate * SECONDS });

  it.skipIf(!hasProgram("ffprobe"))(
    "ffprobe reads codec, rate, one channel and the bit rate (skipped without ffprobe)",
    async () => {
      const bytes = await encodeAll(name, input, 960);
      const args = ["-v", "error", "-show_streams", "-show_format", "-of", "json", "pipe:0"];
      const { stdout, stderr } = run("ffprobe", args, bytes);
      const { streams, format } = JSON.parse(Buffer.from(stdout).toString());
      expect(stderr).toBe("");
      expect(streams).toHaveLength(1);
      expect(streams[0]).toMatchObject({
        codec_name: { mp3: "mp3", opus: "opus", wav: "pcm_s16le" }[codec],
        sample_rate: `${sampleRate}`,
        channels: 1,
      });
      expect(format.format_name).toMatch({ mp3: /mp3/, opus: /ogg/, wav: /wav/ }[codec] ?? /^$/);
      if (codec === "mp3") expect(streams[0].bit_rate).toBe(`${(bitrateKbps ?? 0) * 1000}`);
    },
  );
});

describe("createStreamEncoder()", () => {
  it("names the content type", async () => {
    const types = {
      mp3_44100_128: "audio/mpeg",
      pcm_16000: "audio/pcm",
      wav_8000: "audio/wav",
      opus_48000_64: "audio/opus",
      ulaw_8000: "audio/basic",
      alaw_8000: "audio/x-alaw-basic",
    };
    for (const [name, type] of Object.entries(types)) {
      const encoder = await createStreamEncoder(name);
      expect(encoder.contentType).toBe(type);
      encoder.close();
    }
  });

  it("mpg123 hears every MP3 format as ffmpeg does: whole frames at the named bit rate from the first byte", async () => {
    for (const name of OUTPUT_FORMATS.filter((format) => format.startsWith("mp3"))) {
      const { sampleRate, bitrateKbps } = formatOf(name);
      const bytes = await encodeAll(name, tone({ hz: 440, rate: sampleRate, samples: sampleRate }), 1000);
      expect(bytes[0]).toBe(0xff);
      const decoder = new MPEGDecoder();
      await decoder.ready;
      const { channelData, sampleRate: heard, errors } = decoder.decode(bytes);
      decoder.free();
      expect({ name, heard, errors }).toEqual({ name, heard: sampleRate, errors: [] });
      const output = channelData[0] ?? new Float32Array(0);
      expect(peakHz(output, sampleRate)).toBe(440);
      const expectedBytes = ((bitrateKbps ?? 0) * 125 * output.length) / sampleRate;
      expect(Math.abs(bytes.length / expectedBytes - 1)).toBeLessThan(0.05);
    }
  });

  it("ogg-opus-decoder hears every Opus format, to the sample", async () => {
    for (const name of OUTPUT_FORMATS.filter((format) => format.startsWith("opus"))) {
      const bytes = await encodeAll(name, tone({ hz: 440, rate: 48_000, samples: 50_000 }), 960);
      const decoder = new OggOpusDecoder();
      await decoder.ready;
      const { channelData, samplesDecoded, errors } = await decoder.decodeFile(bytes);
      decoder.free();
      expect({ name, samplesDecoded, errors }).toEqual({ name, samplesDecoded: 50_000, errors: [] });
      expect(peakHz(channelData[0] ?? [], 48_000)).toBe(440);
      const kbps = (bytes.length * 8) / (50_000 / 48_000) / 1000;
      // Nominal: constrained VBR spends what the sound needs, a tone less than speech.
      expect(kbps).toBeLessThan((formatOf(name).bitrateKbps ?? 0) * 1.3 + 10);
    }
  });

  it("PCM comes in whole samples, and no audio at all is no fault in any format", async () => {
    const encoder = await createStreamEncoder("pcm_22050");
    for (const count of [0, 1, 3, 441]) expect(encoder.push(new Int16Array(count)).length).toBe(count * 2);
    for (const name of OUTPUT_FORMATS) {
      const empty = await createStreamEncoder(name);
      const bytes = empty.flush();
      empty.close();
      const { codec } = formatOf(name);
      if (codec === "wav") expect(bytes).toHaveLength(44);
      else if (codec === "opus") expect(bytes.length).toBeGreaterThan(100);
      else if (codec !== "mp3") expect(bytes).toHaveLength(0);
    }
  });

  it("refuses an unknown format, and an Opus encoder beyond the limit", async () => {
    await expect(createStreamEncoder("flac_48000")).rejects.toMatchObject({ code: "unknown_format" });
    const open = [];
    for (let at = 0; at < MAX_LIVE_CODECS; at += 1) open.push(await createStreamEncoder("opus_48000_32"));
    await expect(createStreamEncoder("opus_48000_32")).rejects.toMatchObject({ code: "encoder_failed" });
    for (const encoder of open) encoder.close();
    (await createStreamEncoder("opus_48000_32")).close();
  });
});

describe("encodeWavFile()", () => {
  it.skipIf(!hasProgram("sox"))("sox reads it without a warning (skipped without sox)", () => {
    const pcm = tone({ hz: 440, rate: 22_050, samples: 2205 });
    const args = ["-t", "wav", "-", "-t", "s16", "-"];
    const { stdout, stderr } = run("sox", args, encodeWavFile(pcm, 22_050));
    expect(stderr).toBe("");
    expect(Buffer.compare(stdout, bytesOf(pcm))).toBe(0);
  });
});
