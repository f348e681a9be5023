/** The text-to-dialogue sockets. */
import { describe, expect, it } from "vitest";
import { speaking, speechFor, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { until } from "../helpers/until.ts";
import { audioOf, charsOf, type Heard, startVendorApp, VendorClient } from "./vendor-rig.ts";

const SINGLE = "/v1/text-to-dialogue/stream-input?model_id=eleven_v3&output_format=pcm_16000";
const MULTI = "/v1/text-to-dialogue/multi-stream-input?model_id=eleven_v3&output_format=pcm_16000";

const line = (text: string, voice_id = "va", new_turn = false) => ({ text, voice_id, new_turn });
const isAck = (one: Heard) => one.is_final_audio_for_turn === true;

describe("text-to-dialogue/stream-input", () => {
  it("speaks the lines of several voices, acknowledges the flush, and ends with is_final and 1000", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, `${SINGLE}&sync_alignment=true&seed=3`);
    client.send(
      { voices: ["va", "vb"], voice_settings: { stability: 0.2 } },
      { inputs: [line("Hello "), line("there. "), line("Hi. ", "vb")], flush: true },
      { close_socket: true },
    );
    expect((await client.untilClosed()).code).toBe(1000);
    const [request] = upstream.requests;
    expect(request?.path).toBe("/v1/text-to-dialogue/stream/with-timestamps");
    expect(request?.json).toMatchObject({
      inputs: [
        { text: "Hello there. ", voice_id: "va" },
        { text: "Hi. ", voice_id: "vb" },
      ],
      model_id: "eleven_v3",
      settings: { stability: 0.2 },
      seed: 3,
      apply_text_normalization: "off",
    });
    const kinds = client.heard.map((one) => (isAck(one) ? "ack" : one.is_final ? "final" : "audio"));
    expect(kinds.filter((kind) => kind !== "audio")).toEqual(["ack", "final"]);
    expect(kinds.slice(-2)).toEqual(["ack", "final"]);
    expect(charsOf(client.heard)).toBe("Hello there. Hi. ");
    expect(
      audioOf(client.heard).equals(request === undefined ? Buffer.alloc(0) : speechFor(request).audio),
    ).toBe(true);
    for (const one of client.heard.slice(0, -2)) {
      expect(Object.keys(one).sort()).toEqual(["alignment", "audio", "normalized_alignment"]);
      expect(one.alignment?.char_start_times_ms?.[0]).toBe(0);
    }
  });

  it("passes on all that the address and the first message ask for; new_turn begins another line", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    const asked = "&language_code=de&enable_logging=false&apply_text_normalization=on";
    await using client = await VendorClient.connect(app, SINGLE + asked);
    const locators = [{ pronunciation_dictionary_id: "d1", version_id: "v1" }];
    client.send(
      { voices: ["va"], pronunciation_dictionary_locators: locators },
      { inputs: [line("Hello there. "), line("And again. ", "va", true)], flush: true },
      { close_socket: true },
    );
    expect((await client.untilClosed()).code).toBe(1000);
    const [request] = upstream.requests;
    expect(request?.query.get("enable_logging")).toBe("false");
    expect(request?.json).toMatchObject({
      inputs: [
        { text: "Hello there. ", voice_id: "va" },
        { text: "And again. ", voice_id: "va" },
      ],
      language_code: "de",
      apply_text_normalization: "on",
      pronunciation_dictionary_locators: locators,
    });
  });

  it("starts by itself at 40 characters and 8 words, in whole words, without an acknowledgement", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    client.send({ voices: ["va"] }, { inputs: [line("one two three four five six seven")] });
    client.send({ inputs: [line(" eighth and ni")] });
    await until("a generation", () => upstream.requests.length === 1);
    await client.until("its audio", () => client.heard.length > 0);
    client.send({ inputs: [line("ne. ")] }, { close_socket: true });
    await client.untilClosed();
    expect(client.heard.some(isAck)).toBe(false);
    expect(charsOf(client.heard)).toBe("one two three four five six seven eighth and nine. ");
    expect(
      upstream.requests.map((one) => (one.json as { inputs: { text: string }[] }).inputs[0]?.text),
    ).toEqual(["one two three four five six seven eighth and ", "nine. "]);
  });

  it("starts by itself in a script without blanks, before the text is over", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, SINGLE);
    const text = "今天的天气非常好，我们决定一起去公园散步，然后在湖边的小餐馆里吃午饭，晚上再看一场电影。";
    client.send({ voices: ["va"] });
    for (const character of text) client.send({ inputs: [line(character)] });
    await client.until("the first audio", () => charsOf(client.heard).length >= 40);
    client.send({ close_socket: true });
    await client.untilClosed();
    expect(charsOf(client.heard)).toBe(text);
  });
});

describe("text-to-dialogue/multi-stream-input", () => {
  it("answers each flush once, keeps a context by keep_alive, and says is_final when it is closed", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    client.send({ context_id: "a", voices: ["va"] }, { context_id: "a", keep_alive: true });
    client.send(
      { context_id: "a", inputs: [line("One. ")], flush: true },
      { context_id: "a", inputs: [line("Two. ")] },
    );
    client.send({ context_id: "a", flush: true });
    await client.until("two acknowledgements", () => client.of("a").filter(isAck).length === 2);
    client.send({ context_id: "a", close_context: true });
    await client.final("a");
    const story = client.heard.map(
      (one) => one.alignment?.chars.join("") ?? (isAck(one) ? "|" : one.is_final ? "." : ""),
    );
    expect(story.join("")).toBe("One. |Two. |.");
    expect(client.heard.every((one) => one.context_id === "a" && one.contextId === undefined)).toBe(true);
  });

  it("close_context drops what was not begun, also its acknowledgement", async () => {
    await using upstream = await startFakeUpstream(speaking({ paceX: 20 }));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    client.send({ context_id: "a", voices: ["va"] });
    for (const text of ["One. ", "Two. ", "Three. "])
      client.send({ context_id: "a", inputs: [line(text)], flush: true });
    client.send({ context_id: "a", inputs: [line("Four. ")] }, { context_id: "a", close_context: true });
    await client.final("a");
    expect(charsOf(client.heard)).toBe("One. ");
    expect(client.heard.filter(isAck)).toHaveLength(1);
    expect(upstream.requests).toHaveLength(1);
  });

  it.each([
    ["a missing context_id", [{ voices: ["va"] }], "invalid_input_message"],
    ["no voices first", [{ context_id: "a", inputs: [line("Hi. ")] }], "invalid_input_message"],
    [
      "too many voices",
      [{ context_id: "a", voices: Array.from({ length: 11 }, (_, i) => `v${i}`) }],
      "invalid_input_message",
    ],
    [
      "a voice that is not registered",
      [
        { context_id: "a", voices: ["va"] },
        { context_id: "a", inputs: [line("Hi. ", "vb")] },
      ],
      "invalid_input_message",
    ],
    [
      "voices again",
      [
        { context_id: "a", voices: ["va"] },
        { context_id: "a", voices: ["va"] },
      ],
      "invalid_input_message",
    ],
    [
      "other settings",
      [
        { context_id: "a", voices: ["va"] },
        { context_id: "a", voice_settings: { stability: 1 } },
      ],
      "invalid_input_message",
    ],
    [
      "a message to a closing context",
      [
        { context_id: "a", voices: ["va"] },
        { context_id: "a", inputs: [line("One. ")], flush: true },
        { context_id: "a", close_context: true },
        { context_id: "a", keep_alive: true },
      ],
      "context_closing",
    ],
    [
      "a sixth context",
      Array.from({ length: 6 }, (_, i) => ({ context_id: `c${i}`, voices: ["va"] })),
      "max_active_conversations",
    ],
  ])("%s closes the socket with 1008", async (_what, messages, error) => {
    await using upstream = await startFakeUpstream(speaking({ paceX: 5 }));
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, MULTI);
    client.send(...messages);
    expect((await client.untilClosed()).code).toBe(1008);
    expect(client.heard.at(-1)).toMatchObject({ error, code: 1008 });
  });

  it("a conversational model takes exactly one voice, and is the default", async () => {
    await using upstream = await startFakeUpstream();
    await using app = await startVendorApp(upstream.url);
    await using client = await VendorClient.connect(app, "/v1/text-to-dialogue/multi-stream-input");
    client.send({ context_id: "a", voices: ["va", "vb"] });
    expect((await client.untilClosed()).code).toBe(1008);
    expect(client.heard.at(-1)).toMatchObject({ param: "voices", context_id: "a" });
  });

  it("closing contexts keep their place until is_final", async () => {
    await using upstream = await startFakeUpstream(speaking({ paceX: 2 }));
    await using app = await startVendorApp(upstream.url, { sockets: { limits: { maxContexts: 1 } } });
    await using client = await VendorClient.connect(app, MULTI);
    client.send(
      { context_id: "a", voices: ["va"] },
      { context_id: "a", inputs: [line("One. ")], flush: true },
    );
    client.send({ context_id: "a", close_context: true }, { context_id: "b", voices: ["va"] });
    expect((await client.untilClosed()).code).toBe(1008);
    expect(client.heard.at(-1)?.error).toBe("max_active_conversations");
  });
});
