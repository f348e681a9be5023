/** Who may use OpenAI's endpoint on a gateway with keys, and what of a token's limits holds there. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClosableDoor, createDoor } from "../../src/access/door.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { type FakeUpstream, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { LISTENER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { DEFAULTS } from "../helpers/start-gateway.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { startVendorApp, type VendorApp } from "./vendor-rig.ts";

const VOICE = "JBFqnCBsd6RMkjVDRZzb";
const SPEECH = { sessions: ["*"], allow: ["speak"] };

const keys = new TestKeys();
let door: ClosableDoor;
let upstream: FakeUpstream;
let app: VendorApp;

beforeAll(async () => {
  door = createDoor({ ...DEFAULTS, keysFile: keys.path, log: watchedLog, clock: systemClock });
  upstream = await startFakeUpstream();
  app = await startVendorApp(upstream.url, { door });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  door.close();
  keys[Symbol.dispose]();
});

async function speak(authorization: string, body: object = {}) {
  const before = upstream.requests.length;
  const answer = await fetch(`${app.url}/v1/audio/speech`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(authorization === "" ? {} : { authorization }) },
    body: JSON.stringify({ model: "tts-1", input: "Hello.", voice: VOICE, response_format: "pcm", ...body }),
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  const error = answer.ok ? null : (JSON.parse(bytes.toString()) as { error: object }).error;
  return { status: answer.status, error, asked: upstream.requests.at(before) };
}

it.each([
  ["a key", () => keys.key],
  ["a token", () => tokenFor(SPEECH)],
])("speaks for %s", async (_name, credential) => {
  expect(await speak(`Bearer ${credential()}`)).toMatchObject({ status: 200 });
});

it.each<readonly [name: string, authorization: () => string, status: number, code: string]>([
  ["nobody", () => "", 401, "invalid_api_key"],
  ["a wrong key", () => "Bearer sk-wrong", 401, "invalid_api_key"],
  ["an expired token", () => `Bearer ${tokenFor(SPEECH, { lifeSeconds: -90 })}`, 401, "token_expired"],
  [
    "a token whose session_until is over",
    () => `Bearer ${tokenFor({ ...SPEECH, session_until: 1 })}`,
    401,
    "token_expired",
  ],
  ["a listener's token", () => `Bearer ${tokenFor(LISTENER)}`, 403, "forbidden"],
  ["another voice", () => `Bearer ${tokenFor({ ...SPEECH, voices: ["v2"] })}`, 403, "forbidden"],
  ["another model", () => `Bearer ${tokenFor({ ...SPEECH, models: ["eleven_flash*"] })}`, 403, "forbidden"],
  ["another format", () => `Bearer ${tokenFor({ ...SPEECH, formats: ["mp3*"] })}`, 403, "forbidden"],
])(
  "refuses %s in OpenAI's words, and asks the upstream nothing",
  async (_name, authorization, status, code) => {
    const answer = await speak(authorization());
    expect(answer).toMatchObject({ status, error: { type: "invalid_request_error", param: null, code } });
    expect(answer.asked).toBeUndefined();
  },
);

it("refuses what its token has no characters for, as OpenAI does without quota", async () => {
  const answer = await speak(`Bearer ${tokenFor({ ...SPEECH, characters: 3 })}`);
  expect(answer).toMatchObject({
    status: 402,
    error: { type: "insufficient_quota", code: "budget_exhausted" },
  });
  expect(answer.asked).toBeUndefined();
});

it("speaks with what the token sets", async () => {
  const speech = { voice_id: "pinned", model_id: "eleven_flash_v2_5", seed: 7, enable_logging: false };
  const { status, asked } = await speak(`Bearer ${tokenFor({ ...SPEECH, speech })}`, { model: "mine" });
  expect(status).toBe(200);
  expect(asked?.path).toContain("/v1/text-to-speech/pinned");
  expect(asked?.query.get("enable_logging")).toBe("false");
  expect(asked?.json).toMatchObject({ model_id: "eleven_flash_v2_5", seed: 7 });
});
