/** A gateway with the vendor and another service: what a client of a session gets of both. */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { readUpstreamsFile } from "../../../src/upstream/services/upstreams-file.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { TestKeys, tokenFor } from "../../helpers/key-file.ts";
import { gatewayAt, TestClient } from "../../helpers/start-gateway.ts";
import { CARTESIA_KEY, CARTESIA_VOICE, cartesia } from "../../kit/vendors/cartesia.ts";
import { KOKORO_VOICE, kokoro } from "../../kit/vendors/kokoro.ts";
import { OPENAI_VOICE, openAi } from "../../kit/vendors/openai.ts";
import { bytesOf, speak, wordsOf } from "../../kit/vendors/spoken.ts";
import type { TimedOptions } from "../../kit/vendors/timed-steps.ts";
import { Warnings } from "../voices/rig.ts";
import { asked, configOf, serviceAt, speech, TEXT } from "./rig.ts";

async function rig(options: TimedOptions = {}, settings: Parameters<typeof gatewayAt>[1] = {}) {
  const first = await startFakeUpstream();
  const vendor = await startFakeUpstream(cartesia(options));
  const file = [{ name: "cartesia", url: vendor.url, "key-env": "CARTESIA_API_KEY" }];
  const { services } = readUpstreamsFile(JSON.stringify(file), { env: () => CARTESIA_KEY, file: () => "" });
  const gateway = await gatewayAt(first.url, settings, { services });
  const client = await TestClient.connect(gateway, "/live/s?format=pcm_24000&pace=burst");
  await client.next("hello");
  const close = async (): Promise<void> => {
    for (const each of [client, gateway, vendor, first]) await each[Symbol.asyncDispose]();
  };
  return { first, vendor, gateway, client, [Symbol.asyncDispose]: close };
}

describe("a gateway with several upstreams", () => {
  it.each([undefined, "times behind the audio"] as const)(
    "speaks with a voice of another service, its words at their times (%s)",
    async (fault) => {
      await using all = await rig(fault === undefined ? {} : { fault });
      const { client } = all;
      client.send({ type: "speak", text: TEXT, voice_id: `cartesia:${CARTESIA_VOICE}`, utterance_id: "u" });
      const done = await client.next("utterance.done");
      expect(done).toMatchObject({ outcome: "done", timing: "exact" });
      const words = client.eventsOf("words").flatMap((event) => event.words);
      const truth = speak(TEXT, { sampleRate: 24_000 }).words;
      // Silence before the first sound is trimmed but for 20 ms.
      const first = (truth[0]?.start ?? 0) * 1000 - 20;
      expect(words.map((word) => word.text.replace(/\W/g, ""))).toEqual(truth.map(({ text }) => text));
      for (const [index, { start }] of truth.entries())
        expect(Math.abs((words[index]?.start_ms ?? 0) - (start * 1000 - first))).toBeLessThan(2);
      expect(all.first.requests.every(({ method }) => method === "GET")).toBe(true);
    },
  );

  it("prepared speech has the times of the words that the service said", async () => {
    await using all = await rig();
    const { client } = all;
    const text = "Hello there.";
    const voice = { text, voice_id: `cartesia:${CARTESIA_VOICE}` };
    client.send({ type: "prepare", prepared_id: "p", ...voice });
    await client.next("prepared");
    client.send({ type: "play", prepared_id: "p", utterance_id: "prepared" });
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done", timing: "exact" });
    client.send({ type: "speak", utterance_id: "spoken", ...voice });
    const spoken = await client.next("utterance.done", 2);
    const timesOf = (id: string, from: number) =>
      client
        .eventsOf("words")
        .filter(({ utterance_id }) => utterance_id === id)
        .flatMap(({ words }) => words.flatMap(({ start_ms, end_ms }) => [start_ms, end_ms]))
        .map((ms) => Math.round(1000 * (ms - from)));
    expect(timesOf("prepared", 0)).toEqual(timesOf("spoken", spoken.start_ms));
  });

  it("prepared speech is as long as the service made it, and heard without the silence at its ends", async () => {
    await using all = await rig();
    const { client } = all;
    const text = "Hello there.";
    client.send({ type: "prepare", prepared_id: "p", text, voice_id: `cartesia:${CARTESIA_VOICE}` });
    const { ms } = await client.next("prepared");
    const { seconds, words } = speak(text, { sampleRate: 24_000 });
    expect(ms).toBeCloseTo(seconds * 1000, 1);
    client.send({ type: "play", prepared_id: "p" });
    const heard = await client.next("utterance.done");
    const spokenMs = 1000 * ((words.at(-1)?.end ?? 0) - (words[0]?.start ?? 0));
    expect(heard.end_ms - heard.start_ms).toBeGreaterThan(spokenMs);
    expect(heard.end_ms - heard.start_ms).toBeLessThan(ms - 100);
  });

  it("words whose times go back are laid over the audio that is left", async () => {
    await using all = await rig({ fault: "times go back" });
    const { client } = all;
    client.send({ type: "speak", text: TEXT, voice_id: `cartesia:${CARTESIA_VOICE}` });
    const done = await client.next("utterance.done");
    expect(done).toMatchObject({ outcome: "done", timing: "estimated" });
    const words = client.eventsOf("words").flatMap((event) => event.words);
    const truth = speak(TEXT, { sampleRate: 24_000 }).words;
    const first = (truth[0]?.start ?? 0) * 1000 - 20;
    for (const [index, { start }] of truth.entries()) {
      const word = words[index];
      expect(word?.end_ms).toBeGreaterThan((word?.start_ms ?? 0) + 20);
      expect(Math.abs((word?.start_ms ?? 0) - (start * 1000 - first))).toBeLessThan(400);
    }
  });

  it("text that a service says in other words: its words are all there, in order, and called estimated", async () => {
    await using all = await rig({
      say: "Every single thing was put quite otherwise by this service".split(" "),
    });
    const { client } = all;
    client.send({ type: "speak", text: TEXT, voice_id: `cartesia:${CARTESIA_VOICE}` });
    const done = await client.next("utterance.done");
    expect(done).toMatchObject({ outcome: "done", timing: "estimated", characters_spoken: TEXT.length });
    const events = client.eventsOf("words");
    expect(events.map(({ timing }) => timing)).not.toContain("exact");
    const words = events.flatMap((event) => event.words);
    expect(words.map(({ text }) => text)).toEqual(TEXT.match(/\w+/g));
    for (const [index, { start_ms }] of words.entries())
      expect(start_ms).toBeGreaterThanOrEqual(words[index - 1]?.end_ms ?? 0);
  });

  it.each(["another rate", "half the rate"] as const)(
    "%s than it says fails with a code, and the log warns",
    async (fault) => {
      await using all = await rig({ fault });
      const { client } = all;
      client.send({ type: "speak", text: TEXT, voice_id: `cartesia:${CARTESIA_VOICE}` });
      const done = await client.next("utterance.done");
      expect(done).toMatchObject({
        outcome: "failed",
        error: { code: "upstream_audio_rate", retryable: false },
      });
      expect(done.error?.message).toMatch(
        /upstream cartesia .*its words take .* and its audio .*Set the service to the rate/,
      );
      const log = new Warnings();
      await using service = serviceAt(
        configOf("cartesia", all.vendor.url, { key: CARTESIA_KEY }),
        10_000,
        0,
        log,
      );
      await asked(service, speech(CARTESIA_VOICE));
      expect(log.lines).toContainEqual(expect.stringMatching(/^warn .*at another rate than it says/));
    },
  );

  it("speaks with the first upstream's voices as before", async () => {
    await using all = await rig();
    all.client.send({ type: "speak", text: "Hello there.", voice_id: "tone-a" });
    expect(await all.client.next("utterance.done")).toMatchObject({ outcome: "done" });
    expect(all.vendor.requests.filter(({ method }) => method === "POST")).toEqual([]);
  });

  it("names what the voice's upstream can't do, once an utterance", async () => {
    await using all = await rig();
    const { client } = all;
    const text = `${TEXT} ${TEXT} And here is some more of it.`;
    const voice_settings = { stability: 0.3, speed: 1.1 };
    client.send({ type: "speak", text, voice_id: `cartesia:${CARTESIA_VOICE}`, voice_settings, seed: 4 });
    await client.next("utterance.done");
    expect(client.eventsOf("warning")).toMatchObject([
      { code: "settings_ignored", fields: ["voice_settings.stability", "seed"] },
    ]);
  });

  it.each([
    ["acme:voice", undefined, "unknown_voice", "voice_id", "cartesia:"],
    [`cartesia:${CARTESIA_VOICE}`, "eleven_flash_v2_5", "upstream_invalid", "model_id", "cartesia:MODEL"],
  ])("%s with %s is refused before anything is asked", async (voice_id, model_id, code, field, hint) => {
    await using all = await rig();
    const { client } = all;
    client.send({ type: "speak", text: TEXT, voice_id, ...(model_id === undefined ? {} : { model_id }) });
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "failed", error: { code, field } });
    expect(client.eventsOf("utterance.done")[0]?.error?.message).toContain(hint);
    expect([...all.vendor.requests, ...all.first.requests].filter(({ method }) => method === "POST")).toEqual(
      [],
    );
  });

  it("a model is named as its voice is; the one that is set is the first upstream's", async () => {
    await using all = await rig({}, { model: "eleven_flash_v2_5" });
    const { client } = all;
    const voice_id = `cartesia:${CARTESIA_VOICE}`;
    client.send({ type: "speak", text: TEXT, voice_id, model_id: "cartesia:sonic-3.5" });
    await client.next("utterance.done");
    client.send({ type: "speak", text: TEXT, voice_id });
    await client.next("utterance.done", 2);
    const models = all.vendor.requests.flatMap(
      ({ json }) => (json as { model_id?: string } | undefined)?.model_id ?? [],
    );
    expect(models).toEqual(["cartesia:sonic-3.5".slice(9), "sonic-3"]);
  });

  it("a dialogue of both: a request for each line, and each voice's part to the sample", async () => {
    await using all = await rig();
    const { client } = all;
    const inputs = [
      { text: "Hello there, friend.", voice_id: `cartesia:${CARTESIA_VOICE}` },
      { text: "Good evening to you.", voice_id: "tone-a" },
      { text: "And to you, too.", voice_id: `cartesia:${CARTESIA_VOICE}` },
    ];
    client.send({ type: "dialogue", inputs });
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done" });
    const parts = client.eventsOf("segment");
    expect(parts.map(({ voice_id }) => voice_id)).toEqual(inputs.map(({ voice_id }) => voice_id));
    const words = client.eventsOf("words").flatMap((event) => event.words.map(({ text }) => text));
    expect(words.join(" ").replace(/[^a-z ]/gi, "")).toBe(
      "Hello there friend Good evening to you And to you too",
    );
    // The last one without most of the silence at its end, which is trimmed.
    const endMs = speak(inputs[2]?.text ?? "", { sampleRate: 24_000 }).seconds * 1000;
    const lengthMs = (parts[2]?.end_ms ?? 0) - (parts[2]?.start_ms ?? 0);
    expect(lengthMs).toBeGreaterThan(endMs - 201);
    expect(lengthMs).toBeLessThanOrEqual(endMs);
    expect(all.vendor.requests.filter(({ method }) => method === "POST")).toHaveLength(2);
  });

  it("words that are missing at the end are asked for again", async () => {
    let asked = 0;
    await using all = await rig();
    all.vendor.use((request, index) => {
      asked += request.method === "POST" ? 1 : 0;
      return cartesia(asked === 1 ? { fault: "words missing" } : {})(request, index);
    });
    const { client } = all;
    client.send({ type: "speak", text: TEXT, voice_id: `cartesia:${CARTESIA_VOICE}` });
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done" });
    const words = client.eventsOf("words").flatMap((event) => event.words.map(({ text }) => text));
    expect(words.map((word) => word.replace(/\W/g, ""))).toEqual(
      speak(TEXT, { sampleRate: 8000 }).words.map(({ text }) => text),
    );
  });

  it("has Opus made by the threads of its own", async () => {
    await using all = await rig();
    await using opus = await TestClient.connect(all.gateway, "/live/o?format=opus_48000&pace=burst");
    opus.send({ type: "speak", text: TEXT, voice_id: `cartesia:${CARTESIA_VOICE}` });
    expect(await opus.next("utterance.done")).toMatchObject({ outcome: "done" });
    expect(opus.eventsOf("utterance.started")).toMatchObject([{ source_format: "pcm_24000" }]);
    expect(opus.frames.length).toBeGreaterThan(100);
  });

  it("a service without times: they are estimated", async () => {
    await using first = await startFakeUpstream();
    await using vendor = await startFakeUpstream(openAi());
    await using gateway = await gatewayAt(first.url, {}, { services: [configOf("openai", vendor.url)] });
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst");
    client.send({ type: "speak", text: TEXT, voice_id: `openai:${OPENAI_VOICE}` });
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done", timing: "estimated" });
    const words = client.eventsOf("words").flatMap((event) => event.words);
    expect(words).toHaveLength(11);
  });

  it("a language that chose the voice is not called ignored, and another one is", async () => {
    await using first = await startFakeUpstream();
    await using vendor = await startFakeUpstream(openAi());
    const settings = { voices: `de=openai:${OPENAI_VOICE}` };
    await using gateway = await gatewayAt(first.url, settings, {
      services: [configOf("openai", vendor.url)],
    });
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst");
    client.send({ type: "speak", text: TEXT, language_code: "de-AT" });
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done" });
    expect(client.eventsOf("warning")).toEqual([]);
    client.send({ type: "speak", text: TEXT, voice_id: `openai:${OPENAI_VOICE}`, language_code: "fr" });
    await client.next("utterance.done", 2);
    expect(client.eventsOf("warning")).toMatchObject([
      { code: "settings_ignored", fields: ["language_code"] },
    ]);
  });

  it.each(["mp3", "html", "odd format"] as const)(
    "%s in place of speech is asked for once: it would be the same the next time",
    async (fault) => {
      await using first = await startFakeUpstream();
      await using vendor = await startFakeUpstream(openAi({ fault }));
      await using gateway = await gatewayAt(first.url, {}, { services: [configOf("openai", vendor.url)] });
      await using client = await TestClient.connect(gateway, "/live/s?format=pcm_24000");
      client.send({ type: "speak", text: TEXT, voice_id: `openai:${OPENAI_VOICE}` });
      const { error } = await client.next("utterance.done");
      expect(error).toMatchObject({ code: "upstream_not_speech", retryable: false });
      expect(vendor.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
    },
  );

  it("speaks on OpenAI's path and on the vendor's socket", async () => {
    await using all = await rig({}, { model: "eleven_flash_v2_5" });
    const voice = `cartesia:${CARTESIA_VOICE}`;
    const body = JSON.stringify({ model: "tts-1", voice, input: TEXT, response_format: "pcm" });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${all.gateway.url}/v1/audio/speech`, { method: "POST", headers, body });
    const truth = speak(TEXT, { sampleRate: 24_000 });
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytesOf(truth.pcm))).toBe(true);
    const path = `/v1/text-to-speech/${voice}/stream-input?output_format=pcm_24000`;
    const socket = new WebSocket(`${all.gateway.wsUrl}${path}`);
    const messages: { audio?: string | null; alignment?: { chars?: string[] } | null; error?: string }[] = [];
    socket.on("message", (data: Buffer) => messages.push(JSON.parse(data.toString())));
    await once(socket, "open");
    socket.send(JSON.stringify({ text: " " }));
    socket.send(JSON.stringify({ text: `${TEXT} `, flush: true }));
    socket.send(JSON.stringify({ text: "" }));
    await once(socket, "close");
    const audio = Buffer.concat(messages.map((message) => Buffer.from(message.audio ?? "", "base64")));
    expect(audio.equals(bytesOf(truth.pcm))).toBe(true);
    const characters = messages.flatMap((message) => message.alignment?.chars ?? []).join("");
    expect(characters.trim()).toBe(TEXT);
  });

  it("a phrase that was said is not asked for again, and says what its voice ignores all the same", async () => {
    await using all = await rig({}, { phraseCacheMb: 4 });
    const { client } = all;
    const said = { type: "speak", text: TEXT, voice_id: `cartesia:${CARTESIA_VOICE}`, seed: 3 };
    client.send(said);
    await client.next("utterance.done");
    client.send(said);
    expect(await client.next("utterance.done", 2)).toMatchObject({ outcome: "done", timing: "exact" });
    // Another upstream's voice of the same id is another phrase.
    client.send({ ...said, voice_id: CARTESIA_VOICE });
    await client.next("utterance.done", 3);
    expect(all.vendor.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
    expect(all.first.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
    expect(client.eventsOf("warning").map(({ code }) => code)).toEqual([
      "settings_ignored",
      "settings_ignored",
    ]);
  });

  it("keys name its voices and models like others", async () => {
    using keys = new TestKeys();
    await using all = await rig({}, {});
    const services = [configOf("cartesia", all.vendor.url, { key: CARTESIA_KEY })];
    await using gateway = await gatewayAt(all.first.url, { keysFile: keys.path }, { services });
    const voice_id = `cartesia:${CARTESIA_VOICE}`;
    const outcomes: string[] = [];
    const grants = [
      [{ voices: ["cartesia:*"] }, {}],
      [{ voices: ["tone-*"] }, {}],
      [{ models: ["cartesia:sonic-3"] }, { model_id: "cartesia:sonic-3" }],
      [{ models: ["cartesia:sonic-3"] }, { model_id: "cartesia:sonic-2" }],
      // A model of the first upstream does not open another's.
      [{ models: ["eleven_flash_v2_5"] }, { model_id: "eleven_flash_v2_5" }],
      [{ models: ["eleven_flash_v2_5"] }, {}],
    ] as const;
    for (const [allowed, more] of grants) {
      const token = tokenFor({ sessions: ["*"], allow: ["open", "speak", "listen"], ...allowed });
      const headers = { authorization: `Bearer ${token}` };
      await using client = await TestClient.connect(gateway, "/live/k?format=ulaw_8000&pace=burst", {
        headers,
      });
      await client.next("hello");
      client.send({ type: "speak", text: TEXT, voice_id, ...more });
      await client.until(
        () => client.eventsOf("error").length + client.eventsOf("utterance.done").length > 0,
      );
      const [error] = client.eventsOf("error");
      outcomes.push(error?.code ?? client.eventsOf("utterance.done")[0]?.outcome ?? "");
    }
    expect(outcomes).toEqual(["done", "forbidden", "done", "forbidden", "upstream_invalid", "forbidden"]);
  });

  it("numbers that are written out light up at their time, as exact as the rest", async () => {
    const text = "I have 25 cats, and 3 dogs.";
    const say = "I have twenty five cats and three dogs".split(" ");
    await using all = await rig({ say });
    const { client } = all;
    client.send({ type: "speak", text, voice_id: `cartesia:${CARTESIA_VOICE}` });
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done", timing: "exact" });
    const truth = speak(text, { sampleRate: 24_000, say }).words;
    const first = (truth[0]?.start ?? 0) * 1000 - 20;
    const words = client.eventsOf("words").flatMap((event) => event.words);
    const starts = [0, 1, 2, 4, 5, 6, 7].map((place) => (truth[place]?.start ?? 0) * 1000 - first);
    expect(words.map((word) => text.slice(word.start, word.end))).toEqual(wordsOf(text));
    for (const [index, start] of starts.entries())
      expect(Math.abs((words[index]?.start_ms ?? 0) - start)).toBeLessThan(2);
  });

  it("a sentence that a service leaves out is asked for again: no word is lost or said twice", async () => {
    await using first = await startFakeUpstream();
    await using vendor = await startFakeUpstream();
    let asked = 0;
    vendor.use((request, index) => {
      asked += 1;
      return kokoro(asked === 1 ? { loses: /Then [^.]*\./ } : {})(request, index);
    });
    await using gateway = await gatewayAt(first.url, {}, { services: [configOf("kokoro", vendor.url)] });
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000&pace=burst");
    const text = "This is the first one. Then comes another one. And this is the last.";
    client.send({ type: "speak", text, voice_id: `kokoro:${KOKORO_VOICE}` });
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done" });
    const words = client.eventsOf("words").flatMap((event) => event.words);
    expect(words.map((word) => text.slice(word.start, word.end))).toEqual(wordsOf(text));
    expect(words.every(({ start_ms }, index) => start_ms >= (words[index - 1]?.end_ms ?? 0))).toBe(true);
  });
});
