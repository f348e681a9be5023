/** Scripted faults as a client of the service meets them. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { until } from "../helpers/until.ts";
import { type Client, linesOf, startClient, VOICE } from "./client.ts";

const TIMED = `/v1/text-to-speech/${VOICE}/stream/with-timestamps?output_format=ulaw_8000`;
const PLAIN = `/v1/text-to-speech/${VOICE}/stream?output_format=ulaw_8000`;
const WHOLE = `/v1/text-to-speech/${VOICE}?output_format=ulaw_8000`;
const FAULTS = "/service/faults";
const BODY = { text: "Every word of this is said as it stands, one after the other." };
let client: Client;

beforeAll(async () => {
  client = await startClient({ faults: true });
});
afterEach(async () => {
  await fetch(client.service.url + FAULTS, { method: "DELETE" });
  await until("nothing speaks", () => client.service.stats().jobs_active === 0);
});
afterAll(() => client[Symbol.asyncDispose]());

const fault = (value: string, more: Record<string, string> = {}) => ({ "x-voicewire-fault": value, ...more });

async function put(setting: unknown) {
  const response = await fetch(client.service.url + FAULTS, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(setting),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe("by header", () => {
  it("concerns its own request and no other", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "x-voicewire-fault", "the fault that it names");
    const faulty = await client.post(TIMED, BODY, fault("alignment_missing"));
    expect(linesOf(faulty.body).every((line) => line.alignment === null)).toBe(true);
    const next = await client.post(TIMED, BODY);
    expect(linesOf(next.body).flatMap((line) => line.alignment?.characters ?? [])).toEqual([...BODY.text]);
  });

  it.each([
    ["alignment_scaled factor=1.5"],
    ["alignment_restart"],
    ["alignment_late chunks=2"],
    ["alignment_nan every=2"],
    ["alignment_missing"],
  ])("%s: the truth stays what was really said", async (value) => {
    const truth = { "x-voicewire-truth": "1" };
    const lines = linesOf((await client.post(TIMED, BODY, fault(value, truth))).body);
    const words = lines.flatMap((line) => line.voicewire_words ?? []);
    const before = lines.flatMap((line) => line.voicewire_alignment?.character_start_times_seconds ?? []);
    const received = lines.flatMap((line) => line.alignment?.character_start_times_seconds ?? []);
    expect(words.length).toBeGreaterThan(5);
    expect(before).toHaveLength(BODY.text.length);
    for (const word of words) expect(before[word.character_index]).toBeCloseTo(word.start_time_seconds, 2);
    if (!value.startsWith("alignment_late")) expect(received).not.toEqual(before);
  });

  it("chunks of one byte are the whole audio", async () => {
    const sound = await client.post(PLAIN, { text: "Hi." });
    const faulty = await client.post(PLAIN, { text: "Hi." }, fault("chunks sizes=1"));
    expectAsLong(faulty.body, sound.body);
    const lines = linesOf((await client.post(TIMED, { text: "Hi." }, fault("chunks sizes=1,99"))).body);
    const sizes = lines.map((line) => Buffer.from(line.audio_base64, "base64").length);
    expect(sizes.slice(0, 3)).toEqual([1, 99, 1]);
  });

  it.each([
    [429, "rate_limit_error"],
    [500, "internal_error"],
    [503, "service_unavailable"],
  ])("status %i has the vendor's error shape", async (status, type) => {
    const answer = await client.post(PLAIN, BODY, fault(`status status=${status} retry_after=3`));
    expect(answer.status).toBe(status);
    expect(answer.headers["retry-after"]).toBe("3");
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      detail: { type, request_id: answer.headers["x-trace-id"] },
    });
  });

  it.each([PLAIN, TIMED, WHOLE])("truncated: %s ends early and properly", async (path) => {
    const answer = await client.post(path, BODY, fault("truncated after_bytes=1234"));
    expect(answer.status).toBe(200);
    expect(answer.body.length).toBe(1234);
    expect((await client.post(PLAIN, BODY)).body.length).toBeGreaterThan(1234);
  });

  it.each([0, 1234])("reset after %i bytes: the connection is gone", async (bytes) => {
    const answer = client.post(PLAIN, BODY, fault(`reset after_bytes=${bytes}`));
    await expect(answer).rejects.toMatchObject({
      code: expect.stringMatching(/ECONNRESET|ERR_STREAM_PREMATURE_CLOSE/),
    });
    await until("the job is over", () => client.service.stats().jobs_active === 0);
  });

  it("truncated before the first byte still has its headers", async () => {
    const answer = await client.post(PLAIN, BODY, fault("truncated after_bytes=0"));
    expect([answer.status, answer.body.length]).toEqual([200, 0]);
  });

  it("latency and stalls end in a whole answer", async () => {
    const sound = await client.post(PLAIN, BODY);
    const late = await client.post(PLAIN, BODY, fault("latency ms=5; stall after_ms_of_audio=300 ms=5"));
    expectAsLong(late.body, sound.body);
  });

  it("one that can't be read is refused with 400", async () => {
    const answer = await client.post(PLAIN, BODY, fault("stall ms=1"));
    expect(answer.status).toBe(400);
    expect(answer.body.toString()).toContain("stall.after_ms_of_audio");
  });
});

describe("by the control endpoint", () => {
  it("sets, shows and ends the faults of all that follows", async () => {
    const set = await put({ faults: [{ kind: "status", status: 503 }], count: 5 });
    expect(set).toMatchObject({ status: 200, body: { faults: [{ kind: "status", status: 503 }], left: 5 } });
    expect((await client.post(PLAIN, BODY)).status).toBe(503);
    expect(JSON.parse((await client.get(FAULTS)).body.toString())).toMatchObject({ left: 4 });
    await fetch(client.service.url + FAULTS, { method: "DELETE" });
    expect((await client.post(PLAIN, BODY)).status).toBe(200);
    expect(JSON.parse((await client.get(FAULTS)).body.toString())).toEqual({ faults: [] });
  });

  it("refuses the set number of times, then speaks", async () => {
    await put({ faults: [{ kind: "status", status: 429, times: 2, retry_after: 1 }] });
    const statuses = [];
    for (let count = 0; count < 4; count++) statuses.push((await client.post(PLAIN, BODY)).status);
    expect(statuses).toEqual([429, 429, 200, 200]);
  });

  it("truth: true adds the truth to every timed answer", async () => {
    await put({ faults: [{ kind: "alignment_missing" }], truth: true });
    const lines = linesOf((await client.post(TIMED, BODY)).body);
    expect(lines.flatMap((line) => line.voicewire_words ?? []).length).toBeGreaterThan(5);
    expect(lines.every((line) => line.alignment === null)).toBe(true);
  });

  it("refuses what it does not know with 422 and leaves what is set", async () => {
    await put({ faults: [{ kind: "status", status: 500 }] });
    const bad = await put({ faults: [{ kind: "status", status: 200 }] });
    expect(bad.status).toBe(422);
    expect(JSON.stringify(bad.body)).toContain('["body","faults",0,"status"]');
    expect((await client.post(PLAIN, BODY)).status).toBe(500);
  });

  it("a service that was started without them refuses the header and has nothing under /service", async () => {
    await using other = await startClient();
    const refused = await other.post(PLAIN, BODY, fault("latency ms=1"));
    expect(refused.status).toBe(400);
    expect(JSON.parse(refused.body.toString())).toMatchObject({
      detail: {
        code: "invalid_parameters",
        message: expect.stringContaining("scripted faults are off here, start the service with --faults"),
      },
    });
    for (const path of [FAULTS, "/service/stats", "/service/webhooks"]) {
      expect([path, (await other.get(path)).status]).toEqual([path, 404]);
    }
    const trigger = await other.post("/service/webhooks/trigger", { event: "flows" });
    expect(trigger.status).toBe(404);
    const { paths } = JSON.parse((await other.get("/openapi.json")).body.toString()) as { paths: object };
    expect(Object.keys(paths).filter((path) => path.startsWith("/service"))).toEqual([]);
    expect((await other.post(PLAIN, BODY)).status).toBe(200);
  });

  it("asks for the key where there is one", async () => {
    await using other = await startClient({ key: "secret", faults: true });
    expect((await other.get(FAULTS)).status).toBe(401);
    expect((await other.get(FAULTS, { "xi-api-key": "secret" })).status).toBe(200);
  });
});

/** The voice is not the same to the sample twice: its noise goes on from where it was. */
function expectAsLong(audio: Buffer, other: Buffer): void {
  expect(audio.length).toBeGreaterThan(1000);
  expect(Math.abs(audio.length - other.length)).toBeLessThan(400);
}
