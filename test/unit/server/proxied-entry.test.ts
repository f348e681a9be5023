/** What the ledger says of requests that are passed on. */
import { expect, test } from "vitest";
import { type ProxiedCost, proxiedEntry } from "../../../src/server/proxy/proxied-entry.ts";

const JSON_BODY = JSON.stringify({ text: "Hello 😀", model_id: "m" });
const DONE = { status: 200, cost: 3, requestId: "r" };

function entryOf(cost: Partial<ProxiedCost>, passed: { path?: string; isSpeech?: boolean } = {}) {
  const payer = { key: "app", tenant: "acme" };
  return proxiedEntry(
    { json: JSON_BODY, answer: DONE, error: null, ...cost },
    {
      path: "/v1/text-to-speech/voice/stream?output_format=mp3_44100_128",
      isSpeech: true,
      subject: { id: "key app", maxPlaces: 1, payer },
      ...passed,
    },
  );
}

test("it has the upstream's cost, the text's code points, and who pays", () => {
  expect(entryOf({})).toMatchObject({
    ...{ tenant: "acme", key: "app", model: "m", voice: "voice", request_id: "r" },
    ...{ chars_sent: 7, chars_billed: 3, source: "header", outcome: "done" },
  });
});

test("what names no model has none", () => {
  expect(entryOf({ json: '{"text":"a"}' })).toMatchObject({ model: "", chars_sent: 1 });
});

test("an upload whose cost is not said is of unknown cost, and not of none", () => {
  const answer = { ...DONE, cost: null };
  expect(entryOf({ json: null, answer })).toMatchObject({
    chars_sent: null,
    chars_billed: null,
    source: "counted",
  });
});

test("a refused one costs nothing; one whose client left may", () => {
  const refused = { status: 422, cost: null, requestId: null };
  expect(entryOf({ answer: refused })).toMatchObject({
    chars_billed: 0,
    source: "refused",
    outcome: "http_422",
  });
  expect(entryOf({ answer: null, error: "client_left" })).toMatchObject({
    chars_sent: 7,
    chars_billed: null,
    outcome: "aborted",
  });
});

test("what has not left has no line, and neither has what costs nothing", () => {
  expect(entryOf({ answer: null, error: "upstream_busy" })).toBeNull();
  const models = { path: "/v1/models", isSpeech: false };
  expect(entryOf({ answer: { ...DONE, cost: null } }, models)).toBeNull();
  expect(entryOf({}, { path: "/v1/music", isSpeech: false })).toMatchObject({ chars_billed: 3, voice: "" });
});
