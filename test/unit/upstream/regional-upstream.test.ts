/** The upstream client against a real HTTP server: what it asks, what it makes of good answers. */
import { describe, expect, it } from "vitest";
import { createUpstream } from "../../../src/upstream/regional-upstream.ts";
import type { DialogueRequest, SynthesisRequest } from "../../../src/upstream/types.ts";
import { REGION_URLS, regionUrl } from "../../../src/upstream/vendors/vendor-regions.ts";
import {
  FAKE_VOICES,
  jsonAnswer,
  ndjsonSpeech,
  refusal,
  speaking,
  startFakeUpstream,
} from "../../helpers/fake-upstream.ts";
import { until } from "../../helpers/until.ts";
import { clientOf, RAW_SPEECH, Recorder, SPEECH } from "./rig.ts";

const DIALOGUE: DialogueRequest = {
  kind: "dialogue",
  inputs: [
    { text: "Knock knock.", voiceId: "tone-a" },
    { text: "Who's there?", voiceId: "tone-b" },
  ],
  outputFormat: "pcm_8000",
  wantsTiming: true,
};

describe("UpstreamClient.open() to the embedded service", () => {
  it.each([
    ["says how much is in hand", { isEmbedded: true }, 1234.5, "1234"],
    ["says that nothing is", { isEmbedded: true }, 0, "0"],
    ["says nothing where that is not known", { isEmbedded: true }, undefined, undefined],
    ["says nothing to another", {}, 1234.5, undefined],
  ])("%s", async (_name, options, aheadMs, header) => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url, options);
    const recorder = new Recorder();
    client.open({ ...SPEECH, ...(aheadMs === undefined ? {} : { aheadMs }) }, recorder);
    await recorder.over();
    expect(server.requests[0]?.headers["x-voicewire-ahead-ms"]).toBe(header);
  });
});

describe("UpstreamClient.open() answers", () => {
  it("hands over every record of a timed speech, then end", async () => {
    await using server = await startFakeUpstream(speaking({ splitBytes: 97 }));
    await using client = clientOf(server.url);
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    await recorder.over();
    const speech = ndjsonSpeech({ text: SPEECH.text });
    expect(recorder.calls).toEqual(["sent", "head", "chunk", "end"]);
    expect(recorder.audio).toEqual(speech.audio);
    const alignments = speech.chunks.map((chunk) => chunk.alignment);
    expect(recorder.chunks.map((chunk) => chunk.alignment)).toEqual(alignments);
    expect(recorder.chunks.map((chunk) => chunk.normalizedAlignment)).toEqual(alignments);
    expect(recorder.heads).toEqual([{ requestId: "fake-request", characterCost: 17 }]);
  });

  it("hands over bare audio as it comes, without timing", async () => {
    await using server = await startFakeUpstream(speaking({ splitBytes: 333 }));
    await using client = clientOf(server.url);
    const recorder = new Recorder();
    client.open(RAW_SPEECH, recorder);
    await recorder.over();
    expect(recorder.calls).toEqual(["sent", "head", "chunk", "end"]);
    expect(recorder.audio).toEqual(ndjsonSpeech({ text: SPEECH.text }).audio);
    expect(
      recorder.chunks.every((chunk) => chunk.alignment === null && chunk.voiceSegments.length === 0),
    ).toBe(true);
  });

  it("hands over a dialogue's voice segments", async () => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url);
    const recorder = new Recorder();
    client.open(DIALOGUE, recorder);
    await recorder.over();
    const speech = ndjsonSpeech({ inputs: DIALOGUE.inputs, format: "pcm_8000" });
    expect(recorder.audio).toEqual(speech.audio);
    expect(recorder.chunks.flatMap((chunk) => chunk.voiceSegments)).toEqual(speech.voiceSegments);
  });

  it("reads the concurrency headers and leaves out what is no number", async () => {
    await using server = await startFakeUpstream(() => ({
      headers: {
        "content-type": "audio/basic",
        "current-concurrent-requests": "3",
        "maximum-concurrent-requests": "10",
        "character-cost": "many",
      },
    }));
    await using client = clientOf(server.url);
    const recorder = new Recorder();
    client.open(RAW_SPEECH, recorder);
    await recorder.over();
    expect(recorder.heads).toEqual([{ currentConcurrentRequests: 3, maximumConcurrentRequests: 10 }]);
  });

  it("calls no handler before it returns, whatever fails", async () => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url, { maxConnections: 1, maxQueued: 0 });
    await client.warm();
    const requests: SynthesisRequest[] = [SPEECH, SPEECH, { ...SPEECH, voiceId: ".." }];
    const recorders = requests.map((request) => {
      const recorder = new Recorder();
      client.open(request, recorder);
      expect(recorder.calls).toEqual([]);
      return recorder;
    });
    await Promise.all(recorders.map((recorder) => recorder.over()));
    expect(recorders.map((recorder) => recorder.calls.at(-1))).toEqual([
      "end",
      "error upstream_busy",
      "error unknown_voice",
    ]);
  });
});

describe("UpstreamClient.open() requests", () => {
  async function asked(request: SynthesisRequest, more: { key?: string; prefix?: string } = {}) {
    await using server = await startFakeUpstream();
    await using client = clientOf(`${server.url}${more.prefix ?? ""}`, { key: more.key ?? "" });
    const recorder = new Recorder();
    client.open(request, recorder);
    await until("a request", () => server.requests.length === 1);
    const [first] = server.requests;
    if (first === undefined) throw new Error("No request came, expected one");
    return first;
  }

  it("puts every field of a speech where the interface has it", async () => {
    const request = await asked({
      ...SPEECH,
      outputFormat: "pcm_24000",
      modelId: "eleven_flash_v2_5",
      languageCode: "en",
      seed: 7,
      applyTextNormalization: "off",
      enableLogging: false,
      voiceSettings: { stability: 0.4, speed: 1.1 },
      previousText: "Before.",
      nextText: "After.",
    });
    expect(request.method).toBe("POST");
    expect(request.path).toBe("/v1/text-to-speech/tone-a/stream/with-timestamps");
    expect(Object.fromEntries(request.query)).toEqual({
      output_format: "pcm_24000",
      enable_logging: "false",
    });
    expect(request.headers["content-type"]).toBe("application/json");
    expect(request.json).toEqual({
      text: SPEECH.text,
      model_id: "eleven_flash_v2_5",
      language_code: "en",
      seed: 7,
      apply_text_normalization: "off",
      voice_settings: { stability: 0.4, speed: 1.1 },
      previous_text: "Before.",
      next_text: "After.",
    });
  });

  it("sends nothing that was not given", async () => {
    const request = await asked(RAW_SPEECH);
    expect(request.path).toBe("/v1/text-to-speech/tone-a/stream");
    expect(Object.fromEntries(request.query)).toEqual({ output_format: "ulaw_8000" });
    expect(request.json).toEqual({ text: SPEECH.text });
    expect(request.headers["xi-api-key"]).toBeUndefined();
  });

  it("puts every field of a dialogue where the interface has it", async () => {
    const request = await asked({ ...DIALOGUE, modelId: "eleven_v3", settings: { stability: 1 }, seed: 0 });
    expect(request.path).toBe("/v1/text-to-dialogue/stream/with-timestamps");
    expect(request.json).toEqual({
      inputs: [
        { text: "Knock knock.", voice_id: "tone-a" },
        { text: "Who's there?", voice_id: "tone-b" },
      ],
      model_id: "eleven_v3",
      settings: { stability: 1 },
      seed: 0,
    });
    expect((await asked({ ...DIALOGUE, wantsTiming: false })).path).toBe("/v1/text-to-dialogue/stream");
  });

  it("adds the key, keeps the base URL's path, encodes the voice id and any text", async () => {
    const text = 'Zoë says 你好 🙂 \ud800 \u2028 "quoted"';
    const request = await asked(
      { ...SPEECH, voiceId: "a/b?c#é%2e", text },
      { key: "sk_test", prefix: "/proxy/speech/" },
    );
    expect(request.headers["xi-api-key"]).toBe("sk_test");
    expect(request.path).toBe(
      "/proxy/speech/v1/text-to-speech/a%2Fb%3Fc%23%C3%A9%252e/stream/with-timestamps",
    );
    expect(request.json).toEqual({ text });
  });

  it.each(["", ".", "..", "\ud800"])("refuses the voice id %j that no path can carry", async (voiceId) => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url);
    const recorder = new Recorder();
    client.open({ ...SPEECH, voiceId }, recorder);
    expect(await recorder.failed()).toMatchObject({ code: "unknown_voice", field: "voice_id" });
    expect(server.requests).toHaveLength(0);
  });
});

describe("UpstreamClient.get()", () => {
  it("gives status, type and body of a path, with the key added", async () => {
    await using server = await startFakeUpstream();
    await using client = clientOf(`${server.url}/prefix`, { key: "sk_test" });
    const { status, contentType, body } = await client.get("/v1/voices?page_size=2");
    expect({ status, contentType }).toEqual({ status: 200, contentType: "application/json" });
    expect(JSON.parse(body.toString())).toEqual({ voices: FAKE_VOICES });
    expect(server.requests[0]).toMatchObject({ method: "GET", path: "/prefix/v1/voices" });
    expect(server.requests[0]?.query.get("page_size")).toBe("2");
    expect(server.requests[0]?.headers["xi-api-key"]).toBe("sk_test");
  });

  it("gives an answer that is no 200 as it is", async () => {
    await using server = await startFakeUpstream(() => refusal(404, "voice_not_found"));
    await using client = clientOf(server.url);
    const { status, body } = await client.get("/v1/voices/x");
    expect(status).toBe(404);
    expect(JSON.parse(body.toString())).toMatchObject({ detail: { code: "voice_not_found" } });
  });

  it("rejects a body over 8 MiB and stops reading it", async () => {
    await using server = await startFakeUpstream(() => ({ body: [{ endless: Buffer.alloc(65_536) }] }));
    await using client = clientOf(server.url);
    await expect(client.get("/v1/voices")).rejects.toMatchObject({ code: "upstream_protocol" });
    await until("the server to see it go", () => server.requests[0]?.abortedAtMs !== null);
  });

  it("takes a body of 8 MiB", async () => {
    await using server = await startFakeUpstream(() => ({ body: [Buffer.alloc(8 * 1024 * 1024)] }));
    await using client = clientOf(server.url);
    expect((await client.get("/v1/voices")).body).toHaveLength(8 * 1024 * 1024);
  });

  it("rejects when there is nobody", async () => {
    const server = await startFakeUpstream();
    await server.close();
    await using client = clientOf(server.url);
    await expect(client.get("/v1/voices")).rejects.toMatchObject({ code: "upstream_unreachable" });
    expect(client.stats()).toEqual({ open: 0, queued: 0, refused: 0, connected: 0 });
  });
});

describe("UpstreamClient connections", () => {
  it("warm() connects, and the first request finds the connection", async () => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url);
    await client.warm();
    expect(client.stats()).toEqual({ open: 0, queued: 0, refused: 0, connected: 1 });
    expect(server.requests).toHaveLength(0);
    await client.warm();
    await client.get("/v1/voices");
    expect(server.connections.opened).toBe(1);
  });

  it("warm() rejects when there is nobody, and later requests find one who came", async () => {
    const gone = await startFakeUpstream();
    await gone.close();
    await using client = clientOf(gone.url);
    await expect(client.warm()).rejects.toMatchObject({ code: "upstream_unreachable" });
    expect(client.stats()).toEqual({ open: 0, queued: 0, refused: 0, connected: 0 });
    await using server = await startFakeUpstream(speaking(), { port: Number(new URL(gone.url).port) });
    await client.warm();
    expect((await client.get("/v1/voices")).status).toBe(200);
    expect(server.connections.opened).toBe(1);
  });

  it("outlives a server that is killed while it speaks and comes back", async () => {
    const killed = await startFakeUpstream(speaking({ paceX: 1 }));
    await using client = clientOf(killed.url, { maxConnections: 2 });
    const recorders = [new Recorder(), new Recorder()];
    for (const recorder of recorders) client.open(SPEECH, recorder);
    await until("both to speak", () => recorders.every((recorder) => recorder.bytes > 0));
    await killed.close();
    const errors = await Promise.all(recorders.map((recorder) => recorder.failed()));
    expect(errors.map((error) => error.code)).toEqual(["upstream_truncated", "upstream_truncated"]);
    await expect(client.get("/v1/voices")).rejects.toMatchObject({ code: "upstream_unreachable" });
    await using server = await startFakeUpstream(speaking(), { port: Number(new URL(killed.url).port) });
    const again = [new Recorder(), new Recorder()];
    for (const recorder of again) client.open(SPEECH, recorder);
    await Promise.all(again.map((recorder) => recorder.over()));
    expect(again.every((recorder) => recorder.isEnded)).toBe(true);
    expect(server.connections.opened).toBeLessThanOrEqual(2);
  });

  it("keeps using one connection for one request after another", async () => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url);
    for (let count = 0; count < 5; count += 1) {
      const recorder = new Recorder();
      client.open(SPEECH, recorder);
      await recorder.over();
    }
    expect(server.requests).toHaveLength(5);
    expect(server.connections.opened).toBe(1);
  });

  it("hands the connection of a request that ends to the one that waits", async () => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url, { maxConnections: 1 });
    const recorders = Array.from({ length: 8 }, () => new Recorder());
    for (const recorder of recorders) client.open(SPEECH, recorder);
    await Promise.all(recorders.map((recorder) => recorder.over()));
    expect(recorders.every((recorder) => recorder.isEnded)).toBe(true);
    expect(server.connections.opened).toBe(1);
  });

  it("goes on over a new connection after the server closed an idle one", async () => {
    await using server = await startFakeUpstream(() => jsonAnswer(200, {}, { connection: "close" }));
    await using client = clientOf(server.url);
    await client.get("/v1/voices");
    await until("the connection to be gone", () => client.stats().connected === 0);
    await client.get("/v1/voices");
    expect(server.connections.opened).toBe(2);
  });
});

describe("createUpstream()", () => {
  const BOUNDS = { maxConnections: 1, maxQueued: 1, timeoutMs: 1000, patienceMs: 0, failoverMs: 1000 };

  it.each([
    "embedded",
    "ftp://127.0.0.1",
    "http://",
    "http://user:hunter2@127.0.0.1",
    "http://127.0.0.1/?x=hunter2",
    "http://127.0.0.1/#hunter2",
  ])("refuses the base URL %s without repeating it", (baseUrl) => {
    const options = { ...BOUNDS, baseUrl, key: "" };
    let thrown: unknown;
    try {
      createUpstream(options);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ code: "invalid_config", field: "upstream-url" });
    expect(String(thrown)).not.toContain("hunter2");
  });

  it("refuses a key that no header can carry, without repeating it", () => {
    const options = { ...BOUNDS, baseUrl: "http://127.0.0.1" };
    for (const key of ["hunter2\n", "hunter 2", "hunter2é"]) {
      expect(() => createUpstream({ ...options, key })).toThrow(/^(?!.*hunter).*upstream-key/);
    }
  });
});

describe("regionUrl()", () => {
  it("knows the vendor's regions and refuses others by name", () => {
    expect(regionUrl("eu")).toBe("https://api.eu.residency.elevenlabs.io");
    expect(Object.keys(REGION_URLS)).toEqual(["global", "us", "eu", "in", "sg"]);
    expect(() => regionUrl("toString")).toThrow(/"toString", expected one of global, us, eu, in, sg/);
  });
});
