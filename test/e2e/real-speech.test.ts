/** The whole way on real speech: client, gateway, HTTP, engine. What the engine knows of its words is the truth. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Word } from "../../src/protocol/events.ts";
import { startService } from "../../src/service/service.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { startTruthProxy, type TruthProxy } from "../helpers/truth-proxy.ts";

type Service = Awaited<ReturnType<typeof startService>>;
let service: Service;
let proxy: TruthProxy;
let gateway: TestGateway;
let sessions = 0;

beforeAll(async () => {
  service = await startService({ host: "127.0.0.1", port: 0 });
  proxy = await startTruthProxy(service.url);
  gateway = await gatewayAt(proxy.url, { voice: "" });
});

afterAll(async () => {
  await gateway.close();
  await proxy[Symbol.asyncDispose]();
  await service.close();
});

const join = (query: string): Promise<TestClient> =>
  TestClient.connect(gateway, `/live/e2e-${sessions++}?${query}`);

/** Speaks and gives back the words emitted and the response that the gateway got. */
async function say(message: object, query = "format=ulaw_8000&pace=burst") {
  await using client = await join(query);
  client.send(message);
  const done = await client.next("utterance.done");
  const words = client.eventsOf("words").flatMap((event) => [...event.words]);
  const response = proxy.responses.at(-1);
  if (response === undefined) throw new Error("No response went through the proxy");
  return { done, words, response, client, audio: client.audio, characters: client.eventsOf("characters") };
}

/** UTF-16 offset of each character of a response. */
function offsetsOf(lines: ReturnType<TruthProxy["responses"][number]["lines"]>): number[] {
  let offset = 0;
  const offsets: number[] = [];
  for (const character of lines.flatMap((line) => line.alignment?.characters ?? [])) {
    offsets.push(offset);
    offset += character.length;
  }
  return offsets;
}

const TEXTS: Record<string, { text: string; language?: string; words: string[] }> = {
  plain: {
    text: "The quick brown fox jumps over the lazy dog.",
    words: ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"],
  },
  money: { text: "It costs $1,234.56, Dr. Smith.", words: ["It", "costs", "$1,234.56", "Dr.", "Smith"] },
  emoji: { text: "Well 👩‍👩‍👧 done 🎉 you!", words: ["Well", "👩‍👩‍👧", "done", "🎉", "you"] },
  combining: { text: "The cafe\u0301 is nai\u0308ve.", words: ["The", "cafe\u0301", "is", "nai\u0308ve"] },
  arabic: { text: "مرحبا بالعالم اليوم", language: "ar", words: ["مرحبا", "بالعالم", "اليوم"] },
  hebrew: { text: "שלום עולם", language: "he", words: ["שלום", "עולם"] },
  german: {
    text: "Guten Morgen, schöne Welt.",
    language: "de",
    words: ["Guten", "Morgen", "schöne", "Welt"],
  },
};

describe("real speech", () => {
  it.each(Object.entries(TEXTS))(
    "%s: offsets index the client's text and words cover it in order",
    async (_name, fixture) => {
      const { words, done, characters } = await say({
        type: "speak",
        text: fixture.text,
        ...(fixture.language === undefined ? {} : { language_code: fixture.language }),
      });
      expect(words.map((word) => word.text)).toEqual(fixture.words);
      for (const word of words) expect(fixture.text.slice(word.start, word.end)).toBe(word.text);
      expectRising(words);
      expect(words.at(-1)?.end_ms).toBeLessThanOrEqual(done.end_ms);
      expect(characters.flatMap((event) => [...event.characters]).join("")).toBe(fixture.text);
      for (const event of characters)
        expect(fixture.text.slice(event.start, event.end)).toBe(event.characters.join(""));
      expect(done.timing).toBe("exact");
    },
  );

  it.each([
    ["Chinese", "今天天气很好。我们去公园吧。", "zh"],
    ["Japanese", "今日はいい天気です。", "ja"],
  ])("%s: words are found without spaces and cover the text", async (_name, text, language) => {
    const { words } = await say({ type: "speak", text, language_code: language });
    expect(words.length).toBeGreaterThan(2);
    for (const word of words) expect(text.slice(word.start, word.end)).toBe(word.text);
    expect(words.map((word) => word.text).join("")).toBe(text.replace(/[。]/g, ""));
    expectRising(words);
  });

  it.each(["plain", "money", "emoji", "combining", "german"])(
    "%s: word onsets are within 20 ms of the engine's own events",
    async (name) => {
      const fixture = TEXTS[name];
      if (fixture === undefined) throw new Error(`No text ${name}`);
      const { words, response } = await say({
        type: "speak",
        text: fixture.text,
        ...(fixture.language === undefined ? {} : { language_code: fixture.language }),
      });
      const lines = response.lines();
      const offsets = offsetsOf(lines);
      const truth = lines.flatMap((line) => line.voicewire_words ?? []);
      expect(truth.length).toBeGreaterThanOrEqual(words.length - 2);
      let compared = 0;
      for (const word of words) {
        const event = truth.find((one) => {
          const offset = offsets[one.character_index] ?? -1;
          return offset >= word.start && offset < word.end;
        });
        if (event === undefined) continue;
        compared += 1;
        expect(Math.abs(word.start_ms - event.start_time_seconds * 1000), word.text).toBeLessThanOrEqual(20);
      }
      // An emoji may be silent; everything else has an event of its own.
      expect(compared).toBeGreaterThanOrEqual(words.length - 2);
    },
  );

  it("mu-law is bit-exact with what the service sent", async () => {
    const { audio, response } = await say({ type: "speak", text: "Bit by bit, exactly the same." });
    const sent = Buffer.concat(response.lines().map((line) => Buffer.from(line.audio_base64, "base64")));
    expect(audio.subarray(0, sent.length).equals(sent)).toBe(true);
    expect(audio.length - sent.length).toBeLessThan(160);
    expect(new Set(audio).size).toBeGreaterThan(50);
  });

  it("offsets=cp counts code points", async () => {
    const text = "😀😀 grin";
    const { words } = await say({ type: "speak", text }, "format=none&pace=burst&offsets=cp");
    const grin = words.at(-1);
    expect([grin?.start, grin?.end]).toEqual([3, 7]);
  });

  it("a dialogue's two voices are apart in words, segments and sound", async () => {
    const voices = (await (await fetch(`${gateway.url}/v1/voices`)).json()) as {
      voices: { voice_id: string; labels: Record<string, string> }[];
    };
    const she = voices.voices.find((voice) => voice.labels.gender === "female")?.voice_id;
    const he = voices.voices.find((voice) => voice.labels.gender === "male")?.voice_id;
    const inputs = [
      { text: "Did you hear that?", voice_id: she },
      { text: "Every single word.", voice_id: he },
    ];
    await using client = await join("format=pcm_16000&pace=burst");
    client.send({ type: "dialogue", inputs });
    const done = await client.next("utterance.done");
    const segments = client.eventsOf("segment");
    expect([...new Set(segments.map((one) => one.voice_id))]).toEqual([she, he]);
    const whole = inputs.map((input) => input.text).join("");
    const spoken = (index: number) =>
      segments
        .filter((one) => one.dialogue_input_index === index)
        .map((one) => whole.slice(one.start, one.end))
        .join("");
    expect([spoken(0), spoken(1)]).toEqual([inputs[0]?.text, inputs[1]?.text]);
    const starts = segments.map((one) => one.start_ms);
    expect(starts).toEqual([...starts].sort((a, b) => a - b));
    expect(segments.at(-1)?.end_ms).toBeLessThanOrEqual(done.end_ms + 1);
    expect(client.eventsOf("words").flatMap((event) => event.words.map((word) => word.text))).toEqual([
      "Did",
      "you",
      "hear",
      "that",
      "Every",
      "single",
      "word",
    ]);
  });

  it("tokens give the same words and offsets as the whole text, however they are split", async () => {
    const text = "First things first. Then, at 3.14 seconds, Mr. Jones speaks! And so on.";
    const results: Word[][] = [];
    for (const size of [1, 7, text.length]) {
      await using client = await join("format=ulaw_8000&pace=burst");
      for (let at = 0; at < text.length; at += size)
        client.send({ type: "text", text: text.slice(at, at + size) });
      client.send({ type: "end" });
      const done = await client.next("utterance.done");
      expect(done).toMatchObject({ outcome: "done", characters_spoken: text.length });
      results.push(client.eventsOf("words").flatMap((event) => [...event.words]));
    }
    expect(results[0]?.map((word) => word.text).join(" ")).toBe(
      "First things first Then at 3.14 seconds Mr. Jones speaks And so on",
    );
    const bare = results.map((words) => words.map(({ text: word, start, end }) => ({ word, start, end })));
    expect(bare[1]).toEqual(bare[0]);
    expect(bare[2]).toEqual(bare[0]);
    for (const words of results) expectRising(words);
  });

  it("an unknown voice is named in the error", async () => {
    await using client = await join("format=ulaw_8000");
    client.send({ type: "speak", text: "Hello", voice_id: "nobody" });
    expect(await client.next("error")).toMatchObject({ code: "unknown_voice", retryable: false });
  });
});

function expectRising(words: readonly Word[]): void {
  words.forEach((word, index) => {
    expect(word.end_ms).toBeGreaterThanOrEqual(word.start_ms);
    expect(word.start_ms).toBeGreaterThanOrEqual(words[index - 1]?.end_ms ?? 0);
    expect(word.start).toBeGreaterThanOrEqual(words[index - 1]?.end ?? 0);
  });
}
