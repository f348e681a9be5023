/** Pause, abort, deadlines, permits and shutdown of the upstream client, against a real server. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { READ_BYTES, type Synthesis } from "../../../src/upstream/types.ts";
import type { UpstreamClient } from "../../../src/upstream/upstream-client.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import {
  type FakeRequest,
  type FakeUpstream,
  isTimed,
  ndjsonSpeech,
  speaking,
  speechAnswer,
  startFakeUpstream,
} from "../../helpers/fake-upstream.ts";
import { trustTestCertificate } from "../../helpers/test-certificate.ts";
import { until } from "../../helpers/until.ts";
import { clientOf, RAW_SPEECH, Recorder, SPEECH, turns } from "./rig.ts";

const AUDIO_TYPE = { "content-type": "audio/basic" };
const ENDLESS = { headers: AUDIO_TYPE, body: [{ endless: Buffer.alloc(65_536, 0x7f) }] };
const STALLED = { headers: AUDIO_TYPE, body: ["abc", "stall" as const] };

interface Opened {
  readonly recorder: Recorder;
  readonly synthesis: Synthesis;
}

function openOn(client: UpstreamClient, request = RAW_SPEECH): Opened {
  const recorder = new Recorder();
  return { recorder, synthesis: client.open(request, recorder) };
}

/** TLS writes behind its back: a server is blocked for good when it has written nothing for a while. */
async function writtenWhenBlocked(request: FakeRequest): Promise<number> {
  for (;;) {
    const written = request.bytesWritten;
    await turns(200);
    if (request.isBlocked && request.bytesWritten === written) return written;
  }
}

function openMany(client: UpstreamClient, count: number): Opened[] {
  return Array.from({ length: count }, () => openOn(client));
}

function requestOf(server: FakeUpstream, index = 0) {
  const request = server.requests[index];
  if (request === undefined) throw new Error(`Request ${index} never came, expected it`);
  return request;
}

describe.each([
  ["TCP", false],
  ["TLS", true],
])("Synthesis.pause() over %s", (_name, isTls) => {
  let trust: Disposable | null = null;
  beforeAll(() => {
    trust = isTls ? trustTestCertificate() : null;
  });
  afterAll(() => trust?.[Symbol.dispose]());

  it("closes the TCP window until resume()", async () => {
    await using server = await startFakeUpstream(() => ENDLESS, { isTls });
    await using client = clientOf(server.url);
    const { recorder, synthesis } = openOn(client);
    await until("the first audio", () => recorder.bytes > 0);
    synthesis.pause();
    const received = recorder.bytes;
    // The kernel's buffers fill up, then the server's write blocks and stays blocked.
    const written = await writtenWhenBlocked(requestOf(server));
    await turns(200);
    expect(requestOf(server).bytesWritten).toBe(written);
    expect(recorder.bytes).toBe(received);
    synthesis.resume();
    await until("the server to write on", () => requestOf(server).bytesWritten > written + 1_000_000);
    expect(recorder.bytes).toBeGreaterThan(received);
    synthesis.abort();
  });

  it("loses and reorders nothing over hundreds of pauses at any point", async () => {
    const text = "All that was said has to come, and in its order. ".repeat(10);
    const speech = ndjsonSpeech({ text, format: "pcm_16000", charsPerChunk: 2 });
    for (const request of [RAW_SPEECH, SPEECH]) {
      await using server = await startFakeUpstream(
        () => speechAnswer(speech, { isTimed: request.wantsTiming, splitBytes: 4099 }),
        { isTls },
      );
      await using client = clientOf(server.url);
      const recorder = new Recorder();
      const synthesis = client.open({ ...request, text }, recorder);
      let pauses = 0;
      recorder.onChunk = () => {
        pauses += 1;
        synthesis.pause();
        if (pauses % 3 === 0) synthesis.resume();
        else setImmediate(() => synthesis.resume());
      };
      await recorder.over();
      expect(recorder.isEnded).toBe(true);
      expect(recorder.audio.equals(speech.audio)).toBe(true);
      expect(pauses).toBeGreaterThan(50);
    }
  });

  it("from outside holds back even what undici had parsed", async () => {
    let go = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    await using server = await startFakeUpstream(
      () => ({
        headers: AUDIO_TYPE,
        body: ["one", { until: gate }, "two"],
      }),
      { isTls },
    );
    await using client = clientOf(server.url);
    const { recorder, synthesis } = openOn(client);
    await until("the first piece", () => recorder.bytes === 3);
    synthesis.pause();
    go();
    await until("the server's last byte", () => requestOf(server).isFinished);
    await turns(50);
    expect(recorder.calls).toEqual(["sent", "head", "chunk"]);
    expect(recorder.audio.toString()).toBe("one");
    synthesis.resume();
    await recorder.over();
    expect(recorder.audio.toString()).toBe("onetwo");
    expect(recorder.isEnded).toBe(true);
  });

  it("before anything has come holds back the body", async () => {
    await using server = await startFakeUpstream(speaking(), { isTls });
    await using client = clientOf(server.url);
    const { recorder, synthesis } = openOn(client);
    synthesis.pause();
    await until("the head", () => recorder.heads.length === 1);
    await turns(50);
    expect(recorder.bytes).toBe(0);
    synthesis.resume();
    await recorder.over();
    expect(recorder.isEnded).toBe(true);
  });

  it("from inside a chunk lets the rest of that read come, and no more", async () => {
    await using server = await startFakeUpstream(() => ENDLESS, { isTls });
    await using client = clientOf(server.url);
    const { recorder, synthesis } = openOn(client);
    // TLS is parsed a moment after it was read, when a second read may be on its way.
    const mostBytes = (isTls ? 2 : 1) * READ_BYTES;
    for (let round = 0; round < 200; round += 1) {
      const before = recorder.bytes;
      let pausedAt = 0;
      recorder.onChunk = () => {
        synthesis.pause();
        pausedAt ||= recorder.bytes;
      };
      synthesis.resume();
      await until("the next read", () => pausedAt > 0);
      await turns(4);
      expect(recorder.bytes - before).toBeLessThanOrEqual(mostBytes);
    }
    synthesis.abort();
  });

  it("keeps the order of what is held and what comes in the same read, when it goes on in its middle", async () => {
    const letters = [..."abcdefghij"];
    const inOneRead = { headers: AUDIO_TYPE, body: [{ afterMs: 30 }, ...letters] };
    await using server = await startFakeUpstream(() => inOneRead, { isTls });
    let pieces = 0;
    // As a wake does that falls due between two pieces.
    const onRead = (): void => {
      pieces += 1;
      if (pieces % 4 === 0) opened.synthesis.resume();
    };
    await using client = clientOf(server.url, { onRead });
    const opened = openOn(client);
    const { recorder, synthesis } = opened;
    recorder.onChunk = () => synthesis.pause();
    await until("the head", () => recorder.heads.length === 1);
    synthesis.pause();
    await until("the server's last byte", () => requestOf(server).isFinished);
    for (let turn = 0; turn < 100 && !recorder.isEnded; turn += 1) {
      await turns(2);
      synthesis.resume();
    }
    expect(recorder.audio.toString()).toBe("abcdefghij");
    expect(recorder.isEnded).toBe(true);
  });

  it("hands on what it has read whole, however often the receiver pauses", async () => {
    const body = Array.from({ length: 50 }, () => Buffer.alloc(160, 0x7f));
    await using server = await startFakeUpstream(() => ({ headers: AUDIO_TYPE, body }), { isTls });
    await using client = clientOf(server.url);
    const { recorder, synthesis } = openOn(client);
    recorder.onChunk = () => synthesis.pause();
    await until("the head", () => recorder.heads.length === 1);
    await until("the server's last byte", () => requestOf(server).isFinished);
    await turns(50);
    let resumes = 0;
    for (; !recorder.isEnded && resumes < 50; resumes += 1) {
      synthesis.resume();
      await turns(5);
    }
    expect(recorder.bytes).toBe(50 * 160);
    expect(resumes).toBeLessThan(12);
  });

  it("frees its place with the end of the answer held back, and can be aborted", async () => {
    let go = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const script = () => ({ headers: AUDIO_TYPE, body: ["one", { until: gate }, "two"] });
    await using server = await startFakeUpstream(script, { isTls });
    await using client = clientOf(server.url, { maxConnections: 1 });
    const { recorder, synthesis } = openOn(client);
    await until("the first piece", () => recorder.bytes === 3);
    synthesis.pause();
    go();
    await until("the server's last byte", () => requestOf(server).isFinished);
    // Once its end was read, though nobody has it yet.
    await until("the place to be free", () => client.stats().open === 0);
    synthesis.abort();
    const next = openOn(client);
    await next.recorder.over();
    expect(next.recorder.audio.toString()).toBe("onetwo");
    expect(recorder.audio.toString()).toBe("one");
  });
});

it("onRead is called behind each piece of an answer", async () => {
  const seen: number[] = [];
  const recorder = new Recorder();
  await using server = await startFakeUpstream(() => ({
    headers: AUDIO_TYPE,
    body: ["one", { afterMs: 5 }, "two"],
  }));
  await using client = clientOf(server.url, { onRead: () => seen.push(recorder.bytes) });
  client.open(RAW_SPEECH, recorder);
  await recorder.over();
  expect(seen).toEqual([3, 6]);
});

describe("Synthesis.resume()", () => {
  /**
   * What the user saw: every stream of a session died with an AssertionError when one stream's chunk made another
   * one go on. Undici resumes by running its parser on the spot and allows only one parser at a time.
   */
  it("is allowed from inside another synthesis's chunk", async () => {
    await using server = await startFakeUpstream(() => ENDLESS);
    await using client = clientOf(server.url);
    const [first, second] = [openOn(client), openOn(client)];
    await until("audio of both", () => first.recorder.bytes > 0 && second.recorder.bytes > 0);
    for (let round = 0; round < 20; round += 1) {
      second.synthesis.pause();
      await turns(3);
      const bytes = second.recorder.bytes;
      first.recorder.onChunk = () => second.synthesis.resume();
      await until("the other to go on", () => second.recorder.bytes > bytes);
    }
    expect(first.recorder.failure ?? second.recorder.failure).toBeNull();
    first.synthesis.abort();
    second.synthesis.abort();
  });
});

describe("Synthesis.abort()", () => {
  it("is seen by the server at once, and no handler is called any more", async () => {
    await using server = await startFakeUpstream(() => ENDLESS);
    await using client = clientOf(server.url);
    const { recorder, synthesis } = openOn(client);
    await until("the first audio", () => recorder.bytes > 0);
    synthesis.abort();
    synthesis.abort();
    const bytes = recorder.bytes;
    // Its connection is still open while the caller goes on, and closed before anything else happens.
    expect(client.stats().open).toBe(1);
    await Promise.resolve();
    expect(client.stats().open).toBe(0);
    await until("the server to see it go", () => requestOf(server).abortedAtMs !== null, {
      deadlineMs: 1000,
    });
    expect(recorder.calls).toEqual(["sent", "head", "chunk"]);
    expect(recorder.bytes).toBe(bytes);
  });

  it("works on a paused stream and from inside a chunk", async () => {
    await using server = await startFakeUpstream(() => ENDLESS);
    await using client = clientOf(server.url);
    const paused = openOn(client);
    await until("audio", () => paused.recorder.bytes > 0);
    paused.synthesis.pause();
    await until("the server to be blocked", () => requestOf(server).isBlocked);
    paused.synthesis.abort();
    paused.synthesis.resume();
    const inside = openOn(client);
    inside.recorder.onChunk = () => inside.synthesis.abort();
    await until(
      "both to be gone",
      () => server.requests.filter((request) => request.abortedAtMs !== null).length === 2,
    );
    expect(inside.recorder.chunks).toHaveLength(1);
    expect(inside.recorder.isOver || paused.recorder.isOver).toBe(false);
  });

  it("between two records of one piece stops at the first", async () => {
    const lines = ndjsonSpeech({ text: SPEECH.text }).chunks.map((chunk) => chunk.line);
    await using server = await startFakeUpstream(() => ({ body: [Buffer.concat(lines)] }));
    await using client = clientOf(server.url);
    const { recorder, synthesis } = openOn(client, SPEECH);
    recorder.onChunk = () => synthesis.abort();
    await until("it to be over", () => client.stats().open === 0 && recorder.chunks.length > 0);
    await turns();
    expect(recorder.chunks).toHaveLength(1);
    expect(recorder.isOver).toBe(false);
  });

  it("from inside the last record, which the end of the body completes, keeps the end away", async () => {
    const lines = ndjsonSpeech({ text: "Hi" }).chunks.map((chunk) => chunk.line);
    await using server = await startFakeUpstream(() => ({ body: [Buffer.concat(lines).subarray(0, -1)] }));
    await using client = clientOf(server.url);
    const { recorder, synthesis } = openOn(client, SPEECH);
    recorder.onChunk = () => synthesis.abort();
    await until("it to be over", () => client.stats().open === 0 && recorder.chunks.length > 0);
    await turns();
    expect(recorder.isOver).toBe(false);
  });

  it("while it connects sends nothing, and the connection serves the next", async () => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url);
    const given = openOn(client);
    // Its permit is granted in a microtask; connecting takes the event loop's help.
    await Promise.resolve();
    expect(client.stats()).toEqual({ open: 1, queued: 0, refused: 0, connected: 0 });
    given.synthesis.abort();
    await until("undici to let go of it", () => client.stats().open === 0);
    const { recorder } = openOn(client);
    await recorder.over();
    expect(given.recorder.calls).toEqual([]);
    expect(server.requests).toHaveLength(1);
    expect(server.connections.opened).toBe(1);
  });

  it("right after open() sends nothing", async () => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url);
    const { recorder, synthesis } = openOn(client);
    synthesis.abort();
    expect(client.stats().open).toBe(0);
    await turns();
    expect(server.connections.opened).toBe(0);
    expect(recorder.calls).toEqual([]);
  });

  it("hundreds of times, anywhere, leaves no permit, connection, timer or listener behind", async () => {
    const warnings: string[] = [];
    const onWarning = (warning: Error) => warnings.push(warning.name);
    process.on("warning", onWarning);
    const clock = new FakeClock();
    const script = speaking({ splitBytes: 211 });
    await using server = await startFakeUpstream((request, index) => {
      if (index % 5 === 0) return "silence";
      return index % 5 === 1 && !isTimed(request) ? ENDLESS : script(request, index);
    });
    await using client = clientOf(server.url, { maxConnections: 8, maxQueued: 1000, clock });
    const given: Recorder[] = [];
    for (let round = 0; round < 300; round += 1) {
      const { recorder, synthesis } = openOn(client, round % 2 === 0 ? SPEECH : RAW_SPEECH);
      given.push(recorder);
      if (round % 4 === 1) synthesis.pause();
      await turns(round % 40 === 0 ? 40 : round % 7);
      if (!recorder.isOver) {
        synthesis.abort();
        recorder.calls.push("given up");
      }
      expect(server.connections.open).toBeLessThanOrEqual(8);
    }
    await until("every request to be let go of", () => client.stats().open === 0);
    expect(client.stats().queued).toBe(0);
    expect(clock.pending).toBe(0);
    const endings = given.map((recorder) => recorder.calls.at(-1) ?? "");
    expect(endings.filter((ending) => ending !== "given up" && ending !== "end")).toEqual([]);
    await until("the server's side to be closed", () =>
      server.requests.every((request) => request.isFinished || request.abortedAtMs !== null),
    );
    server.use(speaking());
    const { recorder } = openOn(client);
    await recorder.over();
    expect(recorder.isEnded).toBe(true);
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });
});

describe("permits", () => {
  it("open at most maxConnections requests and serve the rest in order", async () => {
    await using server = await startFakeUpstream(() => STALLED);
    await using client = clientOf(server.url, { maxConnections: 2, maxQueued: 3 });
    const opened = openMany(client, 5);
    await until("two requests", () => server.requests.length === 2);
    await turns();
    expect(server.requests).toHaveLength(2);
    expect(client.stats()).toMatchObject({ open: 2, queued: 3 });
    for (const [index, { synthesis }] of opened.entries()) {
      await until("its turn", () => opened[index]?.recorder.calls.includes("chunk") === true);
      expect(opened.slice(index + 2).every((later) => later.recorder.calls.length === 0)).toBe(true);
      synthesis.abort();
    }
    expect(server.connections.open).toBeLessThanOrEqual(2);
  });

  it("let one more wait than maxQueued fail as upstream_busy", async () => {
    await using server = await startFakeUpstream(() => STALLED);
    await using client = clientOf(server.url, { maxConnections: 1, maxQueued: 2 });
    const opened = openMany(client, 4);
    const error = await opened[3]?.recorder.failed();
    expect(error?.code).toBe("upstream_busy");
    expect(error?.retryAfterMs).toBeGreaterThan(0);
    expect(client.stats()).toMatchObject({ open: 1, queued: 2 });
    await expect(client.get("/v1/voices")).rejects.toMatchObject({ code: "upstream_busy" });
  });

  it("forget a waiter that gave up", async () => {
    await using server = await startFakeUpstream(() => STALLED);
    await using client = clientOf(server.url, { maxConnections: 1, maxQueued: 2 });
    const [first, second, third] = openMany(client, 3);
    await until("the first request", () => server.requests.length === 1);
    second?.synthesis.abort();
    expect(client.stats()).toMatchObject({ open: 1, queued: 1 });
    first?.synthesis.abort();
    await until("the third's turn", () => third?.recorder.calls.includes("chunk") === true);
    expect(second?.recorder.calls).toEqual([]);
    expect(server.requests).toHaveLength(2);
  });
});

describe("deadlines", () => {
  it("end a request that is not answered, and start only with its permit", async () => {
    await using server = await startFakeUpstream(() => "silence");
    const clock = new FakeClock();
    await using client = clientOf(server.url, { clock, timeoutMs: 5000, maxConnections: 1 });
    const [first, second] = openMany(client, 2);
    await until("the first request", () => server.requests.length === 1);
    clock.advance(4999);
    await turns();
    expect(first?.recorder.isOver).toBe(false);
    clock.advance(1);
    expect(first?.recorder.failure).toMatchObject({ code: "upstream_timeout" });
    await until("the server to see it go", () => requestOf(server).abortedAtMs !== null);
    await until("the second request", () => server.requests.length === 2);
    expect(second?.recorder.isOver).toBe(false);
    clock.advance(5000);
    expect(second?.recorder.failure?.message).toMatch(/did not answer: nothing came for 5000 ms/);
    expect(clock.pending).toBe(0);
  });

  it("end a body that falls silent, each piece starting the time again", async () => {
    let go = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    await using server = await startFakeUpstream(() => ({
      headers: AUDIO_TYPE,
      body: ["one", { until: gate }, "two", "stall"],
    }));
    const clock = new FakeClock();
    await using client = clientOf(server.url, { clock, timeoutMs: 5000 });
    const { recorder } = openOn(client);
    await until("the first piece", () => recorder.bytes === 3);
    clock.advance(4999);
    go();
    await until("the second piece", () => recorder.bytes === 6);
    clock.advance(4999);
    await turns();
    expect(recorder.isOver).toBe(false);
    clock.advance(1);
    expect(recorder.failure).toMatchObject({ code: "upstream_timeout" });
    expect(recorder.failure?.message).toMatch(/fell silent/);
  });

  it("do not count the time of a pause", async () => {
    await using server = await startFakeUpstream(() => STALLED);
    const clock = new FakeClock();
    await using client = clientOf(server.url, { clock, timeoutMs: 5000 });
    const { recorder, synthesis } = openOn(client);
    await until("the first piece", () => recorder.bytes === 3);
    clock.advance(3000);
    synthesis.pause();
    clock.advance(600_000);
    expect(recorder.isOver).toBe(false);
    synthesis.resume();
    await turns();
    clock.advance(4999);
    expect(recorder.isOver).toBe(false);
    clock.advance(1);
    expect(recorder.failure?.code).toBe("upstream_timeout");
  });
});

describe("UpstreamClient.close()", () => {
  it("close() fails what is open, waiting and connecting, closes the connections, and may come again", async () => {
    await using server = await startFakeUpstream(() => STALLED);
    const client = clientOf(server.url, { maxConnections: 2 });
    const opened = openMany(client, 3);
    await until("two answers", () => opened.filter(({ recorder }) => recorder.bytes > 0).length === 2);
    await Promise.all([client.close(), client.close()]);
    await client.close();
    expect(opened.map(({ recorder }) => recorder.failure?.code)).toEqual([
      "draining",
      "draining",
      "draining",
    ]);
    await until("the server's side to be closed", () => server.connections.open === 0);
    expect(client.stats()).toEqual({ open: 0, queued: 0, refused: 0, connected: 0 });
    const late = openOn(client);
    expect((await late.recorder.failed()).code).toBe("draining");
  });

  it("close() ends a request that is still connecting", async () => {
    await using server = await startFakeUpstream();
    const client = clientOf(server.url);
    const { recorder } = openOn(client);
    await Promise.resolve();
    await client.close();
    expect(recorder.calls).toEqual(["error draining"]);
    expect(client.stats().open).toBe(0);
    await until("no connection", () => server.connections.open === 0);
  });
});
