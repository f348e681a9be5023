/** Speech over several regions, each a real HTTP server: which is asked, and what happens when it does not work. */
import { describe, expect, it } from "vitest";
import type { Logger } from "../../../src/kit/log.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import {
  type FakeReaction,
  type FakeScript,
  type FakeUpstream,
  isTimed,
  jsonAnswer,
  ndjsonSpeech,
  refusal,
  speaking,
  startFakeUpstream,
} from "../../helpers/fake-upstream.ts";
import { until } from "../../helpers/until.ts";
import { clientOf, nobody, RAW_SPEECH, Recorder, SPEECH, turns } from "./rig.ts";

type Client = ReturnType<typeof clientOf>;

/** Speech that was asked for; checks are not among it. */
function posts(server: FakeUpstream): number {
  return server.requests.filter((request) => request.method === "POST").length;
}

function checks(server: FakeUpstream): number {
  return server.requests.filter((request) => request.path === "/v1/models").length;
}

async function speak(client: Client, request = SPEECH): Promise<Recorder> {
  const recorder = new Recorder();
  client.open(request, recorder);
  return await recorder.over();
}

/** Turns the clock in small steps, with real time between them for the network. */
async function turnUntil(what: string, clock: FakeClock, isSo: () => boolean): Promise<void> {
  for (let step = 0; step < 600 && !isSo(); step += 1) {
    clock.advance(200);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await until(what, isSo);
}

const SPOKEN = ["head", "chunk", "end"];
const HEADERS = { "content-type": "application/json", "request-id": "first" };

describe("speech over several regions", () => {
  it("goes to the preferred one as long as it works", async () => {
    await using first = await startFakeUpstream();
    await using second = await startFakeUpstream();
    await using client = clientOf([first.url, second.url]);
    for (let count = 0; count < 3; count += 1) expect((await speak(client)).isEnded).toBe(true);
    expect([posts(first), posts(second)]).toEqual([3, 0]);
    expect(client.regions()).toMatchObject([
      { name: new URL(first.url).host, isHealthy: true, requests: 3, failovers: 0 },
      { name: new URL(second.url).host, isHealthy: true, requests: 0, failovers: 0 },
    ]);
  });

  it("goes to the next where the preferred one is down at the start, and then there at once", async () => {
    const gone = nobody();
    await using second = await startFakeUpstream();
    await using client = clientOf([gone.url, second.url]);
    const recorder = await speak(client);
    expect(recorder.calls).toEqual(["sent", ...SPOKEN]);
    expect(recorder.audio).toEqual(ndjsonSpeech({ text: SPEECH.text }).audio);
    await speak(client);
    expect(client.regions()).toMatchObject([
      { isHealthy: false, requests: 1, failovers: 1 },
      { isHealthy: true, requests: 2, failovers: 0 },
    ]);
  });

  it.each<[string, FakeReaction]>([
    ["500", refusal(500, "internal_server_error")],
    ["503", jsonAnswer(503, {}, { "retry-after": "5" })],
    ["reset before the answer", "reset"],
    ["redirect", { status: 302, headers: { location: "/elsewhere" } }],
    [
      "page of a proxy",
      { headers: { "content-type": "text/html", "content-encoding": "gzip" }, body: ["<p>"] },
    ],
    ["cut after the head", { headers: HEADERS, body: ["cut"] }],
    ["reset inside the first record", { headers: HEADERS, body: ['{"audio_base64":"', "reset"] }],
    ["record that is none", { headers: HEADERS, body: ['{"audio_base64":7}\n'] }],
  ])("goes on to the next after a %s, and nothing of it is heard", async (_name, reaction) => {
    await using first = await startFakeUpstream(() => reaction);
    await using second = await startFakeUpstream();
    await using client = clientOf([first.url, second.url]);
    const recorder = await speak(client);
    expect(recorder.calls.filter((call) => call !== "sent")).toEqual(SPOKEN);
    expect(recorder.heads).toEqual([{ requestId: "fake-request", characterCost: 17 }]);
    expect(recorder.audio).toEqual(ndjsonSpeech({ text: SPEECH.text }).audio);
    expect([posts(first), posts(second)]).toEqual([1, 1]);
    expect(client.stats().open).toBe(0);
  });

  it("stays where it began once audio was handed on", async () => {
    const [record] = ndjsonSpeech({ text: SPEECH.text }).chunks;
    if (record === undefined) throw new Error("No chunk");
    await using first = await startFakeUpstream(() => ({
      headers: HEADERS,
      body: [record.line, { afterMs: 20 }, "reset"],
    }));
    await using second = await startFakeUpstream();
    await using client = clientOf([first.url, second.url]);
    const recorder = await speak(client);
    expect(recorder.calls).toEqual(["sent", "head", "chunk", "error upstream_truncated"]);
    expect(posts(second)).toBe(0);
  });

  it.each([400, 401, 402, 403, 404, 408, 422, 429])("stays where it was refused with %i", async (status) => {
    await using first = await startFakeUpstream(() => refusal(status, "no"));
    await using second = await startFakeUpstream();
    await using client = clientOf([first.url, second.url]);
    for (let count = 0; count < 4; count += 1) expect((await speak(client)).failure).not.toBeNull();
    expect([posts(first), posts(second)]).toEqual([4, 0]);
    expect(client.regions()[0]).toMatchObject({ isHealthy: true, failovers: 0 });
  });

  it("is given a limited time to begin where another region is left, and all of it where none is", async () => {
    await using first = await startFakeUpstream(() => "silence");
    await using second = await startFakeUpstream(() => ({ headers: HEADERS, body: ["stall"] }));
    await using third = await startFakeUpstream(() => "silence");
    const clock = new FakeClock();
    await using client = clientOf([first.url, second.url, third.url], { clock, failoverMs: 3000 });
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    await until("the first", () => posts(first) === 1);
    clock.advance(2999);
    await turns();
    expect(posts(second)).toBe(0);
    clock.advance(1);
    await until("the second", () => posts(second) === 1);
    await until("the first to see it go", () => first.requests[0]?.abortedAtMs !== null);
    // Its headers come, and nothing after them.
    await turns(50);
    clock.advance(3000);
    await until("the third", () => posts(third) === 1);
    await turns();
    clock.advance(9999);
    await turns();
    expect(recorder.isOver).toBe(false);
    clock.advance(1);
    expect((await recorder.failed()).code).toBe("upstream_timeout");
    expect(recorder.calls).toEqual(["sent", "sent", "sent", "error upstream_timeout"]);
  });

  it("fails with the last region's error where none works, each asked once", async () => {
    await using first = await startFakeUpstream(() => refusal(500, "a"));
    await using second = await startFakeUpstream(() => refusal(503, "last_word"));
    await using client = clientOf([first.url, second.url]);
    const error = await (await speak(client)).failed();
    expect(error.code).toBe("upstream_failed");
    expect(error.message).toContain("status 503, last_word");
    expect([posts(first), posts(second)]).toEqual([1, 1]);
    // Both are down: the one that failed longest ago is asked first, never nobody.
    second.use(speaking());
    expect((await speak(client)).isEnded).toBe(true);
    expect([posts(first), posts(second)]).toEqual([2, 2]);
  });

  it("leaves one that answered before only after three failures in a row", async () => {
    await using first = await startFakeUpstream();
    await using second = await startFakeUpstream();
    await using client = clientOf([first.url, second.url], { clock: new FakeClock() });
    await speak(client);
    first.use(() => refusal(500, "x"));
    for (let count = 0; count < 3; count += 1) {
      expect(client.regions()[0]?.isHealthy).toBe(true);
      expect((await speak(client)).isEnded).toBe(true);
    }
    expect(client.regions()[0]).toMatchObject({ isHealthy: false, failovers: 3 });
    await speak(client);
    expect([posts(first), posts(second)]).toEqual([4, 4]);
  });

  it("counts a request that was given up with audio in hand as one that was answered", async () => {
    const failing: FakeScript = () => refusal(500, "x");
    await using first = await startFakeUpstream();
    await using second = await startFakeUpstream();
    await using client = clientOf([first.url, second.url], { clock: new FakeClock() });
    await speak(client);
    for (let round = 0; round < 2; round += 1) {
      first.use(failing);
      await speak(client);
      await speak(client);
      first.use(() => ({ headers: { "content-type": "audio/basic" }, body: ["abc", "stall"] }));
      const recorder = new Recorder();
      const synthesis = client.open(RAW_SPEECH, recorder);
      await until("audio", () => recorder.bytes > 0);
      synthesis.abort();
    }
    expect(client.regions()[0]).toMatchObject({ isHealthy: true, failovers: 4 });
  });

  it("survives a region that dies while it speaks", async () => {
    const first = await startFakeUpstream(speaking({ paceX: 1 }));
    await using second = await startFakeUpstream();
    await using client = clientOf([first.url, second.url]);
    const speakers = [new Recorder(), new Recorder(), new Recorder()];
    for (const recorder of speakers) client.open(SPEECH, recorder);
    await until("all to speak", () => speakers.every((recorder) => recorder.bytes > 0));
    await first.close();
    for (const recorder of speakers) expect((await recorder.failed()).code).toBe("upstream_truncated");
    expect(client.regions()[0]?.isHealthy).toBe(false);
    expect((await speak(client)).isEnded).toBe(true);
    expect(posts(second)).toBe(1);
  });

  it("goes to another region where the queue of this one is full", async () => {
    await using first = await startFakeUpstream(() => "silence");
    await using second = await startFakeUpstream();
    await using client = clientOf([first.url, second.url], { maxConnections: 1, maxQueued: 0 });
    client.open(SPEECH, new Recorder());
    expect((await speak(client)).isEnded).toBe(true);
    expect([posts(second), client.regions()[0]?.failovers]).toEqual([1, 1]);
    expect(client.regions()[0]?.isHealthy).toBe(true);
  });

  it("takes those that wait along when their region goes down", async () => {
    await using first = await startFakeUpstream(() => "silence");
    await using second = await startFakeUpstream();
    const clock = new FakeClock();
    await using client = clientOf([first.url, second.url], { clock, failoverMs: 3000, maxConnections: 1 });
    const recorders = Array.from({ length: 4 }, () => new Recorder());
    for (const recorder of recorders) client.open(SPEECH, recorder);
    await until("the first request", () => posts(first) === 1);
    expect(client.stats().queued).toBe(3);
    clock.advance(3000);
    for (const recorder of recorders) await recorder.over();
    expect(recorders.every((recorder) => recorder.isEnded)).toBe(true);
    expect([posts(first), posts(second)]).toEqual([1, 4]);
  });

  it("keeps a pause through a failover", async () => {
    await using first = await startFakeUpstream(() => "silence");
    await using second = await startFakeUpstream();
    const clock = new FakeClock();
    await using client = clientOf([first.url, second.url], { clock, failoverMs: 3000 });
    const recorder = new Recorder();
    const synthesis = client.open(RAW_SPEECH, recorder);
    synthesis.pause();
    await until("the first request", () => posts(first) === 1);
    clock.advance(3000);
    await until("the second answer", () => second.requests[0]?.isFinished === true);
    await turns(50);
    expect(recorder.calls).toEqual(["sent", "sent"]);
    synthesis.resume();
    await recorder.over();
    expect(recorder.isEnded).toBe(true);
  });

  it("abort() before, in the middle of and after a failover leaves nothing behind", async () => {
    await using first = await startFakeUpstream((_request, index) =>
      index % 2 === 0 ? refusal(500, "x") : "silence",
    );
    await using second = await startFakeUpstream((request, index) =>
      index % 2 === 0 ? "silence" : speaking()(request, index),
    );
    const clock = new FakeClock();
    const client = clientOf([first.url, second.url], { clock, maxConnections: 4 });
    const given: Recorder[] = [];
    for (let round = 0; round < 60; round += 1) {
      const recorder = new Recorder();
      const synthesis = client.open(round % 2 === 0 ? SPEECH : RAW_SPEECH, recorder);
      await turns(round % 13);
      const isOver = recorder.isOver;
      synthesis.abort();
      const count = recorder.calls.length;
      await turns(3);
      if (!isOver) expect(recorder.calls.length).toBe(count);
      given.push(recorder);
    }
    await until("every request to be let go of", () => client.stats().open === 0);
    expect(client.stats().queued).toBe(0);
    await client.close();
    expect(clock.pending).toBe(0);
    await until("no connection", () => first.connections.open + second.connections.open === 0);
    expect(given.every((recorder) => recorder.failure === null)).toBe(true);
  });
});

describe("a region that was down", () => {
  const logged: { level: string; fields: object }[] = [];
  const write =
    (level: string) =>
    (fields: object): void => {
      // Each failed request has a line of its own, with an id.
      if (!("error_id" in fields)) logged.push({ level, fields });
    };
  const log: Logger = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };

  it("is checked until it answers, and preferred again; both are logged", async () => {
    logged.length = 0;
    const gone = await startFakeUpstream();
    await gone.close();
    await using second = await startFakeUpstream();
    const clock = new FakeClock();
    await using client = clientOf([gone.url, second.url], { clock, log });
    await speak(client);
    const region = new URL(gone.url).host;
    expect(logged).toEqual([{ level: "warn", fields: { region, code: "upstream_unreachable" } }]);
    // The check finds nobody; the one after it comes later.
    clock.advance(1200);
    await turns(50);
    await using back = await startFakeUpstream(speaking(), { port: Number(new URL(gone.url).port) });
    await turnUntil("a check", clock, () => checks(back) === 1);
    await until("it to be back", () => client.regions()[0]?.isHealthy === true);
    expect(logged[1]).toMatchObject({ level: "info", fields: { region } });
    expect(logged).toHaveLength(2);
    await speak(client);
    expect([posts(back), posts(second)]).toEqual([1, 1]);
    expect(client.regions()[0]).toMatchObject({ requests: 2, failovers: 1 });
  });

  it("that answers checks but does not speak is left at the first failure, and checked later", async () => {
    const script: FakeScript = (request) =>
      request.method === "GET" ? jsonAnswer(200, []) : refusal(500, "x");
    await using first = await startFakeUpstream(script);
    await using second = await startFakeUpstream();
    const clock = new FakeClock();
    await using client = clientOf([first.url, second.url], { clock });
    await speak(client);
    clock.advance(1200);
    await until("it to be back", () => client.regions()[0]?.isHealthy === true);
    await speak(client);
    expect(client.regions()[0]?.isHealthy).toBe(false);
    clock.advance(1500);
    await turns(50);
    expect(checks(first)).toBe(1);
    clock.advance(900);
    await until("the second check", () => checks(first) === 2);
    expect(posts(first)).toBe(2);
  });

  it.each<[string, FakeReaction]>([
    ["fails", refusal(503, "x")],
    ["is not answered", "silence"],
  ])("stays down while its check %s", async (_name, reaction) => {
    await using first = await startFakeUpstream(() => reaction);
    await using second = await startFakeUpstream();
    const clock = new FakeClock();
    await using client = clientOf([first.url, second.url], { clock, failoverMs: 500 });
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    await until("the first request", () => posts(first) === 1);
    clock.advance(500);
    await recorder.over();
    clock.advance(1200);
    await until("a check", () => checks(first) === 1);
    clock.advance(3000);
    await turns(50);
    expect(client.regions()[0]?.isHealthy).toBe(false);
    await turnUntil("the next check", clock, () => checks(first) === 2);
  });

  it("is found by a check where nobody asks it, and one that is in use is not checked", async () => {
    await using first = await startFakeUpstream();
    await using second = await startFakeUpstream();
    const clock = new FakeClock();
    await using client = clientOf([first.url, second.url], { clock, log });
    clock.advance(45_000);
    await speak(client);
    await turnUntil("a check of the second", clock, () => checks(second) === 1);
    expect(checks(first)).toBe(0);
    second.use(() => refusal(500, "x"));
    await turnUntil(
      "the second to be known to be down",
      clock,
      () => client.regions()[1]?.isHealthy === false,
    );
    expect(client.regions()[1]?.requests).toBe(0);
  });

  it("is asked and never checked where it is the only one", async () => {
    await using only = await startFakeUpstream(() => refusal(500, "x"));
    const clock = new FakeClock();
    await using client = clientOf(only.url, { clock });
    await speak(client);
    expect(client.regions()).toMatchObject([{ isHealthy: false, requests: 1 }]);
    clock.advance(600_000);
    only.use(speaking());
    expect((await speak(client)).isEnded).toBe(true);
    expect(client.regions()[0]?.isHealthy).toBe(true);
    expect([only.requests.length, clock.pending]).toEqual([2, 0]);
  });
});

describe("UpstreamClient over several regions", () => {
  it("get() goes on after a failure, and hands a refusal and the last failure on as they are", async () => {
    const gone = nobody();
    await using second = await startFakeUpstream(() => refusal(500, "x"));
    await using third = await startFakeUpstream();
    await using client = clientOf([gone.url, second.url, third.url]);
    expect((await client.get("/v1/voices")).status).toBe(200);
    third.use(() => refusal(404, "no"));
    expect((await client.get("/v1/voices")).status).toBe(404);
    third.use(() => refusal(503, "y"));
    expect((await client.get("/v1/voices")).status).toBeGreaterThanOrEqual(500);
  });

  it("warm() connects to every region, and rejects only where none can be reached", async () => {
    const gone = nobody();
    await using second = await startFakeUpstream();
    await using third = await startFakeUpstream();
    await using client = clientOf([gone.url, second.url, third.url]);
    await client.warm();
    expect(client.stats().connected).toBe(2);
    // What was found out is used: nobody has to wait for the first one.
    await speak(client);
    expect(client.regions()[0]).toMatchObject({ isHealthy: false, requests: 0 });
    const alsoGone = nobody(2);
    await using lost = clientOf([gone.url, alsoGone.url]);
    await expect(lost.warm()).rejects.toMatchObject({ code: "upstream_unreachable" });
  });

  it("keeps a limit for each region", async () => {
    const limited =
      (maximum: number): FakeScript =>
      () => ({
        headers: {
          "content-type": "audio/basic",
          "current-concurrent-requests": "1",
          "maximum-concurrent-requests": String(maximum),
        },
        body: ["x"],
      });
    await using first = await startFakeUpstream(limited(3));
    await using second = await startFakeUpstream(limited(7));
    await using client = clientOf([first.url, second.url]);
    await speak(client, { ...RAW_SPEECH, modelId: "m" });
    first.use(() => "reset");
    await speak(client, { ...RAW_SPEECH, modelId: "m" });
    expect(client.regions().map(({ limits }) => limits)).toEqual([
      [{ group: "m", limit: 3 }],
      [{ group: "m", limit: 7 }],
    ]);
  });

  it("close() ends all regions with their checks, and takes nothing new", async () => {
    const stalled: FakeScript = (request) => ({
      headers: { "content-type": isTimed(request) ? "application/json" : "audio/basic" },
      body: ["abc", "stall"],
    });
    await using first = await startFakeUpstream(stalled);
    await using second = await startFakeUpstream(stalled);
    const clock = new FakeClock();
    const client = clientOf([first.url, second.url], { clock, maxConnections: 1, maxQueued: 0 });
    const recorders = [new Recorder(), new Recorder()];
    for (const recorder of recorders) client.open(RAW_SPEECH, recorder);
    await until("audio of both", () => recorders.every((recorder) => recorder.bytes > 0));
    expect([posts(first), posts(second)]).toEqual([1, 1]);
    await Promise.all([client.close(), client.close()]);
    expect((await (await speak(client)).failed()).code).toBe("draining");
    expect(recorders.map((recorder) => recorder.failure?.code)).toEqual(["draining", "draining"]);
    expect(client.stats()).toMatchObject({ open: 0, queued: 0, connected: 0 });
    expect(clock.pending).toBe(0);
    await until("no connection", () => first.connections.open + second.connections.open === 0);
  });

  it("close() in the middle of a check and of a failover leaves nothing behind", async () => {
    await using first = await startFakeUpstream((request) =>
      request.method === "GET" ? "silence" : refusal(500, "x"),
    );
    await using second = await startFakeUpstream(() => "silence");
    const clock = new FakeClock();
    const client = clientOf([first.url, second.url], { clock });
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    await until("the second region", () => posts(second) === 1);
    clock.advance(1200);
    await until("the check", () => checks(first) === 1);
    await client.close();
    await turns(20);
    expect(recorder.failure?.code).toBe("draining");
    expect(clock.pending).toBe(0);
    await until("no connection", () => first.connections.open + second.connections.open === 0);
  });
});
