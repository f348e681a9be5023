/** Request stitching: texts around a request, and ids of requests around it, shape its sound; what is refused. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startService } from "../../src/service/service.ts";
import { openStore } from "../../src/service/store/store.ts";
import { measures } from "../helpers/measures.ts";
import { floatsOf, samplesOf, trackPitch } from "../unit/service/convert/measures.ts";
import { type Answer, type Client, OTHER_VOICE, startClient, VOICE } from "./client.ts";

const RATE = 22_050;
const BEFORE = "The king of the hill went";
const TEXT = "down to the shop";
const AFTER = "and bought some milk for his cat.";
/** The same request is the same samples. */
const SEEDED = { seed: 3 };
let folder: string;
let client: Client;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  client = await startClient({ dataFolder: folder });
}, 60_000);
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

function post(body: object, query = ""): Promise<Answer> {
  const path = `/v1/text-to-speech/${VOICE}?output_format=pcm_${RATE}${query}`;
  return client.post(path, { text: TEXT, ...SEEDED, ...body });
}

function dialogue(body: object): Promise<Answer> {
  const inputs = [
    { text: "Down to the shop.", voice_id: VOICE },
    { text: "So they say", voice_id: OTHER_VOICE },
  ];
  return client.post(`/v1/text-to-dialogue?output_format=pcm_${RATE}`, { inputs, ...SEEDED, ...body });
}

async function seconds(answer: Promise<Answer>): Promise<number> {
  const { status, body } = await answer;
  expect(status).toBe(200);
  return samplesOf(body).length / RATE;
}

/** Of what is voiced, above 1 Hz. The tracker takes samples to be of its own rate: differences alone have a meaning. */
function meanOctave(pcm: Int16Array): number {
  const voiced = trackPitch(floatsOf(pcm)).filter((hz) => hz > 0);
  return voiced.reduce((sum, hz) => sum + Math.log2(hz), 0) / voiced.length;
}

async function idOf(body: object, query = ""): Promise<string> {
  const answer = await post(body, query);
  expect(answer.status).toBe(200);
  return String(answer.headers["request-id"]);
}

async function expectRefused(answer: Promise<Answer>, code: string, param: string): Promise<void> {
  const { status, body } = await answer;
  expect(status).toBe(400);
  expect(JSON.parse(body.toString())).toMatchObject({ detail: { code, param } });
}

describe("request stitching", { timeout: 60_000 }, () => {
  it("next_text: a clause that goes on has no final lengthening; a sentence has its pause", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "next_text",
      "the lengthening at the end, and the pause behind it",
    );
    const clause = { text: "We went to the old market in the middle of town" };
    const goesOn = await seconds(post({ ...clause, next_text: "with all of our friends." }));
    expect((await seconds(post(clause))) - goesOn).toBeGreaterThan(0.05);
    const sentence = { text: "Down to the shop." };
    const pause = (await seconds(post({ ...sentence, next_text: "So." }))) - (await seconds(post(sentence)));
    expect(pause).toBeCloseTo(0.3, 2);
  });

  it("previous_text: the melody goes on, so that it is another sound, and the same one each time", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "previous_text", "a lower sentence, the same each time");
    const sentence = { text: "Nobody has seen it since." };
    const [alone, inClause, again, first, third] = await Promise.all([
      post({}),
      post({ previous_text: BEFORE }),
      post({ previous_text: BEFORE }),
      post(sentence),
      post({ ...sentence, previous_text: "It was late. We went home." }),
    ]);
    expect(inClause.body.equals(again.body)).toBe(true);
    expect(inClause.body).not.toEqual(alone.body);
    // A sentence later in a paragraph is lower: half of a semitone.
    const octaves = meanOctave(samplesOf(first.body)) - meanOctave(samplesOf(third.body));
    expect(octaves).toBeGreaterThan(0.02);
    expect(octaves).toBeLessThan(0.1);
  });

  it("previous_text, next_text: times are of this request's own text and audio", async () => {
    const answer = await client.post(
      `/v1/text-to-speech/${VOICE}/with-timestamps?output_format=pcm_${RATE}`,
      {
        text: TEXT,
        previous_text: BEFORE,
        next_text: AFTER,
      },
    );
    const { alignment, normalized_alignment, audio_base64 } = JSON.parse(answer.body.toString());
    const length = Buffer.from(audio_base64, "base64").length / 2 / RATE;
    for (const one of [alignment, normalized_alignment]) {
      expect(one.characters.join("")).toBe(TEXT);
      expect(one.character_start_times_seconds[0]).toBeLessThan(0.05);
      expect(one.character_end_times_seconds.at(-1)).toBeLessThanOrEqual(length + 0.001);
    }
  });

  it("previous_request_ids: the last is the nearest, and they win over previous_text", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "previous_request_ids",
      "the sound of previous_text with their texts",
    );
    const near = await idOf({ text: BEFORE });
    const far = await idOf({ text: "It was late." });
    const wanted = await post({ previous_text: `It was late. ${BEFORE}` });
    const ids = { previous_request_ids: [far, near] };
    expect((await post(ids)).body.equals(wanted.body)).toBe(true);
    expect((await post({ ...ids, previous_text: "Something else." })).body.equals(wanted.body)).toBe(true);
    expect((await post({ previous_request_ids: [near, far] })).body).not.toEqual(wanted.body);
  });

  it("next_request_ids: the first is the nearest, and they win over next_text", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "next_request_ids",
      "the sound of next_text with their texts",
    );
    const near = await idOf({ text: AFTER });
    const far = await idOf({ text: "So they say." });
    const wanted = await post({ next_text: AFTER });
    const ids = { next_request_ids: [near, far] };
    expect((await post({ ...ids, next_text: "Something else." })).body.equals(wanted.body)).toBe(true);
    expect((await post({})).body).not.toEqual(wanted.body);
  });

  it("previous_request_ids: a request that is still being delivered is known", async () => {
    const path = `/v1/text-to-speech/${VOICE}/stream?output_format=pcm_48000`;
    const long = await client.open(path, { text: "It was so late that nobody came. ".repeat(100) });
    const id = String(long.headers["request-id"]);
    const answer = await post({ previous_request_ids: [id] });
    expect(answer.status).toBe(200);
    expect(answer.body).not.toEqual((await post({})).body);
    client.abortOpenRequests();
    // Given up, it is not kept.
    await expect
      .poll(async () => (await post({ previous_request_ids: [id] })).status, { timeout: 10_000 })
      .toBe(400);
  });

  it("future_text, previous_text of a dialogue: the last line goes on, the first one too", async () => {
    measures("POST /v1/text-to-dialogue", "future_text", "the lengthening of the last line's end");
    measures("POST /v1/text-to-dialogue", "previous_text", "another melody of the first line");
    const alone = await seconds(dialogue({}));
    expect(alone - (await seconds(dialogue({ future_text: "in the old town." })))).toBeGreaterThan(0.05);
    const [plain, stitched] = [await dialogue({}), await dialogue({ previous_text: "It was late." })];
    expect(stitched.body).not.toEqual(plain.body);
  });

  it("previous_request_ids, next_request_ids of a dialogue: its neighbours may be dialogues", async () => {
    measures("POST /v1/text-to-dialogue", "previous_request_ids", "another sound than alone");
    measures("POST /v1/text-to-dialogue", "next_request_ids", "another sound than alone");
    const kept = await dialogue({});
    const id = String(kept.headers["request-id"]);
    for (const param of ["previous_request_ids", "next_request_ids"]) {
      const answer = await dialogue({ [param]: [id] });
      expect(answer.status).toBe(200);
      expect(answer.body).not.toEqual(kept.body);
    }
  });

  it("previous_text, future_text of a dialogue: at most 100 characters", async () => {
    for (const param of ["previous_text", "future_text"]) {
      expect((await dialogue({ [param]: "🙂".repeat(100) })).status).toBe(200);
      await expectRefused(dialogue({ [param]: "a".repeat(101) }), "invalid_parameters", param);
    }
  });

  it("previous_text, next_text: refused by the expressive models", async () => {
    for (const param of ["previous_text", "next_text"]) {
      await expectRefused(post({ model_id: "eleven_v3", [param]: "x" }), "unsupported_model", param);
    }
  });

  it("previous_request_ids, next_request_ids: four are refused, and so is one that is not known", async () => {
    const id = await idOf({});
    for (const param of ["previous_request_ids", "next_request_ids"]) {
      await expectRefused(post({ [param]: [id, id, id, id] }), "invalid_parameters", param);
      await expectRefused(post({ [param]: [id, "nothing"] }), "invalid_parameters", param);
    }
  });

  it("enable_logging=false: ids are refused, and a request without a record is not known later", async () => {
    const id = await idOf({});
    for (const param of ["previous_request_ids", "next_request_ids"]) {
      await expectRefused(post({ [param]: [id] }, "&enable_logging=false"), "invalid_parameters", param);
    }
    const forgotten = await idOf({}, "&enable_logging=false");
    await expectRefused(
      post({ previous_request_ids: [forgotten] }),
      "invalid_parameters",
      "previous_request_ids",
    );
    expect((await post({ previous_text: BEFORE }, "&enable_logging=false")).status).toBe(200);
  });
});

describe("the text of a request id", () => {
  it("is known for the time that is asked for, and not of a deleted item", async () => {
    const store = await openStore({ folder: null });
    const writer = await store.media.writer();
    await writer.write(Buffer.from("sound"));
    const item = {
      id: "item",
      requestId: "one",
      voiceId: VOICE,
      voiceName: "Nora",
      voiceCategory: "premade",
      modelId: "eleven_v3",
      text: BEFORE,
      dateUnix: 1000,
      characters: 1,
      contentType: "audio/pcm",
      outputFormat: "pcm_16000",
      source: "TTS",
      settings: null,
      alignmentsJson: null,
      dialogue: null,
    } as const;
    const end = store.history.begin({ ...item, text: "Under way." });
    expect(store.history.textOf("one", 9999)).toBe("Under way.");
    end();
    expect(store.history.textOf("one", 0)).toBeUndefined();
    store.history.add(item, await writer.finish());
    expect([999, 1000, 1001].map((since) => store.history.textOf("one", since))).toEqual([
      BEFORE,
      BEFORE,
      undefined,
    ]);
    store.history.delete("item");
    expect(store.history.textOf("one", 0)).toBeUndefined();
    await store.close();
  });

  it("is found by a service that was started again", async () => {
    const data = await mkdtemp(join(tmpdir(), "voicewire-test-"));
    const ask = async (body: object): Promise<Response> => {
      const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false, dataFolder: data });
      try {
        const url = `${service.url}/v1/text-to-speech/${VOICE}?output_format=pcm_16000`;
        const headers = { "content-type": "application/json" };
        const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
        await answer.arrayBuffer();
        return answer;
      } finally {
        await service.close();
      }
    };
    const first = await ask({ text: BEFORE });
    const ids = [first.headers.get("request-id")];
    expect((await ask({ text: TEXT, previous_request_ids: ids })).status).toBe(200);
    await rm(data, { recursive: true, force: true });
  }, 60_000);
});
