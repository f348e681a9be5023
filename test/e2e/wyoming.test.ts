/** The gateway as a Wyoming server, asked as Home Assistant asks one: raw frames over TCP. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAKE_VOICES, type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort } from "../helpers/free-port.ts";
import { TestKeys } from "../helpers/key-file.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { until } from "../helpers/until.ts";
import { KOKORO_VOICE, kokoro } from "../kit/vendors/kokoro.ts";
import { frameOf, take, type WyomingEvent } from "../kit/vendors/wyoming.ts";
import { asked, configOf, serviceAt, speech } from "../upstream/services/rig.ts";

const VOICE = FAKE_VOICES[0]?.voice_id ?? "";
const MS_PER_CHAR = 20;
const PCM_BYTES_PER_CHAR = (MS_PER_CHAR / 1000) * 24_000 * 2;

class Client implements AsyncDisposable {
  readonly frames: { readonly event: WyomingEvent; readonly payload: Buffer }[] = [];
  isClosed = false;
  readonly #socket: Socket;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(port: number) {
    this.#socket = connect({ host: "127.0.0.1", port });
    this.#socket.on("data", (piece) => {
      this.#bytes = Buffer.concat([this.#bytes, piece]);
      for (let frame = take(this.#bytes); frame !== null; frame = take(this.#bytes)) {
        this.#bytes = frame.rest;
        this.frames.push(frame);
      }
    });
    this.#socket.on("close", () => {
      this.isClosed = true;
    });
    // Who is refused is cut off, too.
    this.#socket.on("error", () => this.#socket.destroy());
  }

  send(type: string, data: unknown = {}, isInline = false): void {
    this.#socket.write(frameOf(type, data, Buffer.alloc(0), isInline));
  }
  write(bytes: string): void {
    this.#socket.write(bytes);
  }
  stopReading(): void {
    this.#socket.pause();
  }
  readOn(): void {
    this.#socket.resume();
  }
  get types(): string[] {
    return this.frames.map(({ event }) => event.type);
  }
  get audio(): Buffer {
    return Buffer.concat(this.frames.map(({ payload }) => payload));
  }
  data(type: string): WyomingEvent["data"] | undefined {
    return this.frames.find(({ event }) => event.type === type)?.event.data;
  }
  async until(type: string): Promise<void> {
    await until(type, () => this.types.includes(type));
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isClosed) return;
    this.#socket.destroy();
    await once(this.#socket, "close");
  }
}

describe("the gateway as a Wyoming server", () => {
  let upstream: FakeUpstream;
  let gateway: TestGateway;
  let port = 0;

  beforeAll(async () => {
    upstream = await startFakeUpstream(speaking({ msPerChar: MS_PER_CHAR }));
    port = await freePort();
    gateway = await gatewayAt(upstream.url, { voice: VOICE, wyomingPort: port });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  it("lists the upstream's voices, and says that it takes pieces", async () => {
    await using client = new Client(port);
    client.send("describe");
    await client.until("info");
    const programs = client.data("info")?.tts as Record<string, unknown>[] | undefined;
    const program = programs?.[0];
    expect(program).toMatchObject({
      name: "voicewire",
      installed: true,
      supports_synthesize_streaming: true,
    });
    const voices = program?.voices as { name: string; languages: string[] }[];
    expect(voices.map(({ name }) => name)).toEqual(FAKE_VOICES.map(({ voice_id }) => voice_id));
    expect(voices.every(({ languages }) => languages.includes("en"))).toBe(true);
  });

  it.each([true, false])(
    "speaks a whole text, one after the other on one connection (inline %s)",
    async (isInline) => {
      await using client = new Client(port);
      for (const text of ["Hello there.", "And again."]) {
        client.frames.length = 0;
        client.send("synthesize", { text, voice: { name: VOICE } }, isInline);
        await client.until("audio-stop");
        expect(client.types[0]).toBe("audio-start");
        expect(client.types.slice(1, -1).every((type) => type === "audio-chunk")).toBe(true);
        expect(client.data("audio-start")).toEqual({ rate: 24_000, width: 2, channels: 1 });
        expect(client.data("audio-chunk")).toEqual({ rate: 24_000, width: 2, channels: 1 });
        expect(client.audio.length).toBe(text.length * PCM_BYTES_PER_CHAR);
      }
      expect(client.isClosed).toBe(false);
    },
  );

  it("speaks text in pieces from its first sentence on, and says when all is spoken", async () => {
    await using client = new Client(port);
    client.send("synthesize-start", { voice: { name: VOICE } });
    for (const text of ["Good mor", "ning. ", "How are"]) client.send("synthesize-chunk", { text });
    await client.until("audio-stop");
    expect(client.audio.length).toBe("Good morning. ".length * PCM_BYTES_PER_CHAR);
    client.send("synthesize-chunk", { text: " you?" });
    client.send("synthesize", { text: "Good morning. How are you?", voice: { name: VOICE } });
    client.send("synthesize-stop");
    await client.until("synthesize-stopped");
    expect(client.audio.length).toBe("Good morning. How are you?".length * PCM_BYTES_PER_CHAR);
    expect(client.types.filter((type) => type === "audio-start")).toHaveLength(2);
    expect(client.types.at(-1)).toBe("synthesize-stopped");
  });

  it("takes its own voice where none is named, and nothing to say", async () => {
    await using client = new Client(port);
    client.send("synthesize-start", {});
    client.send("synthesize-stop");
    await client.until("synthesize-stopped");
    client.send("synthesize", { text: "Hi." });
    await client.until("audio-stop");
    expect(upstream.requests.at(-1)?.path).toContain(VOICE);
  });

  it("another gateway speaks with its voices", async () => {
    await using other = serviceAt(configOf("wyoming", `wyoming://127.0.0.1:${port}`));
    const text = "Good morning. How are you?";
    const recorder = await asked(other, speech(VOICE, { text, outputFormat: "pcm_24000" }));
    expect(recorder.failure).toBeNull();
    expect(recorder.bytes).toBe(text.length * PCM_BYTES_PER_CHAR);
  });

  it.each([
    [
      "a voice that there is not",
      frameOf("synthesize", { text: "Hi.", voice: { name: "nobody" } }),
      "unknown_voice",
    ],
    ["no text", frameOf("synthesize", { text: 7 }), "invalid_field"],
    ["a text that is too long", frameOf("synthesize", { text: "Well, ".repeat(6000) }), "text_too_long"],
    ["another protocol", Buffer.from("GET / HTTP/1.1\r\n\r\n"), "malformed_json"],
    ["a frame that is too long", Buffer.from('{"type":"a","data_length":100000}\n'), "malformed_json"],
  ])("%s: an error, and the end", async (_, bytes, code) => {
    await using client = new Client(port);
    client.write(bytes.toString("utf8"));
    await until("the end", () => client.isClosed);
    expect(client.data("error")).toMatchObject({ code });
    expect(client.audio.length).toBe(0);
  });

  it("lists and speaks with voices of one's own and of other services", async () => {
    await using engine = await startFakeUpstream(kokoro());
    const [service, anna] = [
      `kokoro:${KOKORO_VOICE}`,
      { name: "anna", upstreamVoices: [`kokoro:${KOKORO_VOICE}`] },
    ];
    const otherPort = await freePort();
    await using _other = await gatewayAt(
      upstream.url,
      // The model is the first upstream's, and no other knows it.
      { voice: "anna", model: "eleven_v3", wyomingPort: otherPort },
      { services: [configOf("kokoro", engine.url)], voices: [anna] },
    );
    await using client = new Client(otherPort);
    client.send("describe");
    await client.until("info");
    const programs = client.data("info")?.tts as Record<string, unknown>[] | undefined;
    const voices = programs?.[0]?.voices as { name: string; languages: string[] }[];
    expect(voices.map(({ name }) => name)).toEqual([
      ...["anna", ...FAKE_VOICES.map(({ voice_id }) => voice_id), service],
    ]);
    expect(voices.at(-1)?.languages).toEqual(["en"]);
    for (const voice of [{ name: "anna" }, { name: service }, undefined]) {
      client.frames.length = 0;
      client.send("synthesize", { text: "Good morning.", voice });
      await until("the end of it", () => client.types.includes("audio-stop") || client.isClosed);
      expect(client.types).not.toContain("error");
      expect(client.audio.length).toBeGreaterThan(24_000);
    }
    expect(engine.requests.filter(({ method }) => method === "POST")).toHaveLength(3);
    client.send("synthesize", { text: "Good morning.", voice: { name: "acme:nobody" } });
    await client.until("error");
    expect(client.data("error")).toMatchObject({ code: "unknown_voice" });
  });

  it("counts its clients, their texts and audio; of errors those that are the gateway's own", async () => {
    const otherPort = await freePort();
    await using other = await gatewayAt(upstream.url, { voice: VOICE, wyomingPort: otherPort });
    const text = "Good morning.";
    await using client = new Client(otherPort);
    client.send("synthesize", { text });
    await client.until("audio-stop");
    const wrong = new Client(otherPort);
    wrong.send("synthesize", { text, voice: { name: "nobody" } });
    await until("the end", () => wrong.isClosed);
    const hasty = new Client(otherPort);
    for (let count = 0; count < 40; count += 1) hasty.send("synthesize", { text });
    await until("the end", () => hasty.isClosed);
    const metrics = await other.metrics();
    const value = (name: string): number =>
      Number(new RegExp(`^${name} (\\d+)$`, "m").exec(metrics)?.[1] ?? Number.NaN);
    expect(value("voicewire_wyoming_connections_opened_total")).toBe(3);
    expect(value("voicewire_wyoming_connections_closed_total")).toBe(2);
    expect(value("voicewire_wyoming_texts_total")).toBe(1);
    expect(value("voicewire_wyoming_audio_bytes_total")).toBeGreaterThanOrEqual(
      text.length * PCM_BYTES_PER_CHAR,
    );
    expect(metrics).toContain('voicewire_refused_total{reason="queue_full"} 1');
    expect(metrics).not.toContain('reason="unknown_voice"');
  });

  it("takes 256 clients, and counts those beyond", async () => {
    const otherPort = await freePort();
    await using other = await gatewayAt(upstream.url, { voice: VOICE, wyomingPort: otherPort });
    const clients = Array.from({ length: 258 }, () => new Client(otherPort));
    await until("two that are cut off", () => clients.filter(({ isClosed }) => isClosed).length === 2);
    expect(await other.metrics()).toContain('voicewire_refused_total{reason="connection_limit"} 2');
    for (const client of clients) await client[Symbol.asyncDispose]();
  });

  it("more texts than may wait are refused", async () => {
    await using client = new Client(port);
    for (let count = 0; count < 40; count += 1) client.send("synthesize", { text: "One more text to say." });
    await until("the end", () => client.isClosed);
    expect(client.data("error")).toMatchObject({ code: "queue_full" });
  });

  it("pieces without the end of a sentence are said up to a word", async () => {
    await using client = new Client(port);
    client.send("synthesize-start", { voice: { name: VOICE } });
    client.send("synthesize-chunk", { text: "word ".repeat(401) });
    await client.until("audio-stop");
    expect(client.audio.length).toBe(5 * 401 * PCM_BYTES_PER_CHAR);
  });

  it("a client that asks and does not read is cut off", async () => {
    await using client = new Client(port);
    client.stopReading();
    const pings = frameOf("ping", { text: "x".repeat(60_000) })
      .toString("utf8")
      .repeat(400);
    client.write(pings);
    // Read on before, it would keep up where the machine is busy.
    const isCut = async (): Promise<boolean> => (await gateway.metrics()).includes('reason="slow_consumer"');
    for (let tries = 0; tries < 200 && !(await isCut()); tries += 1)
      await new Promise((resolve) => setTimeout(resolve, 25));
    client.readOn();
    await until("the end", () => client.isClosed);
    expect(client.types.length).toBeLessThan(400);
  });

  it("a client that goes ends its request upstream", async () => {
    await using slow = await startFakeUpstream((request) =>
      request.method === "GET"
        ? { headers: { "content-type": "application/json" }, body: [JSON.stringify({ voices: FAKE_VOICES })] }
        : { headers: { "content-type": "audio/pcm" }, body: [Buffer.alloc(9601), "stall"] },
    );
    const otherPort = await freePort();
    await using other = await gatewayAt(slow.url, { voice: VOICE, wyomingPort: otherPort });
    const client = new Client(otherPort);
    client.send("synthesize", { text: "A text that takes long." });
    await client.until("audio-chunk");
    expect(client.audio.length % 2).toBe(0);
    await client[Symbol.asyncDispose]();
    await until("the end of the request", () => slow.requests.at(-1)?.abortedAtMs !== null);
    expect(other.state().sessions).toBe(0);
  });

  it("with keys only addresses that are named may come", async () => {
    using keys = new TestKeys({});
    const [closedPort, openPort] = [await freePort(), await freePort()];
    const settings = { voice: VOICE, keysFile: keys.path };
    await using closed = await gatewayAt(upstream.url, { ...settings, wyomingPort: closedPort });
    await using open = await gatewayAt(upstream.url, {
      ...settings,
      wyomingPort: openPort,
      wyomingAllow: "127.0.0.0/8",
    });
    const refused = new Client(closedPort);
    refused.send("describe");
    await until("the end", () => refused.isClosed);
    expect(refused.frames).toEqual([]);
    await using taken = new Client(openPort);
    taken.send("describe");
    await taken.until("info");
    expect([closed, open].every(({ state }) => state().sessions === 0)).toBe(true);
  });
});
