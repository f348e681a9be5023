/** POST /v1/sound-generation, over HTTP. */
import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OriginRules } from "../../src/access/origin-rules.ts";
import { STREAM_FORMATS } from "../../src/audio/formats.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { FaultBoard } from "../../src/service/faults/board.ts";
import { registerSoundGeneration } from "../../src/service/http/audio/sound-generation.ts";
import type { ServiceContext } from "../../src/service/http/context.ts";
import { createServer } from "../../src/service/http/server.ts";
import { SingleUseTokens } from "../../src/service/http/single-use-tokens.ts";
import { ConcurrencyGate, type Tier } from "../../src/service/http/tiers.ts";
import { openStore, type Store } from "../../src/service/store/store.ts";
import { Webhooks } from "../../src/service/webhooks/webhooks.ts";
import { measures } from "../helpers/measures.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { centroid, onsets, peakHz, rms } from "../unit/service/sound/analysis.ts";
import { decode, loudness } from "./client.ts";
import { temporaryParts } from "./temporary-parts.ts";

const PATH = "/v1/sound-generation";
const KEY = "the-right-key";

let folder: string;
let store: Store;
const closing: (() => Promise<unknown>)[] = [];
let base: string;

/** The service without its voice, which sounds don't need. */
async function start(options: { readonly tier?: Tier; readonly key?: string } = {}): Promise<string> {
  const tier = options.tier ?? "enterprise";
  const context: ServiceContext = {
    neuralVoices: new Map(),
    voices: {
      open: () => {
        throw new Error("A sound is not spoken");
      },
    },
    key: options.key,
    origins: new OriginRules({ host: "127.0.0.1" }),
    tokens: new SingleUseTokens(systemClock),
    tier,
    gate: new ConcurrencyGate(tier),
    faults: new FaultBoard(),
    store,
    ...temporaryParts(),
    webhooks: new Webhooks(store.database, { log: watchedLog, allowPrivate: false }),
    log: watchedLog,
  };
  const app = createServer(context, watchedLog);
  if (!app.hasRoute({ method: "POST", url: PATH })) registerSoundGeneration(app, context);
  await app.listen({ host: "127.0.0.1", port: 0 });
  closing.push(() => app.close());
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  store = await openStore({ folder });
  base = await start();
});
afterAll(async () => {
  await Promise.all(closing.map((close) => close()));
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

function post(
  body: unknown,
  options: { query?: string; at?: string; headers?: Record<string, string> } = {},
) {
  return fetch(`${options.at ?? base}${PATH}${options.query ?? ""}`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: "http://localhost:1", ...options.headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

async function bytesOf(answer: Response): Promise<Buffer> {
  return Buffer.from(await answer.arrayBuffer());
}

describe("a sound", () => {
  it.each(STREAM_FORMATS)("in %s is as long as asked, is heard, and is called what it is", async (format) => {
    measures("POST /v1/sound-generation", "output_format", "codec, rate and length of the audio, by ffmpeg");
    const body = { text: "two knocks", duration_seconds: 1, prompt_influence: 1 };
    const answer = await post(body, { query: `?output_format=${format}` });
    expect(answer.status).toBe(200);
    const types = {
      mp3: "audio/mpeg",
      pcm: "audio/pcm",
      ulaw: "audio/basic",
      alaw: "audio/x-alaw-basic",
      opus: "audio/opus",
    };
    expect(answer.headers.get("content-type")).toBe(types[format.split("_")[0] as keyof typeof types]);
    const bytes = await bytesOf(answer);
    const pcm = decode(bytes, format);
    const seconds = pcm.length / 16_000;
    if (/^(?:pcm|ulaw|alaw)/.test(format)) {
      const rate = Number(format.split("_")[1]);
      expect(bytes.length).toBe(format.startsWith("pcm") ? rate * 2 : rate);
    } else expect(Math.abs(seconds - 1)).toBeLessThan(0.11);
    expect(loudness(pcm)).toBeGreaterThan(300);
  });

  it("without a wish is MPEG of its natural length, for 100 characters", async () => {
    const answer = await post({ text: "glass breaking" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("audio/mpeg");
    expect(answer.headers.get("character-cost")).toBe("100");
    expect(answer.headers.get("request-id")).toMatch(/^[0-9a-f]{20}$/);
    expect(answer.headers.get("x-trace-id")).toMatch(/^[0-9a-f]{32}$/);
    expect(answer.headers.get("access-control-allow-origin")).toBe("http://localhost:1");
    expect(answer.headers.get("access-control-expose-headers")).toContain("character-cost");
    expect(answer.headers.get("history-item-id")).toBeNull();
    const seconds = decode(await bytesOf(answer), "mp3_44100_128").length / 16_000;
    expect(seconds).toBeGreaterThan(0.5);
    expect(seconds).toBeLessThan(10.2);
  });

  it("with a duration costs 20 characters a second, rounded up", async () => {
    const answer = await post({ text: "beep", duration_seconds: 0.51 });
    await answer.arrayBuffer();
    expect(answer.headers.get("character-cost")).toBe("11");
  });

  it("a sound of the same prompt is the same, and one of another prompt differs; null stands for what is left out", async () => {
    const make = async (body: object) =>
      (await bytesOf(await post(body, { query: "?output_format=pcm_16000" }))).toString("base64");
    const first = await make({ text: "a creaking door", duration_seconds: 1 });
    const nulls = { loop: null, prompt_influence: null, model_id: null };
    expect(await make({ text: "a creaking door", duration_seconds: 1, ...nulls })).toBe(first);
    expect(await make({ text: "a creaking door", duration_seconds: 1, prompt_influence: 0.3 })).toBe(first);
    expect(await make({ text: "a creaking gate", duration_seconds: 1 })).not.toBe(first);
    expect(await make({ text: "a creaking door", duration_seconds: 1, prompt_influence: 0.9 })).not.toBe(
      first,
    );
    expect(await make({ text: "a creaking door", duration_seconds: 1, loop: true })).not.toBe(first);
  });

  it("is not in the history", async () => {
    await (await post({ text: "click" })).arrayBuffer();
    expect(await (await fetch(`${base}/v1/history`)).json()).toMatchObject({ history: [] });
  });

  it("comes before it is whole", async () => {
    const answer = await post({ text: "rain", duration_seconds: 30 }, { query: "?output_format=pcm_44100" });
    expect(answer.headers.get("content-length")).toBeNull();
    let pieces = 0;
    let size = 0;
    for await (const piece of answer.body ?? []) {
      pieces += 1;
      size += (piece as Uint8Array).length;
    }
    expect(size).toBe(30 * 44_100 * 2);
    expect(pieces).toBeGreaterThan(5);
  });
});

describe("each parameter is heard", () => {
  /** At 44.1 kHz. */
  const hear = async (body: object): Promise<Int16Array> => {
    const answer = await post(body, { query: "?output_format=pcm_44100" });
    expect(answer.status).toBe(200);
    return new Int16Array((await answer.arrayBuffer()).slice(0));
  };

  it("text: what is heard is what it names", async () => {
    measures("POST /v1/sound-generation", "text", "the pitch, and how often it knocks");
    const [bell, flute] = [await hear({ text: "a deep bell" }), await hear({ text: "one high flute note" })];
    expect(peakHz(flute)).toBeGreaterThan(800);
    expect(peakHz(bell)).toBeLessThan(700);
    expect(onsets(await hear({ text: "three knocks" }))).toHaveLength(3);
  });

  it.each([0.5, 1.2345, 22])("duration_seconds: %d s to the sample", async (seconds) => {
    measures("POST /v1/sound-generation", "duration_seconds", "the length to the sample");
    const sound = await hear({ text: "rain", duration_seconds: seconds });
    expect(sound.length).toBe(Math.round(seconds * 44_100));
    // It rains up to the end.
    expect(rms(sound, sound.length - 4410)).toBeGreaterThan(rms(sound) / 3);
  });

  it("prompt_influence: at 1 a clock ticks evenly in its own pitch, at 0 neither", async () => {
    measures("POST /v1/sound-generation", "prompt_influence", "how evenly a clock ticks, and its pitch");
    const ticks = async (influence: number) => {
      const sound = await hear({ text: "clock", duration_seconds: 6, prompt_influence: influence });
      const found = onsets(sound, 0.12);
      const gaps = found.slice(1).map((at, index) => at - (found[index] ?? 0));
      return { spread: Math.max(...gaps) - Math.min(...gaps), colour: centroid(sound) };
    };
    const [strict, free] = [await ticks(1), await ticks(0)];
    expect(strict.spread).toBeLessThan(0.02);
    expect(free.spread).toBeGreaterThan(0.05);
    expect(Math.abs(free.colour / strict.colour - 1)).toBeGreaterThan(0.1);
  });

  it("loop: the end leads into the beginning without a fade and without a step", async () => {
    measures("POST /v1/sound-generation", "loop", "the level at both edges, and no step between them");
    const edge = (sound: Int16Array) => rms(sound, 0, 40) + rms(sound, sound.length - 40);
    const [once, loop] = [false, true].map((isLooped) =>
      hear({ text: "engine", duration_seconds: 2, loop: isLooped, model_id: "eleven_text_to_sound_v2" }),
    );
    const [faded, joined] = [await (once as Promise<Int16Array>), await (loop as Promise<Int16Array>)];
    expect(joined.length).toBe(faded.length);
    expect(edge(joined)).toBeGreaterThan(edge(faded) * 2);
    const step = (at: number) => Math.abs((joined[at] ?? 0) - (joined.at(at - 1) ?? 0));
    const steps = Array.from(joined, (_, at) => step(at)).toSorted((a, b) => b - a);
    expect(step(0)).toBeLessThan(steps[10] ?? 0);
  });

  it("model_id: eleven_text_to_sound_v2 and none other", async () => {
    measures("POST /v1/sound-generation", "model_id", "any but the one is refused");
    const sounds = [{}, { model_id: "eleven_text_to_sound_v2" }].map((more) =>
      hear({ text: "beep", ...more }),
    );
    expect((await sounds[0])?.length).toBe((await sounds[1])?.length);
    expect((await post({ text: "beep", model_id: "eleven_multilingual_v2" })).status).toBe(400);
  });

  it("output_format: a rate of 8000 Hz has nothing above 4 kHz", async () => {
    const answer = await post({ text: "cymbal" }, { query: "?output_format=mp3_44100_128" });
    const high = decode(await bytesOf(answer), "mp3_44100_128");
    const narrow = await post({ text: "cymbal" }, { query: "?output_format=ulaw_8000" });
    const low = decode(await bytesOf(narrow), "ulaw_8000");
    expect(loudness(low)).toBeLessThan(loudness(high) * 0.8);
  });
});

describe("a prompt with words that are not known", () => {
  it("is made of the others; x-not-understood names them", async () => {
    const answer = await post({ text: "Rain on a roof, a dog and a gramophone 🎺", duration_seconds: 0.5 });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-not-understood")).toBe(`roof, gramophone, ${encodeURIComponent("🎺")}`);
    expect(answer.headers.get("access-control-expose-headers")).toContain("x-not-understood");
    const foreign = await post({ text: "perro en el jardín", duration_seconds: 0.5 });
    expect(decodeURIComponent(foreign.headers.get("x-not-understood") ?? "")).toBe("jardín");
    await Promise.all([answer.arrayBuffer(), foreign.arrayBuffer()]);
  });

  it("names a length that duration_seconds overrides", async () => {
    const named = async (body: object) => {
      const answer = await post(body);
      await answer.arrayBuffer();
      return answer.headers.get("x-not-understood");
    };
    expect(await named({ text: "a long rain", duration_seconds: 0.5 })).toBe("long");
    expect(await named({ text: "short wind", duration_seconds: 0.5 })).toBe("short");
    expect(await named({ text: "a long rain" })).toBeNull();
    expect(await named({ text: "a long bell", duration_seconds: 0.5 })).toBeNull();
  });

  it("has no such header where each word counted", async () => {
    const answer = await post({
      text: "the sound of heavy rain and then three loud knocks",
      duration_seconds: 0.5,
    });
    expect(answer.headers.get("x-not-understood")).toBeNull();
    await answer.arrayBuffer();
  });

  it("is refused where no sound is known, and costs nothing", async () => {
    const before = await charactersUsed();
    for (const text of ["a gramophone", "loud", "no rain", "🎺", "دولاب"]) {
      const answer = await post({ text });
      expect({ text, status: answer.status }).toEqual({ text, status: 400 });
      expect(await answer.json()).toMatchObject({ detail: { code: "prompt_not_understood", param: "text" } });
    }
    const answer = await post({ text: "a gramophone" });
    expect(JSON.stringify(await answer.json())).toContain("'gramophone'");
    expect(await charactersUsed()).toBe(before);
  });

  it("is named in a header of bounded length", async () => {
    const text = `bell ${"㍿".repeat(8)} ${Array.from({ length: 40 }, (_, at) => `w${at}ord`).join(" ")} ${"ж".repeat(120)}`;
    const answer = await post({ text, duration_seconds: 0.5 });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-not-understood")?.split(", ")).toHaveLength(16);
    await answer.arrayBuffer();
  });
});

/** Of the account. */
async function charactersUsed(): Promise<number> {
  const answer = await fetch(`${base}/v1/user/subscription`);
  return ((await answer.json()) as { character_count: number }).character_count;
}

describe("the account", () => {
  it.each([
    [{ text: "beep" }, 100],
    [{ text: "beep", duration_seconds: 2.5 }, 50],
  ])("is charged what character-cost says: %j", async (body, cost) => {
    const before = await charactersUsed();
    const answer = await post(body);
    await answer.arrayBuffer();
    expect(answer.headers.get("character-cost")).toBe(String(cost));
    expect(await charactersUsed()).toBe(before + cost);
  });

  it("enable_logging=false: nothing is counted; for enterprise customers only", async () => {
    measures("POST /v1/sound-generation", "enable_logging", "nothing counted; 403 below the plan enterprise");
    const ask = (url: string) =>
      fetch(`${url}${PATH}?enable_logging=false`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ text: "beep" }),
      });
    const before = await charactersUsed();
    const answer = await ask(base);
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(1000);
    expect(await charactersUsed()).toBe(before);
    const refused = await ask(await start({ tier: "business" }));
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ detail: { param: "enable_logging" } });
  });

  it("is not charged for a sound that was given up", async () => {
    const before = await charactersUsed();
    const given = new AbortController();
    const rain = { text: "rain", duration_seconds: 30 };
    const answer = await fetch(`${base}${PATH}?output_format=pcm_44100`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(rain),
      signal: given.signal,
    });
    expect(answer.status).toBe(200);
    given.abort();
    // Another one, so that the service has seen the end of the first.
    await (await post({ text: "beep", duration_seconds: 1 })).arrayBuffer();
    expect(await charactersUsed()).toBe(before + 20);
  });
});

describe("what is wrong", () => {
  const field = (name: string, type: string, msg: string, input: unknown, ctx?: object) => [
    { type, loc: ["body", name], msg, input, ...(ctx === undefined ? {} : { ctx }) },
  ];

  it.each([
    ["no text", {}, field("text", "missing", "Field required", null)],
    ["text of another type", { text: 4 }, field("text", "string_type", "Input should be a valid string", 4)],
    [
      "too short",
      { text: "x", duration_seconds: 0.4 },
      field("duration_seconds", "greater_than_equal", "Input should be greater than or equal to 0.5", 0.4, {
        ge: 0.5,
      }),
    ],
    [
      "too long",
      { text: "x", duration_seconds: 30.5 },
      field("duration_seconds", "less_than_equal", "Input should be less than or equal to 30", 30.5, {
        le: 30,
      }),
    ],
    [
      "no number",
      { text: "x", duration_seconds: "long" },
      field(
        "duration_seconds",
        "float_parsing",
        "Input should be a valid number, unable to parse string as a number",
        "long",
      ),
    ],
    [
      "influence over one",
      { text: "x", prompt_influence: 1.1 },
      field("prompt_influence", "less_than_equal", "Input should be less than or equal to 1", 1.1, { le: 1 }),
    ],
    [
      "loop that is no boolean",
      { text: "x", loop: "maybe" },
      field("loop", "bool_parsing", "Input should be a valid boolean, unable to interpret input", "maybe"),
    ],
    [
      "model of another type",
      { text: "x", model_id: [] },
      field("model_id", "string_type", "Input should be a valid string", []),
    ],
  ])("%s: 422 in pydantic's words", async (_name, body, detail) => {
    const answer = await post(body);
    expect({ status: answer.status, body: await answer.json() }).toEqual({ status: 422, body: { detail } });
  });

  it("a body that is no object, or no JSON: 422", async () => {
    const list = await post([1]);
    expect(list.status).toBe(422);
    const { detail } = (await list.json()) as { detail: { loc: string[] }[] };
    expect(detail.map(({ loc }) => loc[1])).toEqual([
      "text",
      "loop",
      "duration_seconds",
      "prompt_influence",
      "model_id",
    ]);
    const broken = await post('{"text": ');
    expect(broken.status).toBe(422);
    expect(await broken.json()).toMatchObject({ detail: [{ type: "json_invalid" }] });
  });

  it.each([
    ["empty text", { text: " " }, "", 400, { code: "empty_text", param: "text" }],
    ["451 characters", { text: "a".repeat(451) }, "", 400, { code: "text_too_long", param: "text" }],
    [
      "a model that is none",
      { text: "x", model_id: "no_such" },
      "",
      400,
      { code: "unsupported_model", status: "model_not_found", param: "model_id" },
    ],
    [
      "a model that speaks",
      { text: "x", model_id: "eleven_v3" },
      "",
      400,
      { code: "unsupported_model", param: "model_id" },
    ],
    [
      "a loop of another model",
      { text: "x", loop: true, model_id: "eleven_v3" },
      "",
      400,
      { code: "unsupported_model", param: "loop" },
    ],
    [
      "a format of whole files",
      { text: "x" },
      "?output_format=wav_44100",
      400,
      { code: "invalid_output_format", param: "output_format" },
    ],
  ])("%s", async (_name, body, query, status, detail) => {
    const answer = await post(body, { query });
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({ status, body: { detail } });
  });

  it("counts code points: 450 that take two units each are not too many", async () => {
    const answer = await post({ text: `beep ${"😀".repeat(445)}`, duration_seconds: 0.5 });
    await answer.arrayBuffer();
    expect(answer.status).toBe(200);
  });

  it("wants the key after the shape, and the plan after the key", async () => {
    const locked = await start({ key: KEY, tier: "free" });
    expect((await post({ duration_seconds: 99 }, { at: locked })).status).toBe(422);
    expect((await post({ text: "x" }, { at: locked })).status).toBe(401);
    const headers = { "xi-api-key": KEY };
    const query = "?output_format=pcm_44100";
    const refused = await post({ text: "x" }, { at: locked, headers, query });
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ detail: { code: "subscription_required" } });
    const made = await post({ text: "beep", duration_seconds: 0.5 }, { at: locked, headers });
    await made.arrayBuffer();
    expect(made.status).toBe(200);
  });
});

describe("many at once", () => {
  /** Sends it; the answer's head, or null where the connection ended before. */
  function open(at: string, body: object) {
    const sent = request(`${at}${PATH}?output_format=pcm_44100`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      agent: false,
    });
    const head = new Promise<IncomingMessage | null>((resolve) => {
      sent.on("response", resolve).on("error", () => resolve(null));
    });
    sent.end(JSON.stringify(body));
    return { head, leave: () => sent.destroy() };
  }

  it("are refused beyond the line with 429, and clients that leave give their places back", async () => {
    const at = await start();
    const rain = { text: "rain and wind and thunder", duration_seconds: 30 };
    const all = Array.from({ length: 4 + 64 + 8 }, () => open(at, rain));
    // The first to be answered are those that are refused at once.
    const refused = await Promise.race(all.map(async ({ head }) => (await head)?.statusCode));
    expect(refused).toBe(429);
    for (const one of all) one.leave();
    await Promise.all(all.map(({ head }) => head));
    const next = await post({ text: "beep", duration_seconds: 0.5 }, { at });
    expect(next.status).toBe(200);
    await next.arrayBuffer();
  });
});
