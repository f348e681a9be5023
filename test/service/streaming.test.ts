/** Streams on the wire: lines, headers, dialogues, and what happens when a client is slow, leaves, or is one of many. */
import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { until } from "../helpers/until.ts";
import { type Client, linesOf, OTHER_VOICE, startClient, VOICE } from "./client.ts";

const PATH = `/v1/text-to-speech/${VOICE}`;
const MAX_LINE_BYTES = 131_072;
/** About 25 minutes of speech. */
const VERY_LONG = "This sentence is said again and again, until nobody listens. ".repeat(600);
const LONG_MODEL = "eleven_flash_v2_5";
let client: Client;

beforeAll(async () => {
  client = await startClient();
});
afterAll(() => client[Symbol.asyncDispose]());

describe("stream/with-timestamps", () => {
  it("sends lines under 128 KiB whose characters and times go through the whole response", async () => {
    const text = `Dr. Smith's bill: $1,234.56! "Really?" ${"Some more words follow here. ".repeat(10)}👩‍👩‍👧 ok`;
    const answer = await client.post(`${PATH}/stream/with-timestamps?output_format=pcm_48000`, { text });
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toContain("application/json");
    for (const line of answer.body.toString("utf8").split("\n")) {
      expect(Buffer.byteLength(line)).toBeLessThan(MAX_LINE_BYTES);
    }
    const lines = linesOf(answer.body);
    expect(lines.flatMap((line) => line.alignment?.characters ?? []).join("")).toBe(text);
    const said = lines.flatMap((line) => line.normalized_alignment?.characters ?? []).join("");
    expect(said).toContain("Doctor Smith's bill: one thousand two hundred thirty-four dollars");
    let position = 0;
    for (const line of lines) {
      const seconds = Buffer.from(line.audio_base64, "base64").length / 96_000;
      for (const start of line.alignment?.character_start_times_seconds ?? []) {
        expect(start).toBeGreaterThan(position - 1);
        expect(start).toBeLessThan(position + seconds + 1);
      }
      position += seconds;
      expect(Object.keys(line)).toEqual(["audio_base64", "alignment", "normalized_alignment"]);
    }
  });

  it("carries the engine's own word events on request, and words begin at them", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "x-voicewire-truth",
      "the engine's word times come with the answer",
    );
    const path = `${PATH}/stream/with-timestamps?output_format=pcm_16000`;
    const answer = await client.post(
      path,
      { text: "Every word begins on time." },
      { "x-voicewire-truth": "1" },
    );
    const lines = linesOf(answer.body);
    const starts = lines.flatMap((line) => line.alignment?.character_start_times_seconds ?? []);
    const words = lines.flatMap((line) => line.voicewire_words ?? []);
    expect(words.length).toBeGreaterThanOrEqual(4);
    for (const word of words) {
      expect(Math.abs((starts[word.character_index] ?? -1) - word.start_time_seconds)).toBeLessThanOrEqual(
        0.001,
      );
    }
  });

  it("says signs as they are written where normalization is off", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "apply_text_normalization",
      "what is said of numbers and signs",
    );
    const said = async (apply_text_normalization: string) => {
      const body = { text: "Take it for $5.", apply_text_normalization };
      const { body: answer } = await client.post(`${PATH}/stream/with-timestamps`, body);
      return linesOf(answer)
        .flatMap((line) => line.normalized_alignment?.characters ?? [])
        .join("");
    };
    expect(await said("auto")).toBe("Take it for five dollars.");
    expect(await said("off")).toBe("Take it for $5.");
  });

  it("has the headers of a live answer", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "model_id", "the characters that are billed");
    const answer = await client.post(
      `${PATH}/stream?output_format=ulaw_8000`,
      { text: "Hello 😀" },
      { origin: "http://localhost:1" },
    );
    expect(answer.headers).toMatchObject({
      "character-cost": "7",
      "content-type": "audio/basic",
      "access-control-expose-headers": expect.stringContaining("character-cost"),
    });
    expect(answer.headers["request-id"]).toMatch(/^\w{20}$/);
    expect(answer.headers["x-trace-id"]).toMatch(/^[0-9a-f]{32}$/);
    expect(answer.headers["tts-latency-ms"]).toMatch(/^\d+$/);
    const flash = await client.post(`${PATH}/stream`, { text: "12345", model_id: LONG_MODEL });
    expect(flash.headers["character-cost"]).toBe("3");
  });

  it("costs nothing where there is nothing to hear", async () => {
    const costOf = async (path: string, body: object) => {
      const { status, headers } = await client.post(path, body);
      expect(status).toBe(200);
      return headers["character-cost"];
    };
    for (const [text, cost] of [
      ["...", "0"],
      [" — …!\n", "0"],
      ["<lexicon/> ...", "0"],
      ["<p>a</p>", "8"],
      ['<break time="1s"/>', "18"],
      ["... 1", "5"],
      ["😀", "1"],
    ] as const) {
      expect([text, await costOf(PATH, { text })]).toEqual([text, cost]);
    }
    const inputs = ["...", "[gunshot]", "Hi."].map((text) => ({ text, voice_id: VOICE }));
    expect(await costOf("/v1/text-to-dialogue", { inputs })).toBe("3");
    // Said as a dictionary has it.
    const rules = [{ type: "alias", string_to_replace: "...", alias: "dots", word_boundaries: false }];
    const made = await client.post("/v1/pronunciation-dictionaries/add-from-rules", { name: "a", rules });
    const { id } = JSON.parse(made.body.toString()) as { id: string };
    const locators = [{ pronunciation_dictionary_id: id }];
    expect(await costOf(PATH, { text: "...", pronunciation_dictionary_locators: locators })).toBe("3");
  });
});

describe("dialogues", () => {
  const inputs = [
    { text: "[laughs] Hello there, Amos. ", voice_id: VOICE },
    { text: "Hi 😀 Nora!", voice_id: OTHER_VOICE },
  ];
  const text = inputs.map((input) => input.text).join("");

  it("give one voice segment an input in the whole response", async () => {
    measures("POST /v1/text-to-dialogue", "inputs[].text", "the characters that are timed");
    const answer = await client.post("/v1/text-to-dialogue/with-timestamps?output_format=pcm_8000", {
      inputs,
    });
    const whole = JSON.parse(answer.body.toString()) as ReturnType<typeof linesOf>[number];
    expect(whole.alignment?.characters.join("")).toBe(text);
    expect(whole.normalized_alignment?.characters.join("")).not.toContain("laughs");
    const seconds = Buffer.from(whole.audio_base64, "base64").length / 16_000;
    expect(whole.voice_segments).toEqual([
      {
        voice_id: VOICE,
        start_time_seconds: 0,
        end_time_seconds: expect.any(Number),
        character_start_index: 0,
        character_end_index: 28,
        dialogue_input_index: 0,
      },
      {
        voice_id: OTHER_VOICE,
        start_time_seconds: whole.voice_segments?.[0]?.end_time_seconds,
        end_time_seconds: expect.closeTo(seconds, 2),
        character_start_index: 28,
        character_end_index: [...text].length,
        dialogue_input_index: 1,
      },
    ]);
  });

  it("give each streamed chunk the segment of its part of the text", async () => {
    const answer = await client.post("/v1/text-to-dialogue/stream/with-timestamps?output_format=pcm_8000", {
      inputs,
    });
    const segments = linesOf(answer.body).flatMap((line) => line.voice_segments ?? []);
    let index = 0;
    for (const segment of segments) {
      expect(segment.character_start_index).toBe(index);
      index = segment.character_end_index;
    }
    expect(index).toBe([...text].length);
    expect(segments.at(0)?.voice_id).toBe(VOICE);
    expect(segments.at(-1)?.voice_id).toBe(OTHER_VOICE);
  });

  it("stream and come whole as plain audio too", async () => {
    for (const path of ["/v1/text-to-dialogue", "/v1/text-to-dialogue/stream"]) {
      const answer = await client.post(`${path}?output_format=pcm_8000`, { inputs });
      expect(answer.status).toBe(200);
      expect(answer.body.length).toBeGreaterThan(16_000);
    }
  });
});

describe("clients of all kinds", () => {
  const body = { text: VERY_LONG, model_id: LONG_MODEL };
  const active = () => client.service.stats().jobs_active;

  it("a client that leaves ends its synthesis at once", async () => {
    const before = client.service.stats();
    const response = await client.open(`${PATH}/stream?output_format=ulaw_8000`, body);
    response.destroy();
    await until("the job is over", () => active() === 0);
    const after = client.service.stats();
    expect(after.jobs_cancelled).toBe(before.jobs_cancelled + 1);
    expect(after.synthesized_seconds - before.synthesized_seconds).toBeLessThan(300);
  });

  it("a client that leaves before the whole file is there ends its synthesis too", async () => {
    const before = client.service.stats().jobs_cancelled;
    const answer = client
      .open(`${PATH}?output_format=mp3_44100_128`, body)
      .catch((thrown: unknown) => thrown);
    await until("the job runs", () => active() === 1);
    client.abortOpenRequests();
    expect(await answer).toBeInstanceOf(Error);
    await until("the job is over", () => active() === 0);
    expect(client.service.stats().jobs_cancelled).toBe(before + 1);
  });

  it("a client that does not read holds up only its own job, in bounded memory", async () => {
    const before = client.service.stats().synthesized_seconds;
    const stuck = await client.open(`${PATH}/stream?output_format=pcm_48000`, body);
    const [first] = await Promise.all([
      readSome(stuck, 1),
      client.post(`${PATH}?output_format=pcm_8000`, { text: "Me too." }),
    ]);
    expect(first).toBeGreaterThan(0);
    // Others are served while it is stuck; after as much speech again for them, it still has not been read to its end.
    for (let round = 0; round < 5; round++) {
      const other = await client.post(`${PATH}/stream?output_format=pcm_8000`, {
        text: "Others are served.",
      });
      expect(other.status).toBe(200);
    }
    expect(active()).toBe(1);
    stuck.destroy();
    await until("the job is over", () => active() === 0);
    // 25 minutes of pcm_48000 are 144 MB: what was made is what socket buffers and credit hold, a few MB.
    expect(client.service.stats().synthesized_seconds - before).toBeLessThan(400);
  });

  it("two long requests take turns: both have their first second before either is far ahead", async () => {
    const received = [0, 0];
    const responses = await Promise.all(
      received.map(() => client.open(`${PATH}/stream?output_format=ulaw_8000`, body)),
    );
    for (const [index, response] of responses.entries()) {
      response.on("data", (chunk: Buffer) => {
        received[index] = (received[index] ?? 0) + chunk.length;
      });
    }
    const [seconds0, seconds1] = await new Promise<readonly [number, number]>((resolve) => {
      const look = () => {
        const [a = 0, b = 0] = received.map((bytes) => bytes / 8000);
        if (a + b > 120) resolve([a, b]);
        else setImmediate(look);
      };
      look();
    });
    for (const response of responses) response.destroy();
    expect(Math.min(seconds0, seconds1) / Math.max(seconds0, seconds1)).toBeGreaterThan(0.4);
    await until("both jobs are over", () => active() === 0);
  });

  it("sixty requests at once are all answered", async () => {
    const answers = await Promise.all(
      Array.from({ length: 60 }, () =>
        client.post(`${PATH}/stream?output_format=opus_48000_32`, { text: "Hello." }),
      ),
    );
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
    for (const answer of answers) expect(answer.body.length).toBeGreaterThan(1000);
    expect(active()).toBe(0);
  });
});

/** Reads until so many bytes came, then stops reading. */
function readSome(response: IncomingMessage, bytes: number): Promise<number> {
  return new Promise((resolve) => {
    let received = 0;
    response.on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (received < bytes) return;
      response.pause();
      resolve(received);
    });
  });
}
