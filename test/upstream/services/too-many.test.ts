/** A service that says with another status than 429 that there are too many requests. */
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/kit/clock.ts";
import type { ServiceAdapter } from "../../../src/upstream/services/adapter.ts";
import { createPiper } from "../../../src/upstream/services/piper/piper.ts";
import { ServiceUpstream } from "../../../src/upstream/services/service-upstream.ts";
import type { FakeAnswer, FakeScript } from "../../helpers/fake-answer.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { piper } from "../../kit/vendors/piper.ts";
import { jsonError } from "../../kit/vendors/timed-steps.ts";
import { asked, speech } from "./rig.ts";

/** As Amazon Polly: 400, and a word in the body. */
const ADAPTER: ServiceAdapter = {
  ...createPiper(),
  refusals: {
    codesOf: ({ __type }) => [__type],
    meanings: { ThrottlingException: { code: "upstream_rate_limited" } },
    tooManyStatuses: [400],
  },
};

function throttled(): FakeAnswer {
  return jsonError(400, { __type: "ThrottlingException", message: "Rate exceeded" });
}

async function rig(script: FakeScript, patienceMs: number) {
  const vendor = await startFakeUpstream(script);
  const upstream = new ServiceUpstream({
    name: "polly",
    adapter: ADAPTER,
    baseUrl: vendor.url,
    key: "",
    voices: [],
    maxOpen: 8,
    maxQueued: 16,
    timeoutMs: 5000,
    patienceMs,
    log: watchedLog,
    clock: systemClock,
    onRead: () => undefined,
  });
  const close = async (): Promise<void> => {
    await upstream.close();
    await vendor[Symbol.asyncDispose]();
  };
  return { vendor, upstream, [Symbol.asyncDispose]: close };
}

const VOICE = "en_US-lessac-medium";

describe("too many requests, said with status 400", () => {
  it("is asked again in a while, and the limit is halved", async () => {
    await using all = await rig(
      (request, index) => (index === 0 ? throttled() : piper()(request, index)),
      5000,
    );
    const recorder = await asked(all.upstream, speech(VOICE));
    expect(recorder.failure).toBeNull();
    expect(recorder.calls).toEqual(["sent", "turned away", "sent", "head", "chunk", "end"]);
    // One at a time, of the eight that it is set to; the answer that followed makes it two.
    expect(all.upstream.region()).toMatchObject({ isHealthy: true, limits: [{ limit: 2 }] });
  });

  it("is upstream_rate_limited where patience is over, and the limit is halved, too", async () => {
    await using all = await rig(throttled, 0);
    const recorder = await asked(all.upstream, speech(VOICE));
    expect(recorder.failure).toMatchObject({ code: "upstream_rate_limited" });
    expect(all.vendor.requests).toHaveLength(1);
    expect(all.upstream.region().limits).toMatchObject([{ limit: 1 }]);
  });

  it.each([
    ["another word", () => jsonError(400, { __type: "ValidationException" })],
    ["a body that breaks off", (): FakeAnswer => ({ status: 400, body: ['{"__type":"Thr', "reset"] })],
  ])("%s is a refusal, and is not asked again", async (_name, answer) => {
    await using all = await rig(answer, 5000);
    const recorder = await asked(all.upstream, speech(VOICE));
    expect(recorder.failure).toMatchObject({ code: "upstream_invalid" });
    expect(all.vendor.requests).toHaveLength(1);
    expect(all.upstream.region()).toMatchObject({ isHealthy: true, limits: [] });
  });
});
