/** The vendor's text-to-speech sockets over a real upstream client, message by message. */
import { describe, expect, it } from "vitest";
import {
  type FakeRequest,
  refusal,
  speaking,
  speechAnswer,
  speechFor,
  startFakeUpstream,
} from "../helpers/fake-upstream.ts";
import { until } from "../helpers/until.ts";
import { audioOf, charsOf, type Heard, startVendorApp, VendorClient } from "./vendor-rig.ts";

const SINGLE = "/v1/text-to-speech/v1/stream-input?output_format=pcm_16000";
const MULTI = "/v1/text-to-speech/v1/multi-stream-input?output_format=pcm_16000";
const MS_PER_CHAR = 60;

const textOf = (request: FakeRequest) => (request.json as { text: string }).text;
/** What the upstream said to all its requests for speech, in their order. */
const spoken = (requests: readonly FakeRequest[]) =>
  Buffer.concat(requests.filter((one) => one.method === "POST").map((one) => speechFor(one).audio));
const isAudio = (one: Heard) => typeof one.audio === "string";

describe("stream-input", () => {
  it("speaks what was buffered at the end, says isFinal once and last, and closes with 1000", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send(
      { text: " ", voice_settings: { stability: 0.3 } },
      { text: "Hello " },
      { text: "there. " },
      { text: "" },
    );
    expect(await client.untilClosed()).toEqual({ code: 1000, reason: "" });
    expect(upstream.requests.map(textOf)).toEqual(["Hello there. "]);
    const [request] = upstream.requests;
    expect(request?.path).toBe("/v1/text-to-speech/v1/stream/with-timestamps");
    expect(request?.query.get("output_format")).toBe("pcm_16000");
    expect(request?.headers["xi-api-key"]).toBe("gateway-key");
    expect(request?.json).toMatchObject({
      model_id: "eleven_multilingual_v2",
      voice_settings: { stability: 0.3 },
    });
    expect(audioOf(client.heard).equals(spoken(upstream.requests))).toBe(true);
    expect(client.heard.filter((one) => one.isFinal === true)).toHaveLength(1);
    expect(client.heard.at(-1)).toEqual({
      audio: null,
      isFinal: true,
      normalizedAlignment: null,
      alignment: null,
    });
    for (const one of client.heard) {
      expect(Object.keys(one).sort()).toEqual(["alignment", "audio", "isFinal", "normalizedAlignment"]);
    }
  });

  it("the first message of a generation has the timing of all of it, the others none", async () => {
    await using upstream = await startFakeUpstream(speaking({ paceX: 20 }));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ text: "Hello there, you. ", flush: true }, { text: "Bye. " }, { text: "" });
    await client.untilClosed();
    const timed = client.heard.filter((one) => one.alignment);
    expect(timed.map((one) => one.alignment?.chars.join(""))).toEqual(["Hello there, you. ", "Bye. "]);
    const second = client.heard.indexOf(timed[1] as Heard);
    expect(client.heard.slice(1, second).every((one) => one.alignment === null)).toBe(true);
    expect(second).toBeGreaterThan(2);
    // Each generation counts from its own beginning.
    expect(timed[1]?.alignment?.charStartTimesMs).toEqual([0, 60, 120, 180, 240]);
    expect(timed[1]?.alignment?.charDurationsMs).toEqual([60, 60, 60, 60, 60]);
    expect(timed[1]?.normalizedAlignment?.chars.join("")).toBe("Bye. ");
  });

  it("sync_alignment: every message has the timing of its own audio, from its own beginning", async () => {
    await using upstream = await startFakeUpstream(speaking({ charsPerChunk: 4 }));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, `${SINGLE}&sync_alignment=true`);
    client.send({ text: "One two. ", flush: true }, { text: "" });
    await client.untilClosed();
    const audio = client.heard.filter(isAudio);
    expect(audio.map((one) => one.alignment?.chars.join(""))).toEqual(["One ", "two.", " "]);
    expect(audio.map((one) => one.alignment?.charStartTimesMs?.[0])).toEqual([0, 0, 0]);
    for (const one of audio) {
      const bytes = Buffer.from(one.audio ?? "", "base64").length;
      expect((one.alignment?.chars.length ?? 0) * MS_PER_CHAR * 32).toBe(bytes);
    }
  });

  it("absolute_times: times count from the beginning of the context, across generations", async () => {
    await using upstream = await startFakeUpstream(speaking({ charsPerChunk: 4 }));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, `${SINGLE}&sync_alignment=true&absolute_times=true`);
    client.send({ text: "One two. ", flush: true }, { text: "Six. " }, { text: "" });
    await client.untilClosed();
    const starts = client.heard.flatMap((one) => one.alignment?.charStartTimesMs ?? []);
    expect(starts).toEqual(Array.from({ length: 14 }, (_, index) => index * MS_PER_CHAR));
  });

  it("where its timing is late, audio does not wait longer than the hold", async () => {
    let goOn: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    await using upstream = await startFakeUpstream((request) => {
      const [first, ...rest] = speechFor(request).chunks.map(({ line }) => line);
      return {
        headers: { "content-type": "application/json" },
        body: [first ?? "", { until: gate }, ...rest],
      };
    });
    await using app = await startVendorApp(upstream.url, { sockets: { limits: { timingHoldMs: 20 } } });
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ text: "One two three. " }, { text: "" });
    await client.until("the first audio", () => client.heard.some(isAudio));
    expect(client.heard[0]?.alignment?.chars.join("")).toBe("One t");
    goOn();
    await client.untilClosed();
    expect(charsOf(client.heard)).toBe("One two three. ");
    expect(client.heard.filter(isAudio).every((one) => one.alignment?.charStartTimesMs?.[0] === 0)).toBe(
      true,
    );
  });

  it("starts at the lengths of the schedule, in whole words, and sends the upstream what came before", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ text: " ", generation_config: { chunk_length_schedule: [50, 70] } });
    // Tokens as a language model gives them: blanks before the words.
    const words = Array.from({ length: 30 }, (_, index) => (index === 0 ? "word0" : ` word${index % 10}`));
    for (const text of words) client.send({ text });
    await until("two generations", () => upstream.requests.length === 2);
    client.send({ text: "" });
    await client.untilClosed();
    const texts = upstream.requests.map(textOf);
    expect(texts.join("")).toBe(words.join(""));
    expect(texts.map((text) => text.length)).toEqual([48, 66, 65]);
    expect(texts.every((text) => /^word\d( word\d)* ?$/.test(text))).toBe(true);
    const before = upstream.requests.map((one) => (one.json as { previous_text?: string }).previous_text);
    expect(before).toEqual([undefined, texts[0]?.trim(), `${texts[0]}${texts[1]}`.trim()]);
  });

  it("try_trigger_generation starts at fifty characters; without it the schedule's 120 are waited for", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ text: "x".repeat(24).concat(" ") }, { text: "y".repeat(40).concat(" ") });
    client.send({ text: "zzz ", try_trigger_generation: true });
    await until("a generation", () => upstream.requests.length === 1);
    expect(textOf(upstream.requests[0] as FakeRequest)).toHaveLength(70);
    client.send({ text: `${"w".repeat(60)} ` }, { text: "" });
    await client.untilClosed();
    expect(upstream.requests).toHaveLength(2);
  });

  it("auto_mode speaks each message at once", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, `${SINGLE}&auto_mode=true`);
    client.send({ text: " " }, { text: "One. " }, { text: "Two. " });
    await until("two generations", () => upstream.requests.length === 2);
    client.send({ text: "" });
    await client.untilClosed();
    expect(upstream.requests.map(textOf)).toEqual(["One. ", "Two. "]);
    expect(audioOf(client.heard).equals(spoken(upstream.requests))).toBe(true);
  });

  it("passes the address's parameters on, and keeps SSML tags whole", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const query =
      "model_id=eleven_flash_v2_5&language_code=de&seed=7&enable_logging=false&apply_text_normalization=on&enable_ssml_parsing=true";
    await using client = await VendorClient.connect(app, `${SINGLE}&${query}`);
    client.send({ text: " ", generation_config: { chunk_length_schedule: [50] } });
    client.send(
      { text: `${"a".repeat(40)} <break ` },
      { text: 'time="1.5s" ' },
      { text: "/> bcd " },
      { text: "" },
    );
    await client.untilClosed();
    expect(upstream.requests.map(textOf)).toEqual([`${"a".repeat(40)} `, '<break time="1.5s" /> bcd ']);
    expect(upstream.requests[0]?.query.get("enable_logging")).toBe("false");
    expect(upstream.requests[0]?.json).toMatchObject({
      model_id: "eleven_flash_v2_5",
      language_code: "de",
      seed: 7,
      apply_text_normalization: "on",
    });
  });

  it("auto_mode with SSML waits for the end of a tag that comes in several messages", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const path = `${SINGLE}&auto_mode=true`;
    const said = async (query: string): Promise<string[]> => {
      const before = upstream.requests.length;
      await using client = await VendorClient.connect(app, path + query);
      client.send({ text: "One <break " }, { text: 'time="1s"/> two. ' }, { text: "Three. " }, { text: "" });
      await client.untilClosed();
      return upstream.requests.slice(before).map(textOf);
    };
    expect(await said("&enable_ssml_parsing=true")).toEqual(["One ", '<break time="1s"/> two. ', "Three. "]);
    expect(await said("")).toEqual(["One <break ", 'time="1s"/> two. ', "Three. "]);
  });

  it("passes audio tags on, whatever the model: clients hold its timing against their own text", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ text: " " }, { text: "Oh [laughs] you. " }, { text: "" });
    await client.untilClosed();
    expect(upstream.requests.map(textOf)).toEqual(["Oh [laughs] you. "]);
    expect(charsOf(client.heard)).toBe("Oh [laughs] you. ");
  });

  it("an end without text is a final message and a close, and nothing is asked of the upstream", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ text: " " }, { text: "..." }, { text: "" });
    expect((await client.untilClosed()).code).toBe(1000);
    expect(client.heard).toHaveLength(1);
    expect(client.heard[0]?.isFinal).toBe(true);
    expect(upstream.requests).toEqual([]);
  });

  it("what comes after the end is not spoken", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ text: "One. " }, { text: "" }, { text: "Two. " }, { text: "" });
    expect((await client.untilClosed()).code).toBe(1000);
    expect(upstream.requests.map(textOf)).toEqual(["One. "]);
  });

  it("silence beyond inactivity_timeout ends the socket: input_timeout_exceeded, 1008", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, `${SINGLE}&inactivity_timeout=1`);
    client.send({ text: "Never said " });
    const { code, reason } = await client.untilClosed();
    expect(code).toBe(1008);
    expect(reason).toContain("1.0 seconds");
    expect(client.heard).toEqual([
      { message: expect.stringContaining("1.0 seconds"), error: "input_timeout_exceeded", code: 1008 },
    ]);
  });

  it("the second generation is asked for while the first streams, and is heard after it", async () => {
    let goOn: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    await using upstream = await startFakeUpstream((request, index) =>
      index === 0
        ? {
            headers: { "content-type": "application/json" },
            body: speechFor(request).chunks.flatMap(({ line }, at) =>
              at === 1 ? [{ until: gate }, line] : [line],
            ),
          }
        : speechAnswer(speechFor(request)),
    );
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, `${SINGLE}&auto_mode=true&sync_alignment=true`);
    client.send({ text: "The first one. " }, { text: "The second one. " }, { text: "The third one. " });
    await until("two requests", () => upstream.requests.length === 2);
    await until("the second answer", () => upstream.requests[1]?.isFinished === true);
    expect(charsOf(client.heard)).toBe("The f");
    // A third one waits for the first to be over.
    expect(upstream.requests).toHaveLength(2);
    goOn();
    client.send({ text: "" });
    await client.untilClosed();
    expect(charsOf(client.heard)).toBe("The first one. The second one. The third one. ");
    expect(audioOf(client.heard).equals(spoken(upstream.requests))).toBe(true);
  });

  it("what fails before its first audio is asked for again, and the client notices nothing", async () => {
    await using upstream = await startFakeUpstream((request, index) =>
      index === 0
        ? "reset"
        : index === 1
          ? refusal(503, "service_unavailable")
          : speechAnswer(speechFor(request)),
    );
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ text: "Hello there. " }, { text: "" });
    expect((await client.untilClosed()).code).toBe(1000);
    expect(charsOf(client.heard)).toBe("Hello there. ");
    expect(upstream.requests).toHaveLength(3);
  });

  it("what breaks off after its first audio is an error, after all the audio that came", async () => {
    await using upstream = await startFakeUpstream((request) => {
      const { chunks } = speechFor(request);
      return {
        headers: { "content-type": "application/json" },
        body: [chunks[0]?.line ?? "", { afterMs: 50 }, "reset"],
      };
    });
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, `${SINGLE}&sync_alignment=true`);
    client.send({ text: "Hello there. " }, { text: "" });
    expect((await client.untilClosed()).code).toBe(1008);
    expect(charsOf(client.heard)).toBe("Hello");
    expect(client.heard.at(-1)).toMatchObject({ error: "internal_error", code: 1008 });
    expect(upstream.requests).toHaveLength(1);
  });

  it("a client that goes away, or sends FIN without a close, ends every upstream request", async () => {
    await using upstream = await startFakeUpstream((request) =>
      speechAnswer(speechFor(request), { tail: ["stall"] }),
    );
    await using app = await startVendorApp(upstream.url);
    for (const leave of ["terminate", "end"] as const) {
      const before = upstream.requests.length;
      await using client = await VendorClient.connect(app, `${SINGLE}&auto_mode=true&sync_alignment=true`);
      client.send({ text: "One. " }, { text: "Two. " });
      await until("two requests", () => upstream.requests.length === before + 2);
      if (leave === "terminate") client.socket.terminate();
      else (client.socket as unknown as { _socket: { end(): void } })._socket.end();
      await until("both aborted", () =>
        upstream.requests.slice(before).every((one) => one.abortedAtMs !== null),
      );
      expect(app.upstream.stats().open).toBe(0);
    }
    await until("no socket is left", () => app.sockets.open === 0);
  });

  it("a client that does not read pauses its upstream requests, and gets everything when it reads on", async () => {
    const text = "Hello there, general listener. ".repeat(70);
    await using upstream = await startFakeUpstream(speaking({ charsPerChunk: 20 }));
    await using app = await startVendorApp(upstream.url, { sockets: { maxOutboxBytes: 65_536 } });
    await using client = await VendorClient.connect(
      app,
      "/v1/text-to-speech/v1/stream-input?output_format=pcm_48000&sync_alignment=true",
    );
    client.socket.pause();
    for (let at = 0; at < text.length; at += 1500)
      client.send({ text: text.slice(at, at + 1500), flush: true });
    await until("the upstream is held", () => upstream.requests[0]?.isBlocked === true, {
      deadlineMs: 10_000,
    });
    const total = text.length * MS_PER_CHAR * 96;
    const asked = () => upstream.requests.reduce((sum, one) => sum + one.bytesWritten, 0);
    expect(asked()).toBeLessThan(total);
    client.socket.resume();
    client.send({ text: "" });
    await until("the close", () => client.end !== null, { deadlineMs: 40_000 });
    expect(client.end?.code).toBe(1000);
    expect(audioOf(client.heard).equals(spoken(upstream.requests))).toBe(true);
    expect(charsOf(client.heard)).toBe(text);
    // Megabytes of tones are made for it.
  }, 60_000);
});

describe("multi-stream-input", () => {
  it("contexts speak side by side, each with both spellings of its id and one isFinal at its end", async () => {
    await using upstream = await startFakeUpstream(speaking({ paceX: 10 }));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    for (const id of ["a", "b"])
      client.send({ text: " ", context_id: id }, { text: `Hello from ${id}. `, context_id: id });
    client.send({ context_id: "a", close_context: true }, { context_id: "b", close_context: true });
    await client.final("a");
    await client.final("b");
    for (const id of ["a", "b"]) {
      const own = client.of(id);
      expect(charsOf(own)).toBe(`Hello from ${id}. `);
      expect(own.every((one) => one.contextId === id && one.context_id === id)).toBe(true);
      expect(own.filter((one) => one.isFinal === true)).toEqual([own.at(-1)]);
      expect(own.at(-1)).toMatchObject({ audio: null, isFinal: true, is_final: true });
    }
    expect(client.end).toBeNull();
    expect(client.of("a").length + client.of("b").length).toBe(client.heard.length);
  });

  it("flush gives audio and no isFinal; an empty text with flush is a flush; a context-less empty text is nothing", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    client.send({ text: "" }, { text: "One. ", context_id: "a" }, { context_id: "a", flush: true });
    await client.until("the audio of one", () => charsOf(client.heard) === "One. ");
    client.send({ text: "Two. ", context_id: "a" }, { text: "", context_id: "a", flush: true }, { text: "" });
    await client.until("the audio of two", () => charsOf(client.heard) === "One. Two. ");
    client.send({ text: "", context_id: "a" });
    expect(client.heard.some((one) => one.isFinal === true)).toBe(false);
    client.send({ close_socket: true });
    expect((await client.untilClosed()).code).toBe(1000);
    expect(client.heard.filter((one) => one.isFinal === true)).toHaveLength(1);
  });

  it("without a context id there is a default context, whose messages have none", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    client.send({ text: "Hello. " }, { close_context: true });
    await client.final();
    expect(charsOf(client.heard)).toBe("Hello. ");
    expect(client.heard.some((one) => "contextId" in one || "context_id" in one || "is_final" in one)).toBe(
      false,
    );
  });

  it("close_context speaks what waits; an empty context is final without audio; an unknown one is nothing", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    client.send({ context_id: "none", close_context: true });
    client.send(
      { text: " ", context_id: "e" },
      { text: "", flush: true, context_id: "e" },
      { context_id: "e", close_context: true },
    );
    await client.final("e");
    client.send(
      { text: "Not flushed", context_id: "b" },
      { context_id: "b", text: "ignored", close_context: true },
    );
    await client.final("b");
    expect(client.of("e")).toHaveLength(1);
    expect(charsOf(client.of("b"))).toBe("Not flushed");
    expect(client.of("none")).toEqual([]);
    expect(client.end).toBeNull();
  });

  it("an id may be used again: after its isFinal, and while its context is still closing", async () => {
    await using upstream = await startFakeUpstream(speaking({ paceX: 20 }));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    for (const text of ["One. ", "Two. "]) {
      client.send({ text: " ", voice_settings: { speed: text === "One. " ? 1 : 1.1 }, context_id: "a" });
      client.send({ text, context_id: "a" }, { context_id: "a", close_context: true });
    }
    const finals = () => client.of("a").filter((one) => one.isFinal === true).length;
    await client.until("two finals", () => finals() === 2);
    client.send({ text: "Three. ", context_id: "a" }, { context_id: "a", close_context: true });
    await client.until("three finals", () => finals() === 3);
    expect(
      client
        .of("a")
        .map((one) => one.alignment?.chars.join("") ?? (one.isFinal ? "|" : ""))
        .join(""),
    ).toBe("One. |Two. |Three. |");
    const settings = upstream.requests.map((one) => (one.json as { voice_settings?: object }).voice_settings);
    expect(settings).toEqual([{ speed: 1 }, { speed: 1.1 }, undefined]);
    // Unlinked: nothing was said before in it.
    expect(upstream.requests.some((one) => "previous_text" in (one.json as object))).toBe(false);
  });

  it("voice_settings: {} is as good as none, the same again is fine, others are refused with 1008", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    client.send(
      { text: " ", context_id: "a", voice_settings: {} },
      { text: "One. ", context_id: "a", voice_settings: null },
    );
    client.send({ text: " ", context_id: "b", voice_settings: { speed: 1, stability: 0.5 } });
    client.send({
      text: "Two. ",
      context_id: "b",
      voice_settings: { stability: 0.5, speed: 1 },
      flush: true,
    });
    await client.until("audio", () => charsOf(client.of("b")) === "Two. ");
    client.send({ text: "Three. ", context_id: "a", voice_settings: { stability: 0.9 } });
    const { code, reason } = await client.untilClosed();
    expect([code, reason]).toEqual([1008, expect.stringContaining("voice_settings")]);
    expect(client.heard.at(-1)).toMatchObject({ error: "invalid_input_message", contextId: "a", code: 1008 });
  });

  it("the sixth context is refused with max_active_conversations and the socket closes", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    for (const id of ["1", "2", "3", "4", "5"]) client.send({ text: " ", context_id: id });
    client.send({ context_id: "5", close_context: true }, { text: " ", context_id: "5b" });
    await client.final("5");
    expect(client.end).toBeNull();
    client.send({ text: "Hello ", context_id: "6" });
    expect((await client.untilClosed()).code).toBe(1008);
    expect(client.heard.at(-1)).toMatchObject({
      error: "max_active_conversations",
      code: 1008,
      contextId: "6",
    });
  });

  it("a context that is idle is spoken and closed; the socket without contexts ends with 1008", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, `${MULTI}&inactivity_timeout=1`);
    client.send({ text: "Left alone", context_id: "a" });
    await client.final("a");
    expect(charsOf(client.of("a"))).toBe("Left alone");
    expect((await client.untilClosed()).code).toBe(1008);
    expect(client.heard.at(-1)?.error).toBe("input_timeout_exceeded");
  });

  it("close_socket ends every context with its final message and then the socket with 1000", async () => {
    await using upstream = await startFakeUpstream(speaking({ paceX: 20 }));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    client.send(
      { text: "One. ", context_id: "a" },
      { text: "Two. ", context_id: "b" },
      { text: " ", context_id: "c" },
    );
    client.send({ close_socket: true }, { text: "Too late. ", context_id: "d" });
    expect(await client.untilClosed()).toEqual({ code: 1000, reason: "" });
    for (const id of ["a", "b", "c"])
      expect(client.of(id).filter((one) => one.isFinal === true)).toHaveLength(1);
    expect(client.of("d")).toEqual([]);
  });

  it("no more requests are open at once than a socket may have", async () => {
    let most = 0;
    await using upstream = await startFakeUpstream((request) => {
      most = Math.max(most, upstream.requests.filter((one) => !one.isFinished).length);
      return speechAnswer(speechFor(request), { paceX: 20 });
    });
    await using app = await startVendorApp(upstream.url, { sockets: { limits: { maxRequests: 3 } } });
    await using client = await VendorClient.connect(app, `${MULTI}&auto_mode=true&sync_alignment=true`);
    for (const id of ["a", "b", "c", "d"]) {
      client.send({ text: "One of them. ", context_id: id }, { text: "And another. ", context_id: id });
    }
    client.send({ close_socket: true });
    await client.untilClosed();
    for (const id of ["a", "b", "c", "d"]) expect(charsOf(client.of(id))).toBe("One of them. And another. ");
    expect(most).toBe(3);
  });
});
