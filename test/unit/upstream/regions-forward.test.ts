/** Requests that are passed on over several regions: which of them may be asked for again, and which must not. */
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { GatewayError } from "../../../src/errors.ts";
import type { Forwarded, ForwardRequest } from "../../../src/upstream/transport/forward.ts";
import type { UpstreamClient } from "../../../src/upstream/upstream-client.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { type FakeReaction, jsonAnswer, refusal, startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { until } from "../../helpers/until.ts";
import { clientOf, nobody, turns } from "./rig.ts";

interface Passed {
  readonly calls: string[];
  readonly forwarded: Forwarded;
  status: number;
  body: string;
  failure: GatewayError | null;
  isOver: boolean;
}

function pass(client: UpstreamClient, request: Partial<ForwardRequest>): Passed {
  const passed: { -readonly [K in keyof Passed]: Passed[K] } = {
    calls: [],
    status: 0,
    body: "",
    failure: null,
    isOver: false,
    forwarded: client.forward(
      { method: "GET", path: "/v1/user", headers: [], body: null, group: "", ...request },
      {
        head: (status) => {
          passed.status = status;
          passed.calls.push("head");
        },
        data: (piece) => {
          passed.body += Buffer.from(piece).toString();
        },
        end: () => {
          passed.calls.push("end");
          passed.isOver = true;
        },
        error: (error) => {
          passed.calls.push("error");
          passed.failure = error;
          passed.isOver = true;
        },
      },
    ),
  };
  return passed;
}

async function passOver(client: UpstreamClient, request: Partial<ForwardRequest>): Promise<Passed> {
  const passed = pass(client, request);
  await until("the end of the answer", () => passed.isOver);
  return passed;
}

const FINE = jsonAnswer(200, { from: "second" });
const JSON_HEADERS: ForwardRequest["headers"] = [["content-type", "application/json"]];

describe("passing a request on over several regions", () => {
  it.each<[string, FakeReaction]>([
    ["503", refusal(503, "x")],
    ["reset", "reset"],
  ])("a GET or HEAD goes on to the next after a %s", async (_name, reaction) => {
    for (const method of ["GET", "HEAD"] as const) {
      await using first = await startFakeUpstream(() => reaction);
      await using second = await startFakeUpstream(() => FINE);
      await using client = clientOf([first.url, second.url]);
      const passed = await passOver(client, { method });
      expect(passed.calls).toEqual(["head", "end"]);
      expect([passed.status, passed.body]).toEqual([200, method === "GET" ? '{"from":"second"}' : ""]);
      expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
      expect(client.stats().open).toBe(0);
    }
  });

  it("a GET that is not answered goes on to the next, and has all its time where none is left", async () => {
    await using first = await startFakeUpstream(() => "silence");
    await using second = await startFakeUpstream(() => "silence");
    const clock = new FakeClock();
    await using client = clientOf([first.url, second.url], { clock, timeoutMs: 10_000 });
    const passed = pass(client, {});
    await until("the first", () => first.requests.length === 1);
    clock.advance(10_000);
    await until("the second", () => second.requests.length === 1);
    await turns();
    clock.advance(239_999);
    expect(passed.isOver).toBe(false);
    clock.advance(1);
    expect(passed.failure?.code).toBe("upstream_timeout");
  });

  it("a refusal, and the last failure, are handed on as they are", async () => {
    await using first = await startFakeUpstream(() => refusal(404, "here"));
    await using second = await startFakeUpstream(() => refusal(503, "second"));
    await using client = clientOf([first.url, second.url]);
    const refused = await passOver(client, {});
    expect(refused.status).toBe(404);
    expect(second.requests).toHaveLength(0);
    first.use(() => refusal(500, "first"));
    const failed = await passOver(client, {});
    expect(failed.status).toBe(503);
    expect(failed.body).toContain("second");
  });

  it.each([
    ["POST", "/v1/text-to-speech/v/stream?output_format=pcm_8000"],
    ["POST", "/v1/text-to-dialogue"],
    ["POST", "/v1/sound-generation?x=1"],
  ] as const)("%s %s goes on with its whole body, received or not", async (method, path) => {
    for (const reaction of ["reset", refusal(500, "x")] as const) {
      await using first = await startFakeUpstream(() => reaction);
      await using second = await startFakeUpstream(() => FINE);
      await using client = clientOf([first.url, second.url]);
      const body = JSON.stringify({ text: "Hello" });
      const passed = await passOver(client, { method, path, body, headers: JSON_HEADERS, group: "m" });
      expect(passed.status).toBe(200);
      expect([first.requests[0]?.text, second.requests[0]?.text]).toEqual([body, body]);
    }
  });

  it.each([
    ["POST", "/v1/history/download"],
    ["POST", "/v1/workspace/webhooks"],
    ["POST", "/v1/text-to-speech-like"],
    ["PATCH", "/v1/workspace/webhooks/w"],
    ["DELETE", "/v1/history/x"],
    ["DELETE", "/v1/text-to-speech/v"],
  ] as const)("%s %s is not sent twice where it may have been received", async (method, path) => {
    await using first = await startFakeUpstream(() => "reset");
    await using second = await startFakeUpstream(() => FINE);
    await using client = clientOf([first.url, second.url]);
    const lost = await passOver(client, { method, path, body: "{}", headers: JSON_HEADERS });
    expect(lost.failure?.code).toBe("upstream_unreachable");
    await using other = await startFakeUpstream(() => refusal(500, "mine"));
    await using again = clientOf([other.url, second.url]);
    const failed = await passOver(again, { method, path, body: "{}", headers: JSON_HEADERS });
    expect([failed.status, failed.body.includes("mine")]).toEqual([500, true]);
    expect(second.requests).toHaveLength(0);
  });

  it.each(["POST", "PATCH", "DELETE"] as const)(
    "%s goes on where nobody could be connected to",
    async (method) => {
      const gone = nobody();
      await using second = await startFakeUpstream(() => FINE);
      await using client = clientOf([gone.url, second.url]);
      const passed = await passOver(client, { method, path: "/v1/x", body: "{}", headers: JSON_HEADERS });
      expect(passed.status).toBe(200);
      expect(second.requests[0]).toMatchObject({ method, text: "{}" });
    },
  );

  it("an upload that streams goes on whole where nobody could be connected to", async () => {
    const gone = nobody();
    await using second = await startFakeUpstream(() => FINE);
    await using client = clientOf([gone.url, second.url]);
    const pieces = Array.from({ length: 50 }, (_, index) => `${index}:${"x".repeat(10_000)};`);
    const body = Readable.from(pieces, { objectMode: false });
    const passed = await passOver(client, { method: "POST", path: "/v1/audio-isolation", body });
    expect(passed.status).toBe(200);
    expect(second.requests[0]?.text).toBe(pieces.join(""));
    expect(body.destroyed).toBe(true);
  });

  it("an upload that was begun is not sent again, and is destroyed", async () => {
    await using first = await startFakeUpstream(() => "reset");
    await using second = await startFakeUpstream(() => FINE);
    await using client = clientOf([first.url, second.url]);
    const body = Readable.from(["all of it"], { objectMode: false });
    const passed = await passOver(client, { method: "POST", path: "/v1/speech-to-speech/v", body });
    expect(passed.failure?.code).toBe("upstream_unreachable");
    expect(second.requests).toHaveLength(0);
    expect(body.destroyed).toBe(true);
  });

  it("an answer that breaks off after its head ends with the error", async () => {
    await using first = await startFakeUpstream(() => ({ body: ["some", { afterMs: 20 }, "reset"] }));
    await using second = await startFakeUpstream(() => FINE);
    await using client = clientOf([first.url, second.url]);
    const passed = await passOver(client, {});
    expect(passed.calls).toEqual(["head", "error"]);
    expect([passed.body, second.requests.length]).toEqual(["some", 0]);
  });

  it("what waits for a region goes on when that goes down", async () => {
    await using first = await startFakeUpstream(() => "silence");
    await using second = await startFakeUpstream(() => FINE);
    const clock = new FakeClock();
    await using client = clientOf([first.url, second.url], { clock, maxConnections: 1, timeoutMs: 10_000 });
    const reading = pass(client, {});
    await until("the first request", () => first.requests.length === 1);
    const writing = pass(client, { method: "DELETE", path: "/v1/history/x" });
    clock.advance(10_000);
    await until("both", () => reading.isOver && writing.isOver);
    expect([reading.status, writing.status]).toEqual([200, 200]);
    expect(first.requests).toHaveLength(1);
  });

  it("abort() and close() end it wherever it is, with its upload", async () => {
    const gone = nobody();
    await using second = await startFakeUpstream(() => "silence");
    const clock = new FakeClock();
    const client = clientOf([gone.url, second.url], { clock });
    const body = Readable.from(["a"], { objectMode: false });
    const given = pass(client, { method: "POST", path: "/v1/audio-isolation", body });
    await until("the second region", () => second.requests.length === 1);
    given.forwarded.pause();
    given.forwarded.touch();
    given.forwarded.resume();
    given.forwarded.abort();
    given.forwarded.abort();
    expect(body.destroyed).toBe(true);
    const left = pass(client, {});
    await until("the second request", () => second.requests.length === 2);
    await client.close();
    expect(left.failure?.code).toBe("draining");
    expect([given.calls, client.stats().open, clock.pending]).toEqual([[], 0, 0]);
    await until("no connection", () => second.connections.open === 0);
  });
});
