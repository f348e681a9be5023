/** The voices that services list: each in its own words, and what a service that lists none, or fails, costs. */
import { describe, expect, it } from "vitest";
import type { Clock } from "../../../src/kit/clock.ts";
import { systemClock } from "../../../src/kit/clock.ts";
import type { ServiceVoice } from "../../../src/upstream/services/listed-voices.ts";
import { MAX_LISTED_VOICES } from "../../../src/upstream/services/listed-voices.ts";
import { ServiceVoices } from "../../../src/upstream/services/service-voices.ts";
import type { FakeAnswer } from "../../helpers/fake-answer.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { htmlPage, jsonError } from "../../kit/vendors/timed-steps.ts";
import { startWyoming, WYOMING_VOICE } from "../../kit/vendors/wyoming.ts";
import { configOf, serviceAt } from "./rig.ts";

const KEY = "key-of-sixteen-and-more";

/** As each service writes its list, and what is read of it. */
const LISTS: readonly [service: string, path: string, body: unknown, voices: readonly ServiceVoice[]][] = [
  [
    "cartesia",
    "/voices?limit=100",
    { data: [{ id: "a0e9", name: "Katie", language: "en", gender: "feminine" }], has_more: false },
    [{ id: "a0e9", name: "Katie", labels: { language: "en", gender: "feminine" } }],
  ],
  [
    "hume",
    "/v0/tts/voices?provider=HUME_AI&page_size=100",
    { page_number: 0, voices_page: [{ id: "9e06", name: "Ava Song", provider: "HUME_AI" }] },
    [{ id: "9e06", name: "Ava Song", labels: {} }],
  ],
  [
    "deepgram",
    "/v1/models",
    {
      stt: [{ canonical_name: "nova-3" }],
      tts: [
        {
          name: "thalia",
          canonical_name: "aura-2-thalia-en",
          languages: ["en-US", "en"],
          metadata: { accent: "American" },
        },
      ],
    },
    [{ id: "aura-2-thalia-en", name: "thalia", labels: { language: "en", accent: "American" } }],
  ],
  [
    "speechify",
    "/v1/voices",
    [{ id: "harper_32", display_name: "Harper", gender: "female", locale: "en-US" }],
    [{ id: "harper_32", name: "Harper", labels: { language: "en", gender: "female" } }],
  ],
  [
    "kokoro",
    "/v1/audio/voices",
    { voices: [{ id: "af_heart", name: "af_heart" }, { id: "pm_alex", name: "pm_alex" }, { id: "mine" }] },
    [
      { id: "af_heart", name: "af_heart", labels: { language: "en", gender: "female" } },
      { id: "pm_alex", name: "pm_alex", labels: { language: "pt", gender: "male" } },
      { id: "mine", name: "", labels: {} },
    ],
  ],
  [
    "kokoro",
    "/v1/audio/voices",
    { voices: ["jf_alpha", "jf_alpha", "", 7] },
    [{ id: "jf_alpha", name: "", labels: { language: "ja", gender: "female" } }],
  ],
  [
    "openai",
    "/v1/audio/voices",
    { object: "list", data: [{ id: "ro-1", name: "Ana", language: "ro" }] },
    [{ id: "ro-1", name: "Ana", labels: { language: "ro" } }],
  ],
  ["openai", "/v1/audio/voices", { voices: ["alloy"] }, [{ id: "alloy", name: "", labels: {} }]],
  [
    "piper",
    "/voices",
    { "en_US-lessac-medium": { audio: { sample_rate: 22_050 } }, "de_DE-eva_k-x_low": {} },
    [
      { id: "en_US-lessac-medium", name: "", labels: { language: "en" } },
      { id: "de_DE-eva_k-x_low", name: "", labels: { language: "de" } },
    ],
  ],
];

async function listOf(service: string, answer: FakeAnswer, voices: readonly string[] = []) {
  await using vendor = await startFakeUpstream(() => answer);
  await using upstream = serviceAt(configOf(service, vendor.url, { key: KEY, voices }));
  return { list: await upstream.voices(), requests: vendor.requests };
}

describe("the voices that a service lists", () => {
  it.each(LISTS)("%s: GET %s", async (service, path, body, voices) => {
    const { list, requests } = await listOf(service, jsonError(200, body));
    const asked = requests.map((request) => `${request.method} ${request.path}?${request.query}`);
    expect(asked).toEqual([`GET ${path.includes("?") ? path : `${path}?`}`]);
    expect(list).toEqual({ voices, failure: null });
  });

  it("wyoming: those of its programs that are installed", async () => {
    await using server = await startWyoming();
    await using upstream = serviceAt(configOf("wyoming", server.url));
    expect(await upstream.voices()).toEqual({
      voices: [{ id: WYOMING_VOICE, name: "", labels: { language: "en" } }],
      failure: null,
    });
    expect(server.faults).toEqual([]);
  });

  it.each(["inworld", "deepgram"])("%s: those that its entry names go with them", async (service) => {
    const answer = jsonError(200, { tts: [{ canonical_name: "aura-1" }, { canonical_name: "nova" }] });
    const { list } = await listOf(service, answer, ["aura-*", "zeus"]);
    const listed = service === "inworld" ? [] : ["aura-1"];
    expect(list.voices.map(({ id }) => id)).toEqual([...listed, "zeus"]);
  });

  it("takes voices up to a bound, and none whose id is too long", async () => {
    const many = Array.from({ length: MAX_LISTED_VOICES + 5 }, (_, index) => `v${index}`);
    const { list } = await listOf("openai", jsonError(200, { voices: ["x".repeat(201), ...many] }));
    expect(list.voices).toHaveLength(MAX_LISTED_VOICES - 1);
  });

  it.each([404, 405, 501])(
    "one that has no such path (%i) lists none, and that is no failure",
    async (status) => {
      const { list } = await listOf("openai", jsonError(status, { detail: "Not Found" }));
      expect(list).toEqual({ voices: [], failure: null });
    },
  );

  it.each<[string, FakeAnswer, string]>([
    ["a refused key", jsonError(401, {}), "upstream_unauthorized"],
    ["too many requests", jsonError(429, {}), "upstream_rate_limited"],
    ["a failure", jsonError(500, {}), "upstream_failed"],
    ["a web page", htmlPage(), "upstream_protocol"],
    ["its key in it", jsonError(200, { voices: [KEY] }), "upstream_protocol"],
    ["too much", { headers: {}, body: Array(20).fill(Buffer.alloc(262_144)) }, "upstream_protocol"],
    ["a stall", { headers: {}, body: ["{", "stall"] }, "upstream_timeout"],
    ["a reset", { headers: {}, body: ["{", "reset"] }, "upstream_truncated"],
  ])("%s: those that its entry names, and why there are no more", async (_what, answer, code) => {
    const { list } = await listOf("openai", answer, ["af_*", "zeus"]);
    expect(list.voices.map(({ id }) => id)).toEqual(["zeus"]);
    expect(list.failure).toMatchObject({ code });
    expect(list.failure?.message).not.toContain(KEY);
  });
});

describe("ServiceVoices", () => {
  it("asks once a minute; after a failure it asks soon again and keeps the last list until then", async () => {
    let nowMs = 0;
    let asked = 0;
    let isBroken = false;
    const clock: Clock = { nowMs: () => nowMs, at: systemClock.at.bind(systemClock) };
    const voices = new ServiceVoices({
      clock,
      named: [],
      ask: () => {
        asked += 1;
        if (isBroken) return Promise.reject(new Error("broken"));
        return Promise.resolve([{ id: `v${asked}`, name: "", labels: {} }]);
      },
    });
    const ids = async (): Promise<string[]> => (await voices.list()).voices.map(({ id }) => id);
    // Together they ask once.
    expect(await Promise.all([ids(), ids()])).toEqual([["v1"], ["v1"]]);
    nowMs = 59_999;
    expect(await ids()).toEqual(["v1"]);
    isBroken = true;
    nowMs = 60_000;
    expect(await voices.list()).toMatchObject({ voices: [{ id: "v1" }], failure: { code: "internal" } });
    nowMs = 69_999;
    await ids();
    expect(asked).toBe(2);
    isBroken = false;
    nowMs = 70_000;
    expect(await ids()).toEqual(["v3"]);
  });
});
