/** Bad input, literally: status and body of every refusal, and the order in which they are looked for. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GatewayError } from "../../src/errors.ts";
import { startService } from "../../src/service/service.ts";
import { measures } from "../helpers/measures.ts";
import { type Answer, type Client, startClient, VOICE } from "./client.ts";

const PATH = `/v1/text-to-speech/${VOICE}`;
const KEY = "the-right-key";
let open: Client;
let locked: Client;

beforeAll(async () => {
  [open, locked] = await Promise.all([startClient(), startClient({ key: KEY, tier: "free" })]);
});
afterAll(() => Promise.all([open[Symbol.asyncDispose](), locked[Symbol.asyncDispose]()]));

function json(answer: Answer): { readonly detail: unknown } {
  expect(answer.headers["content-type"]).toContain("application/json");
  return JSON.parse(answer.body.toString()) as { detail: unknown };
}

/** The current error shape, whose request_id is the answer's trace. */
function expectApiError(answer: Answer, status: number, detail: Readonly<Record<string, unknown>>): void {
  const body = json(answer);
  expect({ status: answer.status, ...body }).toEqual({
    status,
    detail: { message: expect.any(String), request_id: answer.headers["x-trace-id"], ...detail },
  });
  expect(answer.headers["x-trace-id"]).toMatch(/^[0-9a-f]{32}$/);
  expect(answer.headers["request-id"]).toBeUndefined();
}

const entry = (type: string, loc: unknown[], msg: string, input: unknown, ctx?: unknown) =>
  ctx === undefined ? { type, loc, msg, input } : { type, loc, msg, input, ctx };

describe("422, before the key is looked at", () => {
  it.each([
    ["no text", {}, [entry("missing", ["body", "text"], "Field required", null)]],
    [
      "text of another type",
      { text: 5 },
      [entry("string_type", ["body", "text"], "Input should be a valid string", 5)],
    ],
    [
      "stability out of range",
      { text: "x", voice_settings: { stability: 1.5 } },
      [
        entry(
          "less_than_equal",
          ["body", "voice_settings", "stability"],
          "Input should be less than or equal to 1",
          1.5,
          { le: 1 },
        ),
      ],
    ],
    [
      "unknown normalization",
      { text: "x", apply_text_normalization: "maybe" },
      [
        entry(
          "literal_error",
          ["body", "apply_text_normalization"],
          "Input should be 'auto', 'on' or 'off'",
          "maybe",
          {
            expected: "'auto', 'on' or 'off'",
          },
        ),
      ],
    ],
    [
      "seed that is no integer",
      { text: "x", seed: "many" },
      [
        entry(
          "int_parsing",
          ["body", "seed"],
          "Input should be a valid integer, unable to parse string as an integer",
          "many",
        ),
      ],
    ],
    [
      "voice_settings that is a list",
      { text: "x", voice_settings: [] },
      [
        entry(
          "model_attributes_type",
          ["body", "voice_settings"],
          "Input should be a valid dictionary or object to extract fields from",
          [],
        ),
      ],
    ],
    [
      "locator without id",
      { text: "x", pronunciation_dictionary_locators: [{}] },
      [
        entry(
          "missing",
          ["body", "pronunciation_dictionary_locators", 0, "pronunciation_dictionary_id"],
          "Field required",
          {},
        ),
      ],
    ],
  ])("%s", async (_name, body, detail) => {
    const answer = await locked.post(PATH, body);
    expect(answer.status).toBe(422);
    expect(json(answer)).toEqual({ detail });
  });

  it("lists query faults first, then the body's", async () => {
    const answer = await locked.post(`${PATH}?enable_logging=perhaps&optimize_streaming_latency=x`, {});
    expect(json(answer)).toEqual({
      detail: [
        entry(
          "bool_parsing",
          ["query", "enable_logging"],
          "Input should be a valid boolean, unable to interpret input",
          "perhaps",
        ),
        entry(
          "int_parsing",
          ["query", "optimize_streaming_latency"],
          "Input should be a valid integer, unable to parse string as an integer",
          "x",
        ),
        entry("missing", ["body", "text"], "Field required", null),
      ],
    });
  });

  it.each([
    ['{"text": "x" "model_id": "y"}', ["body", 13]],
    // The engine gives no offset for a token out of place; its message quotes the body instead.
    ['{"text": }', ["body"]],
  ])("malformed JSON: %s is at %j, and its text is not repeated", async (body, loc) => {
    const answer = await locked.post(PATH, body);
    expect(answer.status).toBe(422);
    expect(json(answer)).toEqual({ detail: [entry("json_invalid", loc, "Body is not valid JSON", {})] });
  });

  it("a body that is no JSON object lacks every field, as seen live", async () => {
    for (const [body, headers] of [
      ["[1]", {}],
      ['{"text":"x"}', { "content-type": "text/plain" }],
    ] as const) {
      const answer = await locked.post(PATH, body, headers);
      expect(answer.status).toBe(422);
      const { detail } = json(answer) as { detail: { loc: string[] }[] };
      expect(detail.slice(0, 3).map((fault) => fault.loc.join("."))).toEqual([
        "body.text",
        "body.model_id",
        "body.language_code",
      ]);
    }
  });

  it("bytes that are no UTF-8 are a body that can't be parsed", async () => {
    const answer = await locked.post(PATH, Uint8Array.of(0x22, 0xff, 0x22));
    expect({ status: answer.status, body: json(answer) }).toEqual({
      status: 400,
      body: { detail: "There was an error parsing the body" },
    });
  });

  it("dialogue inputs are checked one by one", async () => {
    const answer = await locked.post("/v1/text-to-dialogue", { inputs: [{ text: "x" }, 7] });
    const { detail } = json(answer) as { detail: { type: string; loc: unknown[] }[] };
    expect(detail.map((fault) => [fault.type, fault.loc])).toEqual([
      ["model_attributes_type", ["body", "inputs", 1]],
      ["missing", ["body", "inputs", 0, "voice_id"]],
    ]);
    expect(json(await locked.post("/v1/text-to-dialogue", {}))).toEqual({
      detail: [entry("missing", ["body", "inputs"], "Field required", null)],
    });
  });
});

describe("the key", () => {
  const unauthorized = { type: "authentication_error", code: "unauthorized" };
  it.each([
    [{}, 401, { ...unauthorized, status: "needs_authorization" }],
    [{ "xi-api-key": "wrong" }, 401, { ...unauthorized, status: "invalid_api_key" }],
    [{ authorization: "Bearer wrong" }, 401, { ...unauthorized, status: "invalid_authorization_header" }],
    [
      { "xi-api-key": "sk_0123abcd" },
      400,
      { type: "authentication_error", code: "invalid_api_key", status: "invalid_api_key" },
    ],
  ])("%j is refused with %i", async (headers, status, detail) => {
    expectApiError(
      await locked.post(`${PATH}?output_format=nonsense`, { text: "x" }, headers),
      status,
      detail,
    );
    expectApiError(await locked.get("/v1/voices", headers), status, detail);
  });
  it("the right one opens, as key or as bearer", async () => {
    expect((await locked.get("/v1/voices", { "xi-api-key": KEY })).status).toBe(200);
    expect((await locked.get("/v1/voices", { authorization: `Bearer ${KEY}` })).status).toBe(200);
  });
  it("models without any key look for a workspace", async () => {
    expectApiError(await locked.get("/v1/models"), 404, {
      type: "not_found",
      code: "workspace_not_found",
      status: "workspace_not_found",
    });
  });
  it("none is asked for where none is set", async () => {
    expect((await open.get("/v1/models", { "xi-api-key": "anything" })).status).toBe(200);
  });
});

describe("what is asked for", () => {
  const bad = (code: string, status: string, param: string) => ({
    type: "validation_error",
    code,
    status,
    param,
  });
  const format = bad("invalid_output_format", "invalid_output_format", "output_format");
  const settings = (param: string) => bad("invalid_voice_settings", "invalid_voice_settings", param);
  const parameters = (param: string) => bad("invalid_parameters", "invalid_parameters", param);
  const model = (status: string, param = "model_id") => bad("unsupported_model", status, param);
  const locators = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ pronunciation_dictionary_id: `d${index}` }));
  const speech = `/v1/text-to-speech/${VOICE}`;
  const dialogue = "/v1/text-to-dialogue";
  const input = { text: "Hi", voice_id: VOICE };

  it.each([
    ["an unknown format", `${speech}?output_format=mp3_1`, { text: "x" }, 400, format],
    ["WAV on a stream", `${speech}/stream?output_format=wav_8000`, { text: "x" }, 400, format],
    [
      "WAV on a dialogue stream",
      `${dialogue}/stream/with-timestamps?output_format=wav_8000`,
      { inputs: [input] },
      400,
      format,
    ],
    ["an unknown model", speech, { text: "x", model_id: "nope" }, 400, model("model_not_found")],
    [
      "a model that can't speak",
      speech,
      { text: "x", model_id: "eleven_english_sts_v2" },
      400,
      model("model_can_not_do_text_to_speech"),
    ],
    [
      "a dialogue with a plain model",
      dialogue,
      { inputs: [input], model_id: "eleven_flash_v2_5" },
      400,
      model("unsupported_model"),
    ],
    [
      "an unknown voice",
      "/v1/text-to-speech/nobody",
      { text: "x" },
      404,
      { type: "not_found", code: "voice_not_found", status: "voice_not_found", param: "voice_id" },
    ],
    [
      "an unknown voice in a dialogue",
      dialogue,
      { inputs: [input, { text: "x", voice_id: "nobody" }] },
      404,
      { type: "not_found", code: "voice_not_found", status: "voice_not_found", param: "voice_id" },
    ],
    ["empty text", speech, { text: "" }, 400, bad("empty_text", "empty_text", "text")],
    ["blank text", speech, { text: " \n" }, 400, bad("empty_text", "empty_text", "text")],
    [
      "too long a text",
      speech,
      { text: "x".repeat(10_001) },
      400,
      bad("text_too_long", "max_character_limit_exceeded", "text"),
    ],
    [
      "too slow a speed",
      speech,
      { text: "x", voice_settings: { speed: 0.69 } },
      400,
      settings("voice_settings.speed"),
    ],
    [
      "too fast a speed",
      speech,
      { text: "x", voice_settings: { speed: 1.21 } },
      400,
      settings("voice_settings.speed"),
    ],
    [
      "style out of range",
      speech,
      { text: "x", voice_settings: { style: 2 } },
      400,
      settings("voice_settings.style"),
    ],
    ["a negative seed", speech, { text: "x", seed: -1 }, 400, parameters("seed")],
    [
      "previous_text with eleven_v3",
      speech,
      { text: "x", model_id: "eleven_v3", previous_text: "y" },
      400,
      model("unsupported_model", "previous_text"),
    ],
    [
      "four request ids",
      speech,
      { text: "x", previous_request_ids: ["1", "2", "3", "4"] },
      400,
      parameters("previous_request_ids"),
    ],
    [
      "four locators",
      speech,
      { text: "x", pronunciation_dictionary_locators: locators(4) },
      400,
      parameters("pronunciation_dictionary_locators"),
    ],
    [
      "an unknown dictionary",
      speech,
      { text: "x", pronunciation_dictionary_locators: locators(1) },
      404,
      {
        type: "not_found",
        code: "pronunciation_dictionary_not_found",
        status: "pronunciation_dictionary_not_found",
        param: "pronunciation_dictionary_locators",
      },
    ],
    [
      "a language nobody speaks",
      speech,
      { text: "x", language_code: "xx" },
      400,
      bad("invalid_parameters", "unsupported_language", "language_code"),
    ],
    ["no inputs", dialogue, { inputs: [] }, 400, parameters("inputs")],
  ])("%s is refused", async (_name, path, body, status, detail) => {
    expectApiError(await open.post(path, body), status, detail);
  });

  it.each([
    ["speech", speech, { text: "Hi" }],
    ["a dialogue", dialogue, { inputs: [input] }],
  ])("audio effects of %s are refused: there are none", async (_name, path, body) => {
    measures("POST /v1/text-to-speech/{voice_id}", "audio_effects", "none: who asks for one is refused");
    measures("POST /v1/text-to-dialogue", "audio_effects", "none: who asks for one is refused");
    for (const name of ["filter_preset_id", "environment_id", "background_noise_id"]) {
      expectApiError(await open.post(path, { ...body, audio_effects: { [name]: "cave" } }), 404, {
        type: "not_found",
        code: "audio_effect_not_found",
        status: "audio_effect_not_found",
        param: `audio_effects.${name}`,
      });
    }
    for (const [name, value] of Object.entries({ distance: 0.5, send_level: 1, pan: -0.2, reverb: true })) {
      const answer = await open.post(path, { ...body, audio_effects: { pan: 0, [name]: value } });
      expectApiError(answer, 400, parameters(`audio_effects.${name}`));
    }
    for (const audio_effects of [null, {}, { distance: 0, filter_preset_id: null, seed: 3 }]) {
      expect((await open.post(path, { ...body, audio_effects })).status).toBe(200);
    }
  });

  it("ten voices are a dialogue, eleven are refused", async () => {
    const answer = await open.get("/v1/voices");
    const { voices } = JSON.parse(answer.body.toString()) as { voices: { voice_id: string }[] };
    const inputs = voices.slice(0, 11).map(({ voice_id }) => ({ text: "Hi", voice_id }));
    expect(inputs).toHaveLength(11);
    expectApiError(await open.post(dialogue, { inputs }), 400, parameters("inputs"));
    expect(
      (await open.post(`${dialogue}?output_format=ulaw_8000`, { inputs: inputs.slice(0, 10) })).status,
    ).toBe(200);
  });

  it("limits hold one above and not at: characters are code points", async () => {
    const at = { text: "😀", voice_settings: { speed: 0.7, stability: 0, style: 1 }, seed: 4_294_967_295 };
    expect((await open.post(speech, at)).status).toBe(200);
    const many = "😀".repeat(5001);
    expectApiError(
      await open.post(dialogue, { inputs: [{ text: many, voice_id: VOICE }] }),
      400,
      bad("text_too_long", "max_character_limit_exceeded", "text"),
    );
  });

  it("unknown fields, nulls and what pydantic coerces are accepted", async () => {
    const answer = await open.post(
      `${speech}?enable_logging=No&output_format=ulaw_8000&output_format=pcm_8000`,
      {
        text: "x",
        nonsense: { deep: [1] },
        model_id: null,
        language_code: null,
        voice_settings: { stability: "0.4", use_speaker_boost: "yes", speed: null },
        pronunciation_dictionary_locators: null,
        seed: "7",
        use_pvc_as_ivc: 0,
        audio_effects: { filter_preset_id: null, pan: 0, seed: 5 },
      },
    );
    expect(answer.status).toBe(200);
    // A repeated query parameter means its last value.
    expect(answer.headers["content-type"]).toBe("audio/pcm");
  });
});

describe("plans", () => {
  const auth = { "xi-api-key": KEY };
  it.each(["mp3_44100_192", "pcm_44100", "wav_44100"])("%s is above the free plan", async (format) => {
    expectApiError(await locked.post(`${PATH}?output_format=${format}`, { text: "x" }, auth), 403, {
      type: "authorization_error",
      code: "subscription_required",
      status: "output_format_not_allowed",
      param: "output_format",
    });
  });
  it("other formats are not, and the headers state the concurrency", async () => {
    const answer = await locked.post(`${PATH}?output_format=mp3_44100_128`, { text: "Hi" }, auth);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      "current-concurrent-requests": "1",
      "maximum-concurrent-requests": "2",
    });
  });
  it("a third request at once is over the free plan", async () => {
    const body = { text: "Long enough to overlap with the others. ".repeat(6) };
    const answers = await Promise.all(Array.from({ length: 4 }, () => locked.post(PATH, body, auth)));
    const refused = answers.filter((answer) => answer.status !== 200);
    expect(refused).toHaveLength(2);
    for (const answer of refused) {
      expectApiError(answer, 429, {
        type: "rate_limit_error",
        code: "concurrent_limit_exceeded",
        status: "too_many_concurrent_requests",
      });
    }
  });
  it("zero retention is for enterprises", async () => {
    const answer = await locked.post(`${PATH}?enable_logging=false`, { text: "x" }, auth);
    expect(answer.status).toBe(403);
  });
});

describe("everything else", () => {
  it("unknown paths and methods answer as FastAPI does", async () => {
    const unknown = await open.get("/v1/nothing");
    expect([unknown.status, json(unknown)]).toEqual([404, { detail: "Not Found" }]);
    const method = await open.get(PATH);
    expect([method.status, json(method)]).toEqual([405, { detail: "Method Not Allowed" }]);
    const head = (path: string) => fetch(open.service.url + path, { method: "HEAD" });
    expect((await head("/v1/voices")).status).toBe(405);
    expect((await head(`/v1/voices/${VOICE}`)).status).toBe(405);
    expect((await head("/v1/nothing")).status).toBe(404);
  });
  it("a body over 1 MiB is refused", async () => {
    expectApiError(await open.post(PATH, { text: "x".repeat(1_048_576) }), 400, {
      type: "invalid_request",
      code: "request_too_large",
      status: "request_too_large",
    });
  });
  it("what is nested too deeply to be repeated is named all the same, and a path that can't be read is refused", async () => {
    const deep = `{"text": ${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
    const answer = await open.post(PATH, deep, { "content-type": "application/json" });
    expect(answer.status).toBe(422);
    expect(JSON.parse(answer.body.toString())).toEqual({
      detail: [
        { type: "string_type", loc: ["body", "text"], msg: "Input should be a valid string", input: null },
      ],
    });
    const unreadable = await open.get("/v1/history/%E0%A4%A");
    expectApiError(unreadable, 400, { type: "invalid_request", code: "bad_request", status: "bad_request" });
  });
  it("answers carry CORS headers, trace and no secret", async () => {
    const answer = await locked.post(
      PATH,
      { text: "x" },
      { "xi-api-key": "a-secret-guess", origin: "http://localhost:1" },
    );
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": "http://localhost:1",
      "access-control-allow-methods": "POST, PATCH, OPTIONS, DELETE, GET, PUT",
    });
    expect(answer.body.toString()).not.toContain("a-secret-guess");
  });
  it("startService() says that a port is taken, or that a tier is unknown", async () => {
    const options = { host: "127.0.0.1", port: open.service.port };
    await expect(startService(options)).rejects.toMatchObject({
      code: "port_in_use",
      name: GatewayError.name,
    });
    await expect(startService({ ...options, tier: "gold" })).rejects.toMatchObject({
      code: "invalid_config",
      field: "tier",
    });
  });
});
