/** LiveKit's plugin for OpenAI, pointed at the gateway by its baseURL and nothing else: it asks for `/v1/audio/speech`. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loudness, startClient } from "../service/client.ts";
import { startVendorApp, type VendorApp } from "../wire/vendor-rig.ts";
import { areInstalled, IF_INSTALLED, load } from "./installed.ts";
import { collect, type Synthesized, silenceLogger } from "./livekit-parts.ts";

interface Tts {
  synthesize(text: string): AsyncIterable<Synthesized>;
  updateOptions(options: object): void;
  close(): Promise<void>;
  on(event: "error", listener: (event: { readonly error: Error }) => void): void;
}
interface Plugin {
  readonly TTS: new (options: object) => Tts;
}

const RATE = 24_000;
const TEXT = "Hello there from LiveKit. This is the second sentence of it.";
const PACKAGES = ["@livekit/agents", "@livekit/agents-plugin-openai"];

describe.skipIf(!areInstalled(...PACKAGES))(`@livekit/agents-plugin-openai ${IF_INSTALLED}`, () => {
  let service: Awaited<ReturnType<typeof startClient>>;
  let app: VendorApp;
  let tts: Tts;

  beforeAll(async () => {
    silenceLogger();
    service = await startClient();
    app = await startVendorApp(service.service.url);
    const { TTS } = load<Plugin>("@livekit/agents-plugin-openai");
    tts = new TTS({ apiKey: "any", baseURL: `${app.url}/v1`, voice: "nova", instructions: "Be kind." });
    tts.on("error", () => undefined);
  });
  afterAll(async () => {
    await tts?.close();
    await app?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  it("synthesize(): all of the speech at its rate, and the end", async () => {
    const { samples, finals } = await collect(tts.synthesize(TEXT), RATE);
    expect(finals).toBe(1);
    expect(samples.length / RATE).toBeGreaterThan(2);
    expect(samples.length / RATE).toBeLessThan(8);
    expect(loudness(samples)).toBeGreaterThan(300);
  });

  it("its speed is heard", async () => {
    const usual = await collect(tts.synthesize(TEXT), RATE);
    tts.updateOptions({ speed: 0.7 });
    const slow = await collect(tts.synthesize(TEXT), RATE);
    tts.updateOptions({ speed: 1 });
    expect(slow.samples.length).toBeGreaterThan(usual.samples.length * 1.2);
  });
});
