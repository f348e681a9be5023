/** Mouth shapes over real sockets: in each set, on the timeline of the words, and for nobody who did not ask. */
import { describe, expect, it } from "vitest";
import { streamAudioArrays } from "../../examples/avatar/talking-head.mjs";
import type { VisemeEvent } from "../../src/protocol/events.ts";
import { speaking, speechAnswer, speechFor, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

const TEXT = "My mouth moves, people watch. Boats float by.";
const SPEAK = { type: "speak", text: TEXT, voice_id: "v", utterance_id: "u" };

interface Shape {
  readonly viseme: string | number;
  readonly startMs: number;
  readonly endMs: number;
}

function shapesOf(events: readonly VisemeEvent[]): Shape[] {
  return events.flatMap((event) => {
    expect(event.vtimes_ms).toHaveLength(event.visemes.length);
    expect(event.vdurations_ms).toHaveLength(event.visemes.length);
    return event.visemes.map((viseme, index) => {
      const startMs = event.vtimes_ms[index] ?? Number.NaN;
      return { viseme, startMs, endMs: startMs + (event.vdurations_ms[index] ?? Number.NaN) };
    });
  });
}

describe("visemes", () => {
  it("cover each word exactly, in order, closed in between, and leave before their sound", async () => {
    // In one chunk: where an upstream pauses inside a word, its audio leaves before its end is known.
    await using upstream = await startFakeUpstream(speaking({ charsPerChunk: 100 }));
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(
      gateway,
      "/live/s?format=ulaw_8000&pace=burst&events=words,visemes",
    );
    client.send(SPEAK);
    const done = await client.next("utterance.done");
    const shapes = shapesOf(client.eventsOf("viseme"));
    const words = client.eventsOf("words").flatMap((event) => event.words);
    expect(words).toHaveLength(8);
    for (const word of words) {
      const its = shapes.filter(({ startMs }) => startMs >= word.start_ms && startMs < word.end_ms);
      expect(its[0]?.startMs).toBe(word.start_ms);
      expect(its.at(-1)?.endMs).toBeCloseTo(word.end_ms, 2);
      expect(its.every(({ viseme }) => viseme !== "sil")).toBe(true);
    }
    shapes.forEach((shape, index) => {
      expect(shape.endMs - shape.startMs).toBeGreaterThan(39.99);
      expect(shapes[index + 1]?.startMs ?? done.end_ms).toBeGreaterThan(shape.endMs - 0.01);
    });
    // "My mouth": lips close, open wide, close again.
    expect(shapes.slice(0, 3).map(({ viseme }) => viseme)).toEqual(["PP", "aa", "sil"]);
    // A pause is closed from the end of one word to the start of the next.
    const moves = words[2];
    const people = words[3];
    expect(shapes).toContainEqual({
      viseme: "sil",
      startMs: moves?.end_ms,
      endMs: expect.closeTo(people?.start_ms ?? 0, 2) as number,
    });
    let frames = 0;
    for (const message of client.messages) {
      if ("frame" in message) frames += 1;
      else if (message.event.type === "viseme") {
        expect(message.event.utterance_id).toBe("u");
        expect(message.event.at_ms).toBeGreaterThan(frames * 20 - 20.01);
      }
    }
  });

  it("close the mouth behind the last word with no surer time than that word has", async () => {
    await using upstream = await startFakeUpstream((request) => {
      const answer = speechAnswer(speechFor(request));
      return { ...answer, headers: { ...answer.headers, "x-voicewire-timing": "estimated" } };
    });
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?pace=burst&events=words,visemes");
    client.send(SPEAK);
    await client.next("utterance.done");
    const last = client.eventsOf("viseme").at(-1);
    expect(last?.visemes).toEqual(["sil"]);
    expect(last?.timing).toBe("estimated");
  });

  it("come in each set to those who asked for it, and only to them", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const at = (events: string) =>
      TestClient.connect(gateway, `/live/s?format=none&pace=burst&events=${events}`);
    await using oculus = await at("visemes");
    await using microsoft = await at("visemes-microsoft");
    await using arkit = await at("visemes-arkit");
    await using other = await at("words");
    await using audio = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst&events=none");
    audio.send(SPEAK);
    await Promise.all([oculus, microsoft, arkit, other].map((client) => client.next("utterance.done")));
    const names = shapesOf(oculus.eventsOf("viseme")).map(({ viseme }) => viseme);
    expect(names.slice(0, 7)).toEqual(["PP", "aa", "sil", "PP", "aa", "TH", "sil"]);
    const numbers = shapesOf(microsoft.eventsOf("viseme")).map(({ viseme }) => viseme);
    expect(numbers.slice(0, 7)).toEqual([21, 11, 0, 21, 9, 19, 0]);
    const events = arkit.eventsOf("viseme");
    expect(shapesOf(events).map(({ viseme }) => viseme)).toEqual(names);
    expect(events[0]?.weights?.slice(0, 2)).toMatchObject([{ mouthPressLeft: 0.6 }, { jawOpen: 0.6 }]);
    expect(new Set(oculus.eventsOf("viseme").map(({ set }) => set))).toEqual(new Set(["oculus"]));
    expect(other.eventsOf("viseme")).toEqual([]);
    expect(audio.eventsOf("viseme")).toEqual([]);
  });

  it("say what is spoken: transcriptions, replacements and the language", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const namesOf = async (session: string, command: object): Promise<(string | number)[]> => {
      await using client = await TestClient.connect(
        gateway,
        `/live/${session}?format=ulaw_8000&pace=burst&events=visemes`,
      );
      client.send({ type: "speak", voice_id: "v", ...command });
      await client.next("utterance.done");
      return shapesOf(client.eventsOf("viseme"))
        .map(({ viseme }) => viseme)
        .filter((viseme) => viseme !== "sil");
    };
    expect(await namesOf("en", { text: "Zeit" })).toEqual(["SS", "ih", "DD"]);
    expect(await namesOf("de", { text: "Zeit", language_code: "de" })).toEqual(["DD", "SS", "aa", "DD"]);
    expect(await namesOf("ipa", { text: '<phoneme alphabet="ipa" ph="mu">abcd</phoneme>' })).toEqual([
      "PP",
      "ou",
    ]);
    expect(await namesOf("said", { text: "xxxx", replacements: [{ from: "xxxx", to: "boom" }] })).toEqual([
      "PP",
      "ou",
      "PP",
    ]);
  });

  it("are one to one the arrays of TalkingHead's streamAudio", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(
      gateway,
      "/live/s?format=pcm_24000&pace=burst&events=words,visemes",
    );
    client.send(SPEAK);
    await client.next("utterance.done");
    const [viseme] = client.eventsOf("viseme");
    const [words] = client.eventsOf("words");
    expect(streamAudioArrays(viseme, 0)).toEqual({
      visemes: viseme?.visemes,
      vtimes: viseme?.vtimes_ms,
      vdurations: viseme?.vdurations_ms,
    });
    expect(streamAudioArrays(words, 100)).toEqual({
      words: words?.words.map(({ text }) => text),
      wtimes: words?.words.map(({ start_ms }) => start_ms - 100),
      wdurations: words?.words.map((word) => word.end_ms - word.start_ms),
    });
  });
});
