/** LiveKit's own plugin for the vendor, pointed at the gateway by its baseURL and nothing else. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDoor } from "../../src/access/door.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { DEFAULTS } from "../helpers/start-gateway.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { loudness, startClient, VOICE } from "../service/client.ts";
import { startVendorApp, type VendorApp } from "../wire/vendor-rig.ts";
import { areInstalled, IF_INSTALLED, load } from "./installed.ts";
import { type Collected, collect, type Synthesized, silenceLogger } from "./livekit-parts.ts";

interface SpeechStream extends AsyncIterable<Synthesized | symbol> {
  pushText(text: string): void;
  endInput(): void;
  close(): void;
}
interface Tts {
  stream(): SpeechStream;
  synthesize(text: string): AsyncIterable<Synthesized>;
  close(): Promise<void>;
  on(event: "error", listener: (event: { readonly error: Error }) => void): void;
}
interface Plugin {
  readonly TTS: new (options: object) => Tts;
}
const RATE = 22_050;
const PACKAGES = ["@livekit/agents", "@livekit/agents-plugin-elevenlabs"];

describe.skipIf(!areInstalled(...PACKAGES))(`@livekit/agents-plugin-elevenlabs ${IF_INSTALLED}`, () => {
  let service: Awaited<ReturnType<typeof startClient>>;
  let app: VendorApp;
  const open: Tts[] = [];

  beforeAll(async () => {
    silenceLogger();
    service = await startClient();
    app = await startVendorApp(service.service.url);
  });
  afterAll(async () => {
    for (const tts of open) await tts.close();
    await app?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  function newTts(options: object = {}): Tts {
    const { TTS } = load<Plugin>("@livekit/agents-plugin-elevenlabs");
    const tts = new TTS({ apiKey: "any", baseURL: `${app.url}/v1`, voiceId: VOICE, ...options });
    tts.on("error", () => undefined);
    open.push(tts);
    return tts;
  }

  it("stream(): all of the speech, every word, and the end", async () => {
    const stream = newTts().stream();
    for (const piece of ["Hello there from Live", "Kit. This is the ", "second sentence of it. "])
      stream.pushText(piece);
    stream.endInput();
    const { samples, words, finals } = await collect(stream, RATE);
    expect(finals).toBe(1);
    expect(samples.length / RATE).toBeGreaterThan(2);
    expect(samples.length / RATE).toBeLessThan(8);
    expect(loudness(samples)).toBeGreaterThan(300);
    const said = words
      .map(({ text }) => text)
      .join("")
      .replaceAll(/\s+/g, " ")
      .trim();
    expect(said).toBe("Hello there from LiveKit. This is the second sentence of it.");
  });

  it("word times rise through the whole reply where absolute_times is asked for", async () => {
    // The plugin does not encode what it puts into the address.
    const stream = newTts({ model: "eleven_turbo_v2_5&absolute_times=true" }).stream();
    stream.pushText("Hello there from LiveKit. This is the second sentence of it. ");
    stream.endInput();
    const { words, samples } = await collect(stream, RATE);
    const starts = words.flatMap(({ startTime }) => (startTime === undefined ? [] : [startTime]));
    expect(starts.length).toBeGreaterThan(8);
    expect(starts).toEqual([...starts].sort((a, b) => a - b));
    expect(starts.at(-1)).toBeGreaterThan((samples.length / RATE) * 0.7);
    expect(starts.at(-1)).toBeLessThan(samples.length / RATE);
  });

  it("speaks with a key of a gateway with keys, and not with another", async () => {
    using keys = new TestKeys();
    const door = createDoor({ ...DEFAULTS, keysFile: keys.path, log: watchedLog, clock: systemClock });
    await using closed = await startVendorApp(service.service.url, { door });
    const baseURL = `${closed.url}/v1`;
    const stream = newTts({ apiKey: keys.key, baseURL }).stream();
    stream.pushText("Hello there from LiveKit. ");
    stream.endInput();
    expect(loudness((await collect(stream, RATE)).samples)).toBeGreaterThan(300);
    const refused = newTts({ apiKey: "sk-wrong", baseURL });
    const failed = new Promise<Error>((resolve) => {
      refused.on("error", ({ error }) => resolve(error));
    });
    const silent = refused.stream();
    silent.pushText("Hello there. ");
    silent.endInput();
    expect((await failed).message).toContain("could not connect");
    silent.close();
    door.close();
  });

  it("several streams at once share one socket, and one after the other too", async () => {
    const tts = newTts();
    const speak = (text: string): Promise<Collected> => {
      const stream = tts.stream();
      stream.pushText(text);
      stream.endInput();
      return collect(stream, RATE);
    };
    const before = app.sockets.open;
    const results = await Promise.all([
      speak("The first one. "),
      speak("The second one. "),
      speak("The third. "),
    ]);
    expect(app.sockets.open).toBe(before + 1);
    results.push(await speak("And one that comes later. "));
    expect(app.sockets.open).toBe(before + 1);
    for (const { samples, finals } of results) {
      expect(loudness(samples)).toBeGreaterThan(300);
      expect(finals).toBe(1);
    }
  });

  it("a stream that is closed in the middle leaves the others alone", async () => {
    const tts = newTts();
    const cut = tts.stream();
    cut.pushText("This one is interrupted long before it has come to its end, whatever that may be. ");
    cut.pushText("It has another sentence. ");
    for await (const one of cut) {
      if (typeof one !== "symbol") break;
    }
    cut.close();
    const stream = tts.stream();
    stream.pushText("This one is heard. ");
    stream.endInput();
    expect(loudness((await collect(stream, RATE)).samples)).toBeGreaterThan(300);
  });

  it("synthesize(): over plain HTTP through the proxy", async () => {
    const { samples } = await collect(newTts().synthesize("Hello there from LiveKit."), RATE);
    expect(loudness(samples)).toBeGreaterThan(300);
  });
});
