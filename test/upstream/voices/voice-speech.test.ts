/** Which upstream speaks a voice of one's own, and what makes another one speak it. */
import { describe, expect, it } from "vitest";
import type { FakeReaction, FakeScript } from "../../helpers/fake-answer.ts";
import { until } from "../../helpers/until.ts";
import { cartesia } from "../../kit/vendors/cartesia.ts";
import { KOKORO_VOICE } from "../../kit/vendors/kokoro.ts";
import { bytesOf, speak } from "../../kit/vendors/spoken.ts";
import { jsonError } from "../../kit/vendors/timed-steps.ts";
import { Recorder } from "../../unit/upstream/rig.ts";
import { speech, TEXT } from "../services/rig.ts";
import { ANNA, posts, rigOf } from "./rig.ts";

const WHOLE = bytesOf(speak(TEXT, { sampleRate: 24_000 }).pcm);
const refusing = (status: number, code: string) => () => jsonError(status, { error_code: code });

describe("a voice of one's own", () => {
  it("is spoken by the first upstream of its list", async () => {
    await using rig = await rigOf();
    const { audio, heads } = await rig.ask();
    expect(audio.equals(WHOLE)).toBe(true);
    expect(heads[0]?.standIn).toBeUndefined();
    expect([posts(rig.cartesia), posts(rig.kokoro), posts(rig.first)]).toEqual([1, 0, 0]);
    expect(rig.router.voices()).toMatchObject([
      { voice: "anna", upstream: "cartesia", served: 1, switches: 0 },
      { upstream: "kokoro", served: 0 },
      { served: 0 },
    ]);
  });

  it.each<[string, FakeReaction]>([
    ["a connection that is reset", "reset"],
    ["503", jsonError(503, {})],
    ["a key that is refused", jsonError(401, { error_code: "unauthorized" })],
    ["an account without money", jsonError(402, {})],
    ["a plan that does not allow it", jsonError(403, {})],
    ["a quota that is used up", jsonError(429, { error_code: "quota_exceeded" })],
    ["too many requests", jsonError(429, { error_code: "concurrency_limited" })],
    ["a voice that it does not know", jsonError(404, { error_code: "voice_not_found" })],
    ["a text that it does not take", jsonError(400, { error_code: "invalid_request" })],
    ["headers and nothing more", { body: ["reset"] }],
    ["an empty answer", { headers: { "content-type": "text/event-stream" }, body: [] }],
  ])("goes to the next one after %s, and nothing of it is heard", async (_name, reaction) => {
    await using rig = await rigOf({ cartesia: () => reaction });
    const { audio, heads, calls } = await rig.ask();
    expect(audio.equals(WHOLE)).toBe(true);
    expect(heads).toMatchObject([{ standIn: `kokoro:${KOKORO_VOICE}` }]);
    expect(calls.filter((call) => call === "head" || call === "end")).toEqual(["head", "end"]);
    expect([posts(rig.cartesia), posts(rig.kokoro)]).toEqual([1, 1]);
    expect(rig.router.regions()).toMatchObject([{}, { name: "cartesia", failovers: 1 }, { failovers: 0 }]);
  });

  it.each<[string, FakeReaction]>([
    ["headers", "silence"],
    ["the first piece", { headers: { "content-type": "text/event-stream" }, body: ["stall"] }],
  ])(
    "waits for %s no longer than failoverMs, and that is a failure of the upstream",
    async (_name, reaction) => {
      await using rig = await rigOf({ cartesia: () => reaction }, { failoverMs: 100 });
      expect((await rig.ask()).audio.equals(WHOLE)).toBe(true);
      expect(rig.router.regions()[1]).toMatchObject({ name: "cartesia", isHealthy: false, failovers: 1 });
    },
  );

  it("waits for its turn no longer than failoverMs", async () => {
    await using rig = await rigOf({}, { failoverMs: 100 });
    rig.cartesia.use(() => ({ headers: { "content-type": "text/event-stream" }, body: ["stall"] }));
    // As many as it is asked for at once while nothing is known of its limit.
    const busy = Array.from({ length: 3 }, () =>
      rig.router.open(speech(ANNA.upstreamVoices[0] ?? ""), new Recorder()),
    );
    await until("requests that hold all places", () => posts(rig.cartesia) === 3);
    expect((await rig.ask()).audio.equals(WHOLE)).toBe(true);
    expect(posts(rig.cartesia)).toBe(3);
    expect(rig.router.regions()[1]).toMatchObject({ isHealthy: true, failovers: 1 });
    for (const synthesis of busy) synthesis.abort();
  });

  it("is turned away twice, and goes to the next one: nobody hears silence for failoverMs", async () => {
    await using rig = await rigOf(
      { cartesia: refusing(429, "concurrency_limited") },
      { failoverMs: 60_000, patienceMs: 60_000 },
    );
    const { audio, calls } = await rig.ask();
    expect(audio.equals(WHOLE)).toBe(true);
    expect(calls.filter((call) => call === "turned away")).toHaveLength(2);
    expect(posts(rig.cartesia)).toBe(2);
    expect(rig.router.regions()[1]).toMatchObject({ isHealthy: true, failovers: 1 });
  });

  it("who has begun an utterance is waited for when it turns the rest away: no longer than failoverMs", async () => {
    await using rig = await rigOf({}, { failoverMs: 1000, patienceMs: 60_000 });
    const utterance = {};
    expect((await rig.ask({ utterance })).failure).toBeNull();
    rig.cartesia.use(refusing(429, "concurrency_limited"));
    const { audio, calls } = await rig.ask({ utterance });
    expect(audio.equals(WHOLE)).toBe(true);
    expect(calls.filter((call) => call === "turned away").length).toBeGreaterThan(2);
    expect(rig.router.regions()[1]).toMatchObject({ isHealthy: true, failovers: 1 });
  });

  it.each([
    [401, "unauthorized"],
    [402, "payment_required"],
    [403, "forbidden"],
    [429, "quota_exceeded"],
  ])(
    "%i %s leaves the upstream out for minutes, with one warning, until it answers again",
    async (status, code) => {
      await using rig = await rigOf({ cartesia: refusing(status, code) });
      for (let times = 0; times < 3; times += 1) expect((await rig.ask()).failure).toBeNull();
      expect([posts(rig.cartesia), posts(rig.kokoro)]).toEqual([1, 3]);
      expect(rig.router.regions()[1]?.isHealthy).toBe(false);
      rig.clock.advance(5 * 60_000);
      await rig.ask();
      expect([posts(rig.cartesia), posts(rig.kokoro)]).toEqual([2, 4]);
      expect(rig.log.account).toHaveLength(1);
      rig.cartesia.use(cartesia());
      rig.clock.advance(5 * 60_000);
      await rig.ask();
      await rig.ask();
      expect([posts(rig.cartesia), posts(rig.kokoro)]).toEqual([4, 4]);
      expect(rig.log.account).toEqual([
        expect.stringContaining("warn Upstream refuses its key or plan"),
        "info Upstream takes its key and plan again",
      ]);
    },
  );

  it("is asked of an upstream that is left out where there is no other", async () => {
    const [preferred = ""] = ANNA.upstreamVoices;
    const voice = { name: "anna", upstreamVoices: [preferred] };
    await using rig = await rigOf({ cartesia: refusing(402, "x") }, { voice });
    expect((await rig.ask()).failure).toMatchObject({ code: "upstream_forbidden" });
    rig.cartesia.use(cartesia());
    expect((await rig.ask()).failure).toBeNull();
  });

  it("refusals of the request say nothing of the upstream: it is asked the next time", async () => {
    await using rig = await rigOf({ cartesia: refusing(404, "voice_not_found") });
    for (let times = 0; times < 5; times += 1) await rig.ask();
    expect([posts(rig.cartesia), posts(rig.kokoro)]).toEqual([5, 5]);
    expect(rig.router.regions()[1]?.isHealthy).toBe(true);
  });

  it("what its owner gives up says nothing of the upstream, whenever that is", async () => {
    await using rig = await rigOf({ cartesia: () => "silence" });
    for (let times = 0; times < 5; times += 1) {
      const recorder = new Recorder();
      const synthesis = rig.router.open(speech("anna"), recorder);
      if (times > 0) await until("the request", () => posts(rig.cartesia) === times);
      synthesis.abort();
      expect(recorder.calls.filter((call) => call !== "sent")).toEqual([]);
    }
    rig.cartesia.use(cartesia());
    await rig.ask();
    expect(posts(rig.kokoro)).toBe(0);
    expect(rig.router.regions()[1]).toMatchObject({ isHealthy: true, failovers: 0 });
  });

  it("a text without anything to say, and so without sound, is no failure", async () => {
    await using rig = await rigOf({ cartesia: cartesia({ fault: "empty" }) });
    for (let times = 0; times < 5; times += 1) {
      const { isEnded, bytes } = await rig.ask({ text: "... !" });
      expect([isEnded, bytes]).toEqual([true, 0]);
    }
    expect(posts(rig.kokoro)).toBe(0);
    expect(rig.router.regions()[1]?.isHealthy).toBe(true);
  });

  it("comes back with two checks that are answered, one behind the other", async () => {
    await using rig = await rigOf({ cartesia: () => jsonError(503, {}) });
    await rig.ask();
    expect(rig.router.regions()[1]?.isHealthy).toBe(false);
    let checks = 0;
    rig.cartesia.use((request, index) => {
      checks += request.method === "GET" ? 1 : 0;
      return cartesia()(request, index);
    });
    await until("the upstream is back", () => rig.router.regions()[1]?.isHealthy === true);
    expect(checks).toBe(2);
    const { audio, heads } = await rig.ask();
    expect(audio.equals(WHOLE)).toBe(true);
    expect(heads[0]?.standIn).toBeUndefined();
  });

  it("fails with what the preferred one said where all fail, and with what may pass first of all", async () => {
    await using rig = await rigOf({ cartesia: refusing(404, "voice_not_found"), kokoro: refusing(400, "x") });
    rig.first.use(refusing(422, "x"));
    expect((await rig.ask()).failure).toMatchObject({ code: "unknown_voice" });
    rig.kokoro.use(() => jsonError(500, {}));
    expect((await rig.ask()).failure).toMatchObject({ code: "upstream_failed" });
  });

  it.each([
    ["cartesia:sonic-3.5", [1, 0, 0]],
    ["eleven_flash_v2_5", [0, 0, 1]],
    [undefined, [1, 0, 0]],
  ])("with the model %s it is asked of upstreams that have it", async (modelId, asked) => {
    await using rig = await rigOf();
    await rig.ask(modelId === undefined ? {} : { modelId });
    expect([posts(rig.cartesia), posts(rig.kokoro), posts(rig.first)]).toEqual(asked);
    const [cartesiaRequest] = rig.cartesia.requests;
    const [firstRequest] = rig.first.requests;
    const model = modelId?.replace("cartesia:", "") ?? "sonic-3";
    expect((cartesiaRequest ?? firstRequest)?.json).toMatchObject({ model_id: model });
  });

  it("a model that no upstream of it has is refused, and nothing is asked", async () => {
    await using rig = await rigOf();
    expect((await rig.ask({ modelId: "acme:x" })).failure).toMatchObject({
      code: "upstream_invalid",
      field: "model_id",
    });
    expect([posts(rig.cartesia), posts(rig.kokoro), posts(rig.first)]).toEqual([0, 0, 0]);
  });

  it("the model that is set is the first upstream's", async () => {
    const voice = { name: "anna", upstreamVoices: [ANNA.upstreamVoices[0] ?? "", "tone-a"] };
    await using rig = await rigOf({ cartesia: () => "reset" }, { voice, model: "eleven_flash_v2_5" });
    await rig.ask();
    expect(rig.first.requests[0]?.json).toMatchObject({ model_id: "eleven_flash_v2_5" });
  });

  it("goes on from the first upstream as from any other, and is counted there", async () => {
    const voice = { name: "anna", upstreamVoices: ["tone-a", ANNA.upstreamVoices[0] ?? ""] };
    await using rig = await rigOf({}, { voice });
    rig.first.use(refusing(402, "payment_required"));
    for (let times = 0; times < 2; times += 1) expect((await rig.ask()).audio.equals(WHOLE)).toBe(true);
    expect([posts(rig.first), posts(rig.cartesia)]).toEqual([1, 2]);
    expect(rig.router.regions()[0]).toMatchObject({ isHealthy: false, failovers: 1 });
  });

  it("a refusal of the text around is the session's, which asks for less", async () => {
    const voice = { name: "anna", upstreamVoices: ["tone-a", ANNA.upstreamVoices[0] ?? ""] };
    await using rig = await rigOf({}, { voice });
    rig.first.use(refusing(400, "x"));
    const asked = await rig.ask({ previousRequestIds: ["old"] });
    expect(asked.failure).toMatchObject({ code: "upstream_invalid" });
    expect(posts(rig.cartesia)).toBe(0);
  });

  it("one utterance stays with the upstream that took it over, the next begins with the preferred one", async () => {
    await using rig = await rigOf();
    // One that was never heard of is down at once.
    await rig.ask();
    rig.cartesia.use(cartesia({ fault: "reset" }));
    const utterance = {};
    expect((await rig.ask({ utterance })).failure).toMatchObject({ code: "upstream_truncated" });
    rig.cartesia.use(cartesia());
    await rig.ask({ utterance });
    await rig.ask({ utterance });
    expect([posts(rig.cartesia), posts(rig.kokoro)]).toEqual([2, 2]);
    expect(rig.router.voices()).toMatchObject([
      { upstream: "cartesia", served: 2, switches: 1 },
      { upstream: "kokoro", served: 2, switches: 0 },
      {},
    ]);
    await rig.ask({ utterance: {} });
    expect(posts(rig.cartesia)).toBe(3);
  });

  it("what would fail for good in the middle may go on where another upstream is left, and not where none is", async () => {
    const endsQuota: FakeScript = async (request, index) => {
      const answer = await cartesia({ fault: "no end" })(request, index);
      if (typeof answer === "string") return answer;
      const event = { type: "error", status_code: 206, error_code: "quota_exceeded" };
      return { ...answer, body: [...(answer.body ?? []), `data: ${JSON.stringify(event)}\n\n`] };
    };
    await using rig = await rigOf({ cartesia: endsQuota });
    expect((await rig.ask()).failure).toMatchObject({ code: "upstream_truncated", isRetryable: true });
    expect(rig.log.account).toHaveLength(1);
    const alone = { name: "anna", upstreamVoices: [ANNA.upstreamVoices[0] ?? ""] };
    await using other = await rigOf({ cartesia: endsQuota }, { voice: alone });
    expect((await other.ask()).failure).toMatchObject({ code: "upstream_forbidden", isRetryable: false });
  });
});
