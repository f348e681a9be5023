/** OpenAI's own client, pointed at the gateway by its baseURL and nothing else. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDoor } from "../../src/access/door.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { DEFAULTS } from "../helpers/start-gateway.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { decode, loudness, startClient } from "../service/client.ts";
import { startVendorApp, type VendorApp } from "../wire/vendor-rig.ts";
import { areInstalled, IF_INSTALLED, load } from "./installed.ts";

interface OpenAi {
  readonly audio: {
    readonly speech: { create(body: object): Promise<Response> };
  };
}
interface Package {
  readonly OpenAI: new (options: object) => OpenAi;
}

describe.skipIf(!areInstalled("openai"))(`openai ${IF_INSTALLED}`, () => {
  let service: Awaited<ReturnType<typeof startClient>>;
  let app: VendorApp;
  let client: OpenAi;

  beforeAll(async () => {
    service = await startClient();
    app = await startVendorApp(service.service.url);
    const { OpenAI } = load<Package>("openai");
    client = new OpenAI({ apiKey: "any", baseURL: `${app.url}/v1` });
  });
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  it.each(["mp3", "opus", "flac", "wav", "pcm"])(
    "audio.speech.create: %s is speech",
    async (response_format) => {
      const answer = await client.audio.speech.create({
        model: "gpt-4o-mini-tts",
        voice: "nova",
        input: "Hello there from the client.",
        instructions: "Speak slowly.",
        response_format,
      });
      const bytes = Buffer.from(await answer.arrayBuffer());
      expect(
        loudness(decode(bytes, response_format === "pcm" ? "pcm_24000" : response_format)),
      ).toBeGreaterThan(300);
    },
  );

  it("stream_format sse: events whose audio is speech", async () => {
    const answer = await client.audio.speech.create({
      model: "tts-1",
      voice: "onyx",
      input: "Hello there.",
      response_format: "pcm",
      stream_format: "sse",
    });
    const events = (await answer.text())
      .trim()
      .split("\n\n")
      .map((block) => JSON.parse(block.replace("data: ", "")) as { type: string; audio?: string });
    const pcm = Buffer.concat(events.map(({ audio }) => Buffer.from(audio ?? "", "base64")));
    expect(loudness(decode(pcm, "pcm_24000"))).toBeGreaterThan(300);
    expect(events.at(-1)?.type).toBe("speech.audio.done");
  });

  it("an error is the client's own, with the field that is wrong", async () => {
    const asked = client.audio.speech.create({
      model: "tts-1",
      voice: "alloy",
      input: "a",
      response_format: "aac",
    });
    await expect(asked).rejects.toMatchObject({
      status: 400,
      param: "response_format",
      type: "invalid_request_error",
    });
  });

  it("speaks with a key of a gateway with keys, and throws its own errors without", async () => {
    using keys = new TestKeys();
    const door = createDoor({ ...DEFAULTS, keysFile: keys.path, log: watchedLog, clock: systemClock });
    await using closed = await startVendorApp(service.service.url, { door });
    const { OpenAI } = load<Package>("openai");
    const ask = async (apiKey: string) => {
      const own = new OpenAI({ apiKey, baseURL: `${closed.url}/v1`, maxRetries: 0 });
      const asked = own.audio.speech.create({
        model: "tts-1",
        voice: "nova",
        input: "Hi.",
        response_format: "pcm",
      });
      return asked.then(
        async (answer) => ({ status: answer.status, bytes: (await answer.arrayBuffer()).byteLength }),
        (thrown: unknown) => thrown,
      );
    };
    const spoken = (await ask(keys.key)) as { readonly bytes: number };
    expect(spoken.bytes).toBeGreaterThan(4800);
    expect(await ask("sk-wrong")).toMatchObject({ status: 401, code: "invalid_api_key" });
    const listener = tokenFor({ sessions: ["*"], allow: ["listen"] });
    expect(await ask(listener)).toMatchObject({ status: 403, code: "forbidden" });
    door.close();
  });
});
