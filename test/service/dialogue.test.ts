/** What a dialogue does with its parameters, as somebody who listens to it and looks into the history finds out. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OUTPUT_FORMATS, STREAM_FORMATS } from "../../src/audio/formats.ts";
import { medianPitch } from "../../src/service/convert/pitch-tracker.ts";
import { measures } from "../helpers/measures.ts";
import { floatsOf, samplesOf, trackPitch } from "../unit/service/convert/measures.ts";
import { type Client, decode, linesOf, loudness, OTHER_VOICE, startClient, VOICE } from "./client.ts";

const DIALOGUE = "/v1/text-to-dialogue";
const INPUTS = [
  { text: "Where does this train go?", voice_id: VOICE },
  { text: "To the sea, as always.", voice_id: OTHER_VOICE },
];
let client: Client;

beforeAll(async () => {
  client = await startClient({ faults: true });
});
afterAll(() => client[Symbol.asyncDispose]());

async function ask(path: string, body: object = {}, headers: Readonly<Record<string, string>> = {}) {
  const answer = await client.post(DIALOGUE + path, { inputs: INPUTS, ...body }, headers);
  expect(answer.status).toBe(200);
  return answer;
}

async function newestItem(): Promise<Record<string, unknown> | undefined> {
  const { body } = await client.get("/v1/history?page_size=1");
  return (JSON.parse(body.toString()) as { history: Record<string, unknown>[] }).history[0];
}

describe("a dialogue", { timeout: 60_000 }, () => {
  it("speaks each input in its voice", async () => {
    measures("POST /v1/text-to-dialogue", "inputs[].voice_id", "the pitch of each line");
    const pitchOf = async (...voices: readonly string[]) => {
      const inputs = voices.map((voice_id) => ({ text: "All of us sail away in May.", voice_id }));
      const { body } = await ask("?output_format=pcm_24000", { inputs });
      return medianPitch(trackPitch(floatsOf(samplesOf(body)))) ?? 0;
    };
    const [high, low] = [await pitchOf(VOICE, VOICE), await pitchOf(OTHER_VOICE, OTHER_VOICE)];
    expect(high).toBeGreaterThan(1.3 * low);
  });

  it.each([
    ["", OUTPUT_FORMATS],
    ["/stream", STREAM_FORMATS],
  ])("%s: has the format that is asked for", async (path, formats) => {
    measures("POST /v1/text-to-dialogue", "output_format", "codec, rate and length of the audio, by ffmpeg");
    const seconds = decode((await ask("?output_format=pcm_48000")).body, "pcm_48000").length / 16_000;
    for (const format of formats) {
      const { body } = await ask(`${path}?output_format=${format}`);
      const [codec, rate] = format.split("_");
      const samples = decode(body, format);
      expect(Math.abs(samples.length / 16_000 - seconds), format).toBeLessThan(0.3);
      expect(loudness(samples), format).toBeGreaterThan(1000);
      if (codec === "pcm") expect(body.length / 2 / Number(rate), format).toBeCloseTo(seconds, 0);
    }
  });

  it("is kept with its model, unless it is not to be logged", async () => {
    measures("POST /v1/text-to-dialogue", "model_id", "the model in the history");
    measures("POST /v1/text-to-dialogue", "enable_logging", "nothing in the history");
    const kept = await ask("", { model_id: "eleven_v4" });
    const item = await newestItem();
    expect(item).toMatchObject({
      history_item_id: kept.headers["history-item-id"],
      model_id: "eleven_v4",
    });
    const unkept = await ask("?enable_logging=false");
    expect(unkept.headers["history-item-id"]).toBeUndefined();
    expect(await newestItem()).toEqual(item);
  });

  it("language_code: reads the same text in another language", async () => {
    measures("POST /v1/text-to-dialogue", "language_code", "the sound of the same text");
    const inputs = [{ text: "Alle hier", voice_id: VOICE }];
    const soundOf = async (language_code: string) =>
      (await ask("?output_format=pcm_16000", { inputs, seed: 1, language_code })).body;
    const english = await soundOf("en");
    expect((await soundOf("en")).equals(english)).toBe(true);
    expect((await soundOf("de")).equals(english)).toBe(false);
  });

  it("apply_text_normalization: off says signs as they are written", async () => {
    measures("POST /v1/text-to-dialogue", "apply_text_normalization", "what is said of numbers and signs");
    const inputs = [{ text: "Take it for $5.", voice_id: VOICE }];
    const said = async (apply_text_normalization: string) => {
      const lines = linesOf(
        (await ask("/stream/with-timestamps", { inputs, apply_text_normalization })).body,
      );
      return lines.flatMap((line) => line.normalized_alignment?.characters ?? []).join("");
    };
    expect(await said("auto")).toBe("Take it for five dollars.");
    expect(await said("off")).toBe("Take it for $5.");
  });

  it("has the fault that a header asks for, and the truth beside it", async () => {
    measures("POST /v1/text-to-dialogue", "x-voicewire-fault", "the fault that it names");
    measures(
      "POST /v1/text-to-dialogue",
      "x-voicewire-truth",
      "the engine's word times come with the answer",
    );
    const path = "/stream/with-timestamps?output_format=pcm_16000";
    const plain = linesOf((await ask(path)).body);
    expect(plain.flatMap((line) => line.alignment?.characters ?? []).join("")).toBe(
      INPUTS.map(({ text }) => text).join(""),
    );
    expect(plain.flatMap((line) => line.voicewire_words ?? [])).toEqual([]);
    const faulty = linesOf((await ask(path, {}, { "x-voicewire-fault": "alignment_missing" })).body);
    expect(faulty.every((line) => line.alignment === null)).toBe(true);
    const told = linesOf((await ask(path, {}, { "x-voicewire-truth": "1" })).body);
    expect(told.flatMap((line) => line.voicewire_words ?? []).length).toBeGreaterThanOrEqual(8);
  });
});
