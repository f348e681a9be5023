/** Tags over the interface: which models act on audio tags, when they are heard, and which tags are said to be left out. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { floatsOf, rms, samplesOf } from "../unit/service/convert/measures.ts";
import { type Client, OTHER_VOICE, startClient, VOICE } from "./client.ts";

const RATE = 24_000;
let client: Client;

beforeAll(async () => {
  client = await startClient();
}, 60_000);
afterAll(async () => {
  await client[Symbol.asyncDispose]();
});

async function speak(text: string, body: object, query = "") {
  const path = `/v1/text-to-speech/${VOICE}/with-timestamps?output_format=pcm_${RATE}${query}`;
  const answer = await client.post(path, { text, ...body }, { origin: "http://localhost:1" });
  expect(answer.status).toBe(200);
  const { audio_base64, alignment, normalized_alignment } = JSON.parse(answer.body.toString());
  const said: string = normalized_alignment.characters.join("");
  return { headers: answer.headers, pcm: samplesOf(Buffer.from(audio_base64, "base64")), alignment, said };
}

async function settingsOf(id: unknown): Promise<Record<string, unknown>> {
  const item = await client.get(`/v1/history/${String(id)}`);
  return JSON.parse(item.body.toString()).settings;
}

/** Too long, and two that can't be read. */
const BREAKS = ['<break time="3.1s"/>', '<break time="soon"/>', '<break strength="x"/>'];

describe("audio tags", { timeout: 60_000 }, () => {
  it.each(["eleven_v3", "eleven_v4_turbo"])("are performed where they stand: %s", async (model_id) => {
    const text = "Well [laughs] there you are.";
    const { pcm, alignment, said, headers } = await speak(text, { model_id });
    expect(alignment.characters.join("")).toBe(text);
    expect(said).toBe("Well there you are.");
    const from = alignment.character_start_times_seconds[text.indexOf("[")];
    const to = alignment.character_end_times_seconds[text.indexOf("]")];
    expect(to - from).toBeGreaterThan(0.8);
    expect(rms(floatsOf(pcm.subarray(from * RATE, to * RATE)))).toBeGreaterThan(0.01);
    expect(headers["x-left-out-tags"]).toBeUndefined();
  });

  it("are text for the other models", async () => {
    const { said, headers } = await speak("Well [gunshot] there.", { model_id: "eleven_multilingual_v2" });
    expect(said).toContain("gunshot");
    expect(headers["x-left-out-tags"]).toBeUndefined();
  });

  it("that nothing is done of are named in the header and in the history, each once", async () => {
    const text = "[sings] One. [laughs] Two. [strong Gälic accent] Three. [sings] Four.";
    const { headers } = await speak(text, { model_id: "eleven_v3" });
    expect(headers["x-left-out-tags"]).toBe("[sings], [strong G%C3%A4lic accent]");
    expect(headers["access-control-expose-headers"]).toContain("x-left-out-tags");
    expect(await settingsOf(headers["history-item-id"])).toMatchObject({
      left_out_tags: ["[sings]", "[strong Gälic accent]"],
    });
    const done = await speak("[laughs] One.", { model_id: "eleven_v3" });
    expect(await settingsOf(done.headers["history-item-id"])).not.toHaveProperty("left_out_tags");
  });

  it("very many tags that are left out make no endless header", async () => {
    const text = Array.from(
      { length: 100 },
      (_, at) => `[sings${"a".repeat(at % 50)} x${"b".repeat(at / 50)}]`,
    );
    const { headers } = await speak(`One ${text.join(" ")}`, { model_id: "eleven_v3" });
    const value = String(headers["x-left-out-tags"]);
    expect(value.length).toBeGreaterThan(500);
    expect(value.length).toBeLessThan(1100);
    expect(value.endsWith("]")).toBe(true);
  });

  it("tags of any characters are named", async () => {
    const { headers } = await speak("One [a😀 b\u0007 é] two.", { model_id: "eleven_v3" });
    expect(headers["x-left-out-tags"]).toBe("[a%F0%9F%98%80 b%07 %C3%A9]");
  });

  it("tags of a dialogue belong to their input alone", async () => {
    const lines = (first: string) => [
      { text: first, voice_id: VOICE },
      { text: "I never told you the truth.", voice_id: OTHER_VOICE },
    ];
    const path = `/v1/text-to-dialogue/with-timestamps?output_format=pcm_${RATE}`;
    const segments = async (first: string) => {
      const answer = await client.post(path, { inputs: lines(first) });
      const { voice_segments } = JSON.parse(answer.body.toString());
      const seconds = voice_segments.map(
        (one: { start_time_seconds: number; end_time_seconds: number }) =>
          one.end_time_seconds - one.start_time_seconds,
      );
      return { seconds, left: answer.headers["x-left-out-tags"] };
    };
    const [plain, slow] = [await segments("It was late."), await segments("[slowly] It was late. [sings]")];
    expect(slow.seconds[0] / plain.seconds[0]).toBeGreaterThan(1.2);
    expect(slow.seconds[1] / plain.seconds[1]).toBeCloseTo(1, 1);
    expect([plain.left, slow.left]).toEqual([undefined, "[sings]"]);
  });

  it("are the same bytes with the same seed", async () => {
    const body = { model_id: "eleven_v3", seed: 11 };
    const text = "[sighs] Yes. [whispers] No. [laughs] Maybe.";
    const [one, two] = [await speak(text, body), await speak(text, body)];
    expect(Buffer.from(one.pcm.buffer).equals(Buffer.from(two.pcm.buffer))).toBe(true);
    expect((await speak(text, { ...body, seed: 12 })).pcm).not.toEqual(one.pcm);
  });
});

it("tags of any kind that nothing is done of are named in the answer, in every model", async () => {
  const said = '<phoneme alphabet="ipa" ph="təˈmɑːtoʊ">';
  const unsayable = '<phoneme alphabet="ipa" ph="ʁy">';
  const unknown = '<phoneme alphabet="x-sampa" ph="t@mA:to">';
  const text =
    `<speak>One ${said}tomato</phoneme>, <break time="0.2s"/> <break/> <break strength="weak"/> ${unsayable}two</phoneme>, ` +
    `${unknown}tomato</phoneme>, <prosody rate="slow">three</prosody>, <phoneme>four</phoneme>, ` +
    `${unknown}five</phoneme> <break time="3.1s"/> <break time="soon"/> <break strength="x"/> [sings].</speak>`;
  const left = [unsayable, unknown, '<prosody rate="slow">', "<phoneme>", ...BREAKS];
  const rules = [{ type: "alias", string_to_replace: "tomato", alias: "potato" }];
  const made = await client.post("/v1/pronunciation-dictionaries/add-from-rules", { name: "Mine", rules });
  const { id } = JSON.parse(made.body.toString());
  for (const model_id of ["eleven_multilingual_v2", "eleven_v3"]) {
    const named = model_id === "eleven_v3" ? [...left, "[sings]"] : left;
    const { headers } = await client.post(`/v1/text-to-speech/${VOICE}`, {
      text,
      model_id,
      // A dictionary that says the word does not do what the tag asks for.
      pronunciation_dictionary_locators: [{ pronunciation_dictionary_id: id }],
    });
    expect(headers["x-left-out-tags"]).toBe(named.join(", ").replace("ʁ", "%CA%81"));
    const item = await client.get(`/v1/history/${headers["history-item-id"]}`);
    expect(JSON.parse(item.body.toString()).settings.left_out_tags).toEqual(named);
  }
  const long = `<phoneme alphabet="ipa" ph="${"ʁ".repeat(300)}">`;
  const { headers } = await client.post(`/v1/text-to-speech/${VOICE}`, { text: `${long}word</phoneme>` });
  expect(headers["x-left-out-tags"]).toBe(long.slice(0, 80).replaceAll("ʁ", "%CA%81"));
});
