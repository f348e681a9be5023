/**
 * Clients that send exactly what pipecat and LiveKit's Python plugin send, and read as they read.
 */
import { describe, expect, it } from "vitest";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { audioOf, type Heard, startVendorApp, VendorClient } from "./vendor-rig.ts";

const MS_PER_CHAR = 60;
/** pcm_24000: bytes of a millisecond. */
const BYTES_PER_MS = 48;

interface Word {
  readonly word: string;
  readonly atMs: number;
}

/** How pipecat reads: only contextId; isFinal first, and then nothing else of that message; words from chunk-relative times. */
class PipecatReader {
  readonly words: Word[] = [];
  audioBytes = 0;
  isFinal = false;
  #elapsedMs = 0;
  #partial: { text: string; atMs: number } | null = null;

  read(message: Heard, contextId: string): void {
    if (message.contextId !== contextId) return;
    if (message.isFinal === true) {
      this.isFinal = true;
      return;
    }
    if (message.audio) {
      const bytes = Buffer.from(message.audio, "base64");
      if (bytes.length % 2 !== 0) throw new Error("Half a sample");
      this.audioBytes += bytes.length;
    }
    const alignment = message.alignment ?? message.normalizedAlignment;
    if (!alignment) return;
    const { chars, charStartTimesMs: starts = [], charDurationsMs: durations = [] } = alignment;
    if (chars.length !== starts.length || chars.length !== durations.length)
      throw new Error("Unequal lengths");
    for (const [index, char] of chars.entries()) this.#take(char, this.#elapsedMs + (starts[index] ?? 0));
    this.#elapsedMs += (starts.at(-1) ?? 0) + (durations.at(-1) ?? 0);
  }

  #take(char: string, atMs: number): void {
    if (char === " ") {
      if (this.#partial !== null) this.words.push({ word: this.#partial.text, atMs: this.#partial.atMs });
      this.#partial = null;
    } else this.#partial = { text: (this.#partial?.text ?? "") + char, atMs: this.#partial?.atMs ?? atMs };
  }
}

describe("pipecat", () => {
  const path =
    "/v1/text-to-speech/v1/multi-stream-input?model_id=eleven_flash_v2_5&output_format=pcm_24000&auto_mode=true&enable_logging=true&apply_text_normalization=auto";

  async function turn(client: VendorClient, id: string, texts: readonly string[]): Promise<PipecatReader> {
    client.send({ text: " ", context_id: id, voice_settings: { stability: 0.5, similarity_boost: 0.75 } });
    for (const text of texts) client.send({ text, context_id: id });
    client.send({ context_id: id, flush: true }, { context_id: id, close_context: true });
    await client.final(id);
    const reader = new PipecatReader();
    for (const message of client.heard) reader.read(message, id);
    return reader;
  }

  it("hears its turns, with the time of every word, keeps alive between them and closes the socket", async () => {
    await using upstream = await startFakeUpstream(speaking({ charsPerChunk: 7 }));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, path, { "xi-api-key": "any" });
    client.send({ text: "" });
    const first = await turn(client, "t1", ["Hello there, pipecat. ", "How are you? "]);
    client.send({ text: "", context_id: "t1" }, { text: "" });
    const second = await turn(client, "t2", ["Good. "]);
    const said = "Hello there, pipecat. How are you? ";
    expect(first.words.map(({ word }) => word)).toEqual(said.trim().split(" "));
    for (const { word, atMs } of first.words) expect(atMs).toBe(said.indexOf(word) * MS_PER_CHAR);
    expect(first.audioBytes).toBe(said.length * MS_PER_CHAR * BYTES_PER_MS);
    expect(second.words).toEqual([{ word: "Good.", atMs: 0 }]);
    client.send({ close_socket: true });
    expect((await client.untilClosed()).code).toBe(1000);
  });

  it("streams tokens without auto_mode, and an interruption closes the context, which ends by itself", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, path.replace("auto_mode=true", "auto_mode=false"));
    const said = "Tokens come in pieces, as language models give them. ";
    const first = await turn(client, "t1", said.match(/.{1,4}/g) ?? []);
    expect(first.words.map(({ word }) => word)).toEqual(said.trim().split(" "));
    expect(upstream.requests).toHaveLength(1);
    client.send({ text: " ", context_id: "t2" }, { text: "Interrupted before", context_id: "t2" });
    client.send({ context_id: "t2", close_context: true });
    const third = await turn(client, "t3", ["Next. "]);
    expect(third.words).toEqual([{ word: "Next.", atMs: 0 }]);
    await client.final("t2");
    expect(client.of("t2").filter((one) => one.isFinal === true)).toHaveLength(1);
  });

  it("dialogue: acknowledged once a flush, closed only then, beside a context that is only kept alive", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(
      app,
      "/v1/text-to-dialogue/multi-stream-input?model_id=eleven_v3_conversational&output_format=pcm_24000&sync_alignment=true",
    );
    client.send({ context_id: "pipecat-keepalive", voices: ["v1"] });
    client.send({ context_id: "pipecat-keepalive", keep_alive: true });
    for (const id of ["t1", "t2"]) {
      client.send({ context_id: id, voices: ["v1"], voice_settings: { stability: 0.5 } });
      client.send({ context_id: id, inputs: [{ text: "Hello there. ", voice_id: "v1", new_turn: true }] });
      client.send({ context_id: id, inputs: [{ text: "And you? ", voice_id: "v1", new_turn: false }] });
      client.send({ context_id: id, flush: true });
      const acks = () => client.of(id).filter((one) => one.is_final_audio_for_turn === true).length;
      await client.until("the acknowledgement", () => acks() === 1);
      client.send({ context_id: id, close_context: true });
      await client.final(id);
      expect(audioOf(client.of(id))).toHaveLength(
        "Hello there. And you? ".length * MS_PER_CHAR * BYTES_PER_MS,
      );
      expect(acks()).toBe(1);
    }
    expect(client.of("pipecat-keepalive")).toEqual([]);
    expect(client.heard.some((one) => one.error !== undefined)).toBe(false);
  });
});

describe("LiveKit for Python", () => {
  const path =
    "/v1/text-to-speech/v1/multi-stream-input?model_id=eleven_turbo_v2_5&output_format=pcm_24000&language_code=en&enable_ssml_parsing=false&enable_logging=true&inactivity_timeout=180&apply_text_normalization=auto&sync_alignment=true&auto_mode=true";

  it("streams over one socket end each with its own isFinal", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, path, { "xi-api-key": "any" });
    const streams: Readonly<Record<string, readonly string[]>> = {
      s1: ["Hello from the first stream. ", "It has two sentences. "],
      s2: ["The second one has one. "],
    };
    // All at once: the plugin shares its socket, and waits for no answer.
    for (const id of Object.keys(streams)) client.send({ text: " ", voice_settings: {}, context_id: id });
    for (const [id, sentences] of Object.entries(streams)) {
      for (const text of sentences) client.send({ text, context_id: id, flush: true });
    }
    for (const id of Object.keys(streams)) {
      client.send({ text: "", context_id: id, flush: true }, { context_id: id, close_context: true });
    }
    for (const [id, sentences] of Object.entries(streams)) {
      await client.final(id);
      const own = client.of(id);
      const text = sentences.join("");
      expect(own.map((one) => one.normalizedAlignment?.chars.join("") ?? "").join("")).toBe(text);
      expect(audioOf(own)).toHaveLength(text.length * MS_PER_CHAR * BYTES_PER_MS);
      expect(own.filter((one) => one.isFinal === true)).toHaveLength(1);
    }
    expect(upstream.requests).toHaveLength(3);
    expect(client.end).toBeNull();
  });

  it("a stream without text ends with isFinal and no error, also when its id was used before", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, path);
    for (let count = 1; count <= 2; count += 1) {
      client.send(
        { text: " ", voice_settings: {}, context_id: "s" },
        { text: "", context_id: "s", flush: true },
      );
      client.send({ context_id: "s", close_context: true });
      await client.until("its end", () => client.of("s").length === count);
    }
    expect(client.of("s").every((one) => one.isFinal === true && one.audio === null)).toBe(true);
    expect(upstream.requests).toEqual([]);
  });
});

describe("the official Python SDK", () => {
  it("convert_realtime: tokens with try_trigger_generation, read until the close", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(
      app,
      "/v1/text-to-speech/v1/stream-input?model_id=eleven_multilingual_v2&output_format=pcm_24000",
    );
    client.send({
      text: " ",
      try_trigger_generation: true,
      voice_settings: null,
      generation_config: { chunk_length_schedule: [50] },
    });
    const said = "A text that is long enough for two generations at fifty characters each, or even three. ";
    for (const word of said.trim().split(" "))
      client.send({ text: `${word} `, try_trigger_generation: true });
    client.send({ text: "" });
    expect((await client.untilClosed()).code).toBe(1000);
    expect(audioOf(client.heard)).toHaveLength(said.length * MS_PER_CHAR * BYTES_PER_MS);
    expect(upstream.requests).toHaveLength(2);
  });
});
