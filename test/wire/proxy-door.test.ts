/** What of the vendor's interface is passed on for a key or a token, and what of a token's limits holds there. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ClosableDoor, createDoor } from "../../src/access/door.ts";
import { PROXY_PARTS } from "../../src/access/grants.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { type FakeUpstream, jsonAnswer, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { LISTENER, SIGNING, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { DEFAULTS } from "../helpers/start-gateway.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { startVendorApp, type VendorApp } from "./vendor-rig.ts";

const PROXY = { sessions: ["*"], allow: ["proxy"] };
const EVERY_PART = [...PROXY_PARTS, "passthrough:GET /v1/*"];
const keys = new TestKeys({
  keys: [{ ...SIGNING, id: "every-part", grants: { ...PROXY, proxy: EVERY_PART } }],
});
let door: ClosableDoor;
let upstream: FakeUpstream;
let app: VendorApp;

beforeAll(async () => {
  door = createDoor({ ...DEFAULTS, keysFile: keys.path, log: watchedLog, clock: systemClock });
  upstream = await startFakeUpstream(() => jsonAnswer(200, {}, { "character-cost": "2" }));
  app = await startVendorApp(upstream.url, { door, passedPaths: "GET /v1/dubbing/{id}" });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  door.close();
  keys[Symbol.dispose]();
});

const TTS = "/v1/text-to-speech/good";

async function ask(token: string, path: string, init: RequestInit = {}, { url } = app) {
  const before = upstream.requests.length;
  const headers = { "xi-api-key": token, ...init.headers };
  const answer = await fetch(`${url}${path}`, { ...init, headers });
  const body = (await answer.json()) as { error?: { code: string; message: string } };
  const asked = upstream.requests.at(before);
  return { status: answer.status, message: body.error?.message ?? "", code: body.error?.code, asked };
}

function json(body: object): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

function form(): RequestInit {
  const data = new FormData();
  data.set("model_id", "any");
  return { method: "POST", body: data };
}

describe("the proxy of a gateway with keys", () => {
  it.each([
    ["GET", "/v1/voices", "voices.read"],
    ["GET", "/v1/models", "models.read"],
    ["GET", "/openapi.json", "models.read"],
    ["POST", "/v1/sound-generation", "speech"],
  ])("passes %s %s on, which is %s, for who names no part", async (method, path) => {
    const init = method === "POST" ? json({ text: "rain" }) : { method };
    const { status, asked } = await ask(tokenFor(PROXY), path, init);
    expect(status).toBe(200);
    expect(asked?.headers["xi-api-key"]).toBe("gateway-key");
  });

  it.each([
    ["DELETE", "/v1/voices/v", "voices.write"],
    ["GET", "/v1/history", "history.read"],
    ["DELETE", "/v1/history/h", "history.write"],
    ["GET", "/v1/pronunciation-dictionaries", "dictionaries"],
    ["POST", "/v1/workspace/webhooks", "webhooks"],
    ["GET", "/v1/user", "account"],
    ["GET", "/v1/dubbing/7", "passthrough:GET /v1/dubbing/{id}"],
  ])("passes %s %s on for who names %s alone", async (method, path, part) => {
    // Of the last one the key that signed it does not name the part.
    for (const token of [keys.key, tokenFor(PROXY), tokenFor({ ...PROXY, proxy: [part] })]) {
      const { status, message, asked } = await ask(token, path, { method });
      expect(status).toBe(403);
      expect(message).toContain(part);
      expect(asked).toBeUndefined();
    }
    const named = tokenFor({ ...PROXY, proxy: [part] }, { kid: "every-part" });
    expect((await ask(named, path, { method })).status).toBe(200);
    expect((await ask(named, "/v1/models")).status).toBe(403);
  });

  it("passes nothing on without the grant, and nothing that is not listed with it", async () => {
    expect(await ask(tokenFor(LISTENER), "/v1/models")).toMatchObject({ status: 403, code: "forbidden" });
    expect(await ask(tokenFor(PROXY), "/v1/convai/agents")).toMatchObject({ status: 404, code: "not_found" });
  });

  it("refuses a token that names an unknown part", async () => {
    expect((await ask(tokenFor({ ...PROXY, proxy: ["everything"] }), "/v1/models")).status).toBe(401);
  });

  it.each(["token", "single_use_token", "%74oken", "authorization"])(
    "keeps what stands in the query as %s to itself",
    async (name) => {
      const token = tokenFor({ ...PROXY, once: true }, { claims: { jti: name } });
      const answer = await fetch(`${app.url}/v1/voices?${name}=${token}&page_size=5`);
      expect(answer.status).toBe(200);
      expect([...(upstream.requests.at(-1)?.query ?? [])]).toEqual([["page_size", "5"]]);
    },
  );

  it("keeps keys to itself where it has none for the upstream", async () => {
    await using keyless = await startVendorApp(upstream.url, { door, upstreamKey: "" });
    for (const headers of [{ "xi-api-key": keys.key }, { authorization: `Bearer ${keys.key}` }]) {
      expect((await fetch(`${keyless.url}/v1/voices`, { headers })).status).toBe(200);
      const sent = upstream.requests.at(-1)?.headers;
      expect([sent?.["xi-api-key"], sent?.authorization]).toEqual([undefined, undefined]);
    }
  });
});

describe("proxied speech of a token", () => {
  it("is of the voices that it names", async () => {
    const token = tokenFor({ ...PROXY, voices: ["good*"] });
    expect((await ask(token, TTS, json({ text: "Hi" }))).status).toBe(200);
    expect((await ask(token, "/v1/text-to-speech/%67ood/stream", json({ text: "Hi" }))).status).toBe(200);
    expect((await ask(token, "/v1/text-to-speech/bad", json({ text: "Hi" }))).status).toBe(403);
    expect((await ask(token, "/v1/speech-to-speech/bad", form())).status).toBe(403);
    expect((await ask(token, "/v1/speech-to-speech/good", form())).status).toBe(200);
    const lines = (voice_id: unknown) => json({ inputs: [{ text: "Hi", voice_id }] });
    expect((await ask(token, "/v1/text-to-dialogue", lines("good"))).status).toBe(200);
    expect((await ask(token, "/v1/text-to-dialogue", lines("bad"))).status).toBe(403);
    expect((await ask(token, "/v1/text-to-dialogue", lines(7))).status).toBe(400);
  });

  it("is of the models that it names, also where the request names none", async () => {
    const token = tokenFor({ ...PROXY, models: ["eleven_flash*"] });
    expect((await ask(token, TTS, json({ text: "Hi", model_id: "eleven_flash_v2" }))).status).toBe(200);
    expect((await ask(token, TTS, json({ text: "Hi", model_id: "eleven_v3" }))).status).toBe(403);
    expect((await ask(token, TTS, json({ text: "Hi" }))).status).toBe(403);
    expect((await ask(token, "/v1/sound-generation", json({ text: "Rain" }))).status).toBe(403);
    expect((await ask(token, "/v1/speech-to-speech/good", form())).status).toBe(403);
    expect((await ask(token, "/v1/audio-isolation", form())).status).toBe(200);
  });

  it("is of the formats that it names, also where the request names none or two", async () => {
    const token = tokenFor({ ...PROXY, formats: ["ulaw_8000"] });
    expect((await ask(token, `${TTS}?output_format=ulaw_8000`, json({ text: "Hi" }))).status).toBe(200);
    expect((await ask(token, TTS, json({ text: "Hi" }))).status).toBe(403);
    const two = `${TTS}?output_format=ulaw_8000&output_format=pcm_44100`;
    expect((await ask(token, two, json({ text: "Hi" }))).status).toBe(403);
  });

  it("is what the token sets", async () => {
    const speech = { voice_id: "pinned", model_id: "eleven_flash_v2_5", seed: 7, enable_logging: false };
    const token = tokenFor({ ...PROXY, speech });
    const said = await ask(
      token,
      `${TTS}/stream?enable_logging=true`,
      json({ text: "Hi", model_id: "mine" }),
    );
    expect(said.asked?.path).toBe("/v1/text-to-speech/pinned/stream");
    expect(said.asked?.query.getAll("enable_logging")).toEqual(["false"]);
    expect(said.asked?.json).toEqual({ text: "Hi", model_id: "eleven_flash_v2_5", seed: 7 });
    const lines = json({ inputs: [{ text: "Hi", voice_id: "mine" }] });
    const dialogue = await ask(token, "/v1/text-to-dialogue", lines);
    expect(dialogue.asked?.json).toMatchObject({ inputs: [{ text: "Hi", voice_id: "pinned" }] });
    const sound = await ask(token, "/v1/sound-generation", json({ text: "Rain" }));
    expect(sound.asked?.json).toEqual({ text: "Rain" });
  });

  it("has a body that can be checked", async () => {
    const token = tokenFor({ ...PROXY, voices: ["good"] });
    const text = { ...json({ text: "Hi" }), headers: { "content-type": "text/plain" } };
    expect((await ask(token, TTS, text)).status).toBe(403);
    const broken = { ...json({}), body: "{" };
    expect((await ask(token, TTS, broken)).status).toBe(400);
    // What is checked goes upstream: of two fields of a name the last one counts everywhere.
    const twice = { ...json({}), body: '{"text": "Hi", "model_id": "a", "model_id": "b"}' };
    expect((await ask(token, TTS, twice)).asked?.text).toBe('{"text":"Hi","model_id":"b"}');
  });

  it("stands in the audit log: what was refused, and what was billed to whom", async () => {
    const audit: object[] = [];
    const keep = (fields: object): void => {
      audit.push(fields);
    };
    const log = { ...watchedLog, info: keep, warn: keep };
    const own = createDoor({ ...DEFAULTS, keysFile: keys.path, log, clock: systemClock });
    await using logging = await startVendorApp(upstream.url, { door: own });
    const token = tokenFor({ ...PROXY, voices: ["good"] }, { claims: { jti: "id-1" } });
    await ask(token, TTS, json({ text: "Secret words" }), logging);
    await ask(token, "/v1/text-to-speech/bad", json({ text: "Secret words" }), logging);
    await ask(
      token,
      "/v1/text-to-dialogue",
      json({ inputs: [{ text: "Secret words", voice_id: "bad" }] }),
      logging,
    );
    const refused = { audit: "refused", reason: "forbidden", surface: "proxy", subject: "ann" };
    const told = audit.filter((line) => !("audit" in line && line.audit === "admitted"));
    expect(told).toMatchObject([
      { audit: "spent", characters: 2, key: "app", subject: "ann", token: "id-1" },
      refused,
      refused,
    ]);
    expect(JSON.stringify(audit)).not.toContain("Secret");
    own.close();
  });
});
