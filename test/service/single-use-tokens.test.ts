/** Single-use tokens over the interface: what one opens, once. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { type Answer, type Client, startClient, VOICE } from "./client.ts";

const KEY = "the-right-key";
const SPEECH = `/v1/text-to-speech/${VOICE}`;
const DIALOGUE = "/v1/text-to-dialogue";
const TEXT = { text: "Hi." };
const LINES = { inputs: [{ text: "Hi.", voice_id: VOICE }] };

let locked: Client;
let open: Client;
beforeAll(async () => {
  [locked, open] = await Promise.all([startClient({ key: KEY }), startClient()]);
});
afterAll(() => Promise.all([locked[Symbol.asyncDispose](), open[Symbol.asyncDispose]()]));

async function tokenOf(client: Client): Promise<string> {
  const path = "/v1/single-use-token/tts_websocket";
  const { body } = await client.post(path, undefined, { "xi-api-key": KEY });
  return JSON.parse(body.toString()).token;
}

function expectRefused({ status, body }: Answer, reason: string): void {
  expect([status, JSON.parse(body.toString())]).toMatchObject([
    401,
    { detail: { type: "authentication_error", code: "unauthorized", status: reason } },
  ]);
}

it.each([
  [SPEECH, TEXT],
  [`${SPEECH}/stream`, TEXT],
  [`${SPEECH}/with-timestamps`, TEXT],
  [`${SPEECH}/stream/with-timestamps`, TEXT],
  [DIALOGUE, LINES],
  [`${DIALOGUE}/stream`, LINES],
  [`${DIALOGUE}/with-timestamps`, LINES],
  [`${DIALOGUE}/stream/with-timestamps`, LINES],
])("a token opens %s once", async (path, body) => {
  measures("POST /v1/text-to-speech/{voice_id}", "single_use_token", "one answer without a key");
  measures("POST /v1/text-to-dialogue", "single_use_token", "one answer without a key");
  const withToken = `${path}?single_use_token=${await tokenOf(locked)}`;
  // What is not of the shape is refused before the token is looked at.
  expect((await locked.post(withToken, {})).status).toBe(422);
  const said = await locked.post(withToken, body);
  expect(said.status).toBe(200);
  expect(said.body.length).toBeGreaterThan(1000);
  expectRefused(await locked.post(withToken, body), "invalid_single_use_token");
});

it("a token opens one of two requests at once", async () => {
  const withToken = `${SPEECH}?single_use_token=${await tokenOf(locked)}`;
  const answers = await Promise.all([locked.post(withToken, TEXT), locked.post(withToken, TEXT)]);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401]);
});

it("a token opens nothing else, and none is made with it", async () => {
  const query = `?single_use_token=${await tokenOf(locked)}`;
  for (const path of ["/v1/voices", "/v1/user", "/v1/history"]) {
    expectRefused(await locked.get(path + query), "needs_authorization");
  }
  expectRefused(
    await locked.post(`/v1/single-use-token/tts_websocket${query}`, undefined),
    "needs_authorization",
  );
  expectRefused(await locked.post(`/v1/sound-generation${query}`, { text: "rain" }), "needs_authorization");
  // It was not used up.
  expect((await locked.post(SPEECH + query, TEXT)).status).toBe(200);
});

it("a key that comes as well is what counts, and leaves the token unused", async () => {
  const withToken = `${SPEECH}?single_use_token=${await tokenOf(locked)}`;
  expectRefused(await locked.post(withToken, TEXT, { "xi-api-key": "wrong" }), "invalid_api_key");
  expect((await locked.post(withToken, TEXT, { "xi-api-key": KEY })).status).toBe(200);
  expect((await locked.post(withToken, TEXT)).status).toBe(200);
});

it("a token has to be valid, also where no key is asked for", async () => {
  expectRefused(
    await open.post(`${SPEECH}?single_use_token=sutkn_made_up`, TEXT),
    "invalid_single_use_token",
  );
  const withToken = `${SPEECH}?single_use_token=${await tokenOf(open)}`;
  const answers = [await open.post(withToken, TEXT), await open.post(withToken, TEXT)];
  expect(answers.map(({ status }) => status)).toEqual([200, 401]);
  expect((await open.post(SPEECH, TEXT)).status).toBe(200);
});
