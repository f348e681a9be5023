/** Every way in which an upstream can fail, from a real server, and the error that has to come of it. */

import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { wavHeader } from "../../../src/audio/containers/wav.ts";
import type { SynthesisRequest } from "../../../src/upstream/types.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import {
  type FakeReaction,
  type FakeStep,
  jsonAnswer,
  ndjsonSpeech,
  refusal,
  speechAnswer,
  startFakeUpstream,
} from "../../helpers/fake-upstream.ts";
import { until } from "../../helpers/until.ts";
import { watchedLog } from "../../helpers/watched-log.ts";
import { clientOf, RAW_SPEECH, Recorder, SPEECH, turns } from "./rig.ts";

/** Asks a server that reacts so, and gives what came of it. */
async function askOf(
  reaction: FakeReaction,
  request: SynthesisRequest = SPEECH,
  key = "",
): Promise<Recorder> {
  await using server = await startFakeUpstream(() => reaction);
  await using client = clientOf(server.url, { key });
  const recorder = new Recorder();
  client.open(request, recorder);
  await recorder.over();
  expect(client.stats().open).toBe(0);
  return recorder;
}

/** A server below HTTP: answers every connection with these bytes, then with FIN. */
async function startRaw(bytes: string): Promise<{ url: string; [Symbol.asyncDispose]: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("data", () => socket.end(bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function askRaw(bytes: string, request: SynthesisRequest = RAW_SPEECH): Promise<Recorder> {
  await using server = await startRaw(bytes);
  await using client = clientOf(server.url);
  const recorder = new Recorder();
  client.open(request, recorder);
  return await recorder.over();
}

describe("a refusal", () => {
  it("of a voice whose model can't be loaded says what to do, and names the field", async () => {
    const detail = { code: "voice_model_broken", type: "validation_error", param: "voice_id" };
    const { failure } = await askOf(jsonAnswer(400, { detail }));
    expect(failure).toMatchObject({ code: "upstream_invalid", field: "voice_id", isRetryable: false });
    expect(failure?.message).toBe(
      "The upstream can't load the model of this voice (expected another voice; `voicewire doctor --voice-models` says why): " +
        "status 400, voice_model_broken, validation_error",
    );
  });

  const VALIDATION = {
    detail: [
      {
        type: "less_than_equal",
        loc: ["body", "voice_settings", "stability"],
        msg: "Input should be less than or equal to 1",
        input: 3,
      },
    ],
  };
  it.each([
    ["401", refusal(401, "invalid_api_key"), { code: "upstream_unauthorized" }],
    ["401 for want of credits", refusal(401, "quota_exceeded"), { code: "upstream_forbidden" }],
    ["400 for the key", refusal(400, "invalid_api_key"), { code: "upstream_unauthorized" }],
    ["402", refusal(402, "insufficient_credits"), { code: "upstream_forbidden" }],
    [
      "403",
      refusal(403, "output_format_not_allowed"),
      { code: "upstream_forbidden", field: "output_format" },
    ],
    [
      "404 for the voice",
      refusal(404, "voice_not_found"),
      {
        code: "unknown_voice",
        field: "voice_id",
        message: expect.stringContaining("expected one that GET /voices"),
      },
    ],
    [
      "400 for the voice, older",
      jsonAnswer(400, { detail: { status: "voice_does_not_exist" } }),
      { code: "unknown_voice" },
    ],
    [
      "404 for something else",
      refusal(404, "pronunciation_dictionary_not_found"),
      { code: "upstream_not_found" },
    ],
    ["404 of another program", { status: 404, body: ["<h1>Not Found</h1>"] }, { code: "upstream_not_found" }],
    ["400", refusal(400, "text_too_long"), { code: "upstream_invalid", field: "text" }],
    [
      "400 with param",
      refusal(400, "invalid_parameters", { param: "body.seed" }),
      { code: "upstream_invalid", field: "seed" },
    ],
    [
      "400 whose message alone names a field of the context",
      jsonAnswer(400, {
        detail: {
          status: "unsupported_model",
          message: "Providing previous_text or next_text is not supported",
        },
      }),
      { code: "upstream_invalid", field: "previous_text" },
    ],
    ["422", jsonAnswer(422, VALIDATION), { code: "upstream_invalid", field: "voice_settings.stability" }],
    [
      "400 with a code of JavaScript's",
      refusal(400, "constructor"),
      { code: "upstream_invalid", field: undefined },
    ],
    ["413", { status: 413 }, { code: "upstream_invalid" }],
    ["408", { status: 408 }, { code: "upstream_timeout" }],
    [
      "429 without a time",
      refusal(429, "system_busy"),
      { code: "upstream_rate_limited", retryAfterMs: undefined },
    ],
    [
      "429 with seconds",
      jsonAnswer(429, {}, { "retry-after": "2" }),
      { code: "upstream_rate_limited", retryAfterMs: 2000 },
    ],
    [
      "429 with a date",
      jsonAnswer(
        429,
        {},
        {
          date: "Fri, 21 Nov 2025 10:00:00 GMT",
          "retry-after": "Fri, 21 Nov 2025 10:00:05 GMT",
        },
      ),
      { code: "upstream_rate_limited", retryAfterMs: 5000 },
    ],
    ["500", { status: 500, body: ["Internal Server Error"] }, { code: "upstream_failed" }],
    ["503", jsonAnswer(503, {}, { "retry-after": "1" }), { code: "upstream_failed", retryAfterMs: 1000 }],
    ["204", { status: 204 }, { code: "upstream_protocol" }],
    ["302", { status: 302, headers: { location: "/elsewhere" } }, { code: "upstream_protocol" }],
  ] as const)("%s becomes its error", async (_name, reaction, expected) => {
    const recorder = await askOf(reaction);
    expect(recorder.failure).toMatchObject(expected);
    expect(recorder.calls).toEqual(["sent", `error ${expected.code}`]);
  });

  it("says status, code words and what a validation entry says of its field", async () => {
    expect((await askOf(refusal(403, "subscription_required"))).failure?.message).toMatch(
      /: status 403, subscription_required, error$/,
    );
    expect((await askOf(jsonAnswer(422, VALIDATION))).failure?.message).toMatch(
      /status 422, less_than_equal, voice_settings.stability: Input should be less than or equal to 1$/,
    );
  });

  it("repeats neither the text nor the key nor the upstream's message", async () => {
    const request = { ...SPEECH, text: "SecretWords", previousText: "EarlierWords" };
    const key = "sk_hunter2";
    const echoes = [
      refusal(400, "SecretWords", { message: "Bad: SecretWords", param: "SecretWords" }),
      refusal(400, "x", { message: "something else that it says" }),
      refusal(401, key),
      jsonAnswer(422, {
        detail: [{ type: "t", loc: ["body", "SecretWords"], msg: "Not so: EarlierWords and more" }],
      }),
      jsonAnswer(400, { error: "SecretWords", message: "SecretWords" }),
      jsonAnswer(400, { detail: "SecretWords" }),
      { status: 500, body: [`SecretWords ${key}`] },
    ];
    for (const echo of echoes) {
      const { failure } = await askOf(echo, request, key);
      expect(`${failure?.message} ${failure?.field} ${failure?.cause}`).not.toMatch(
        /SecretWords|EarlierWords|hunter|says/,
      );
    }
  });

  it("with an endless body is read to 64 KiB and its connection destroyed", async () => {
    await using server = await startFakeUpstream(() => ({
      status: 500,
      body: [{ endless: Buffer.alloc(8192, 32) }],
    }));
    await using client = clientOf(server.url);
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    expect(await recorder.failed()).toMatchObject({ code: "upstream_failed" });
    await until("the server to see it go", () => server.requests[0]?.abortedAtMs !== null);
  });

  it.each<[string, FakeStep]>([
    ["cut", "cut"],
    ["reset", "reset"],
  ])("whose body is %s: its status decides", async (_name, step) => {
    const recorder = await askOf({ status: 429, body: ['{"detail":', step] });
    expect(recorder.calls).toEqual(["sent", "error upstream_rate_limited"]);
  });

  it("whose body stalls: its status decides at the deadline", async () => {
    await using server = await startFakeUpstream(() => ({ status: 402, body: ["{", "stall"] }));
    const clock = new FakeClock();
    await using client = clientOf(server.url, { clock, timeoutMs: 3000 });
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    await until("the refusal's first byte", () => server.requests[0]?.bytesWritten === 1);
    await turns(50);
    clock.advance(3000);
    expect(recorder.failure?.code).toBe("upstream_forbidden");
  });
});

describe("a connection that fails", () => {
  it("when nobody listens is upstream_unreachable; where the upstream is stands in the log, under the same id", async () => {
    const server = await startFakeUpstream();
    await server.close();
    const lines: object[] = [];
    const log = { ...watchedLog, warn: (fields: object) => lines.push(fields) };
    await using client = clientOf(server.url, { log });
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    const error = await recorder.failed();
    expect(error.code).toBe("upstream_unreachable");
    const { host, port } = new URL(server.url);
    expect(error.message).not.toMatch(new RegExp(`${host}|${port}|127|ECONN`));
    const [, id] = /error id ([0-9a-f]{8}) in the gateway's log/.exec(error.message) ?? [];
    expect(lines.filter((fields) => "error_id" in fields)).toEqual([
      {
        upstream: server.url,
        error_id: id,
        cause: "upstream_unreachable ECONNREFUSED",
        detail: expect.stringContaining("ECONNREFUSED"),
      },
    ]);
    expect(recorder.calls).toEqual(["error upstream_unreachable"]);
    expect(client.stats().open).toBe(0);
  });

  it("by a reset before the answer is upstream_unreachable", async () => {
    expect((await askOf("reset")).calls).toEqual(["sent", "error upstream_unreachable"]);
  });

  it("by an end before the answer, or inside its headers, is upstream_unreachable", async () => {
    expect((await askRaw("")).failure?.code).toBe("upstream_unreachable");
    expect((await askRaw("HTTP/1.1 200 OK\r\ncontent-ty")).failure?.code).toBe("upstream_unreachable");
  });

  it("by something that is not HTTP is upstream_protocol", async () => {
    expect((await askRaw("SSH-2.0-OpenSSH_9.2\r\n")).failure?.code).toBe("upstream_protocol");
  });

  it("by an end or a reset inside the body is upstream_truncated, after what had come", async () => {
    const { chunks } = ndjsonSpeech({ text: SPEECH.text });
    const [first, second] = chunks;
    if (first === undefined || second === undefined)
      throw new Error("Speech is too short, expected two chunks");
    for (const request of [SPEECH, RAW_SPEECH]) {
      for (const step of ["cut", "reset"] as const) {
        let release = (): void => undefined;
        const until1 = new Promise<void>((resolve) => {
          release = resolve;
        });
        const pieces = request.wantsTiming ? [first.line, second.line.subarray(0, 50)] : [first.audio];
        const type = request.wantsTiming ? "application/json" : "audio/basic";
        await using server = await startFakeUpstream(() => ({
          headers: { "content-type": type },
          body: [...pieces, { until: until1 }, step],
        }));
        await using client = clientOf(server.url);
        const recorder = new Recorder();
        client.open(request, recorder);
        await until("the first chunk", () => recorder.chunks.length > 0);
        release();
        expect((await recorder.failed()).code).toBe("upstream_truncated");
        expect(recorder.calls).toEqual(["sent", "head", "chunk", "error upstream_truncated"]);
        expect(recorder.audio).toEqual(first.audio);
      }
    }
  });

  it("by a body shorter than its content-length is upstream_truncated", async () => {
    const head = "HTTP/1.1 200 OK\r\ncontent-type: audio/basic\r\ncontent-length: 10\r\n";
    expect((await askRaw(`${head}\r\n12345`)).failure?.code).toBe("upstream_truncated");
    expect((await askRaw(`${head}connection: close\r\n\r\n12345`)).failure?.code).toBe("upstream_truncated");
    expect((await askRaw(`${head}connection: close\r\n\r\n1234567890`)).calls.at(-1)).toBe("end");
  });

  it("by chunks cut short with connection: close is upstream_truncated", async () => {
    const head =
      "HTTP/1.1 200 OK\r\ncontent-type: audio/basic\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    expect((await askRaw(`${head}5\r\n12345\r\n`)).failure?.code).toBe("upstream_truncated");
    expect((await askRaw(`${head}5\r\n123`)).failure?.code).toBe("upstream_truncated");
    expect((await askRaw(`${head}5\r\n12345\r\n0\r\n\r\n`)).calls.at(-1)).toBe("end");
  });

  it("by a broken chunk size is upstream_protocol", async () => {
    const head = "HTTP/1.1 200 OK\r\ncontent-type: audio/basic\r\ntransfer-encoding: chunked\r\n\r\n";
    expect((await askRaw(`${head}5\r\n12345\r\nHello\r\n`)).failure?.code).toBe("upstream_protocol");
  });
});

describe("a 200 that can't be used", () => {
  it.each(["application/json", "text/html; charset=utf-8", ""])(
    "with content-type %j for bare audio is upstream_protocol",
    async (type) => {
      const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
      const recorder = await askOf({ headers, body: ["{}"] }, RAW_SPEECH);
      expect(recorder.calls).toEqual(["sent", "error upstream_protocol"]);
    },
  );

  it("with a content-encoding is upstream_protocol", async () => {
    const headers = { "content-type": "audio/basic", "content-encoding": "gzip" };
    expect((await askOf({ headers, body: ["x"] }, RAW_SPEECH)).failure?.code).toBe("upstream_protocol");
  });

  it("with a WAV header in front of samples is upstream_protocol, and none of it comes through", async () => {
    const wav = Buffer.concat([wavHeader({ sampleRate: 8000, dataBytes: 160 }), Buffer.alloc(160, 0x7f)]);
    const bare = await askOf({ headers: { "content-type": "audio/wav" }, body: [wav] }, RAW_SPEECH);
    const record = JSON.stringify({ audio_base64: wav.toString("base64"), alignment: null });
    const timed = await askOf({ body: [`${record}\n`] });
    for (const recorder of [bare, timed]) {
      expect(recorder.calls).toEqual(["sent", "head", "error upstream_protocol"]);
      expect(recorder.failure?.message).toContain("WAV header");
    }
  });

  it("with a broken line is upstream_protocol after the good ones, without the line's words", async () => {
    const [first] = ndjsonSpeech({ text: "Hello" }).chunks;
    const recorder = await askOf({
      body: [first?.line ?? "", '{"audio_base64":"SecretWords\n', first?.line ?? ""],
    });
    expect(recorder.calls).toEqual(["sent", "head", "chunk", "error upstream_protocol"]);
    expect(recorder.chunks).toHaveLength(1);
    expect(recorder.failure?.message).toMatch(/\(line 2\)$/);
    expect(`${recorder.failure?.message}${recorder.failure?.cause}`).not.toContain("SecretWords");
  });

  it("with a clean end inside a line is upstream_truncated", async () => {
    const [first] = ndjsonSpeech({ text: "Hello" }).chunks;
    const line = first?.line ?? Buffer.alloc(0);
    expect((await askOf({ body: [line, line.subarray(0, 40)] })).failure?.code).toBe("upstream_truncated");
    expect((await askOf({ body: [line, line.subarray(0, -1)] })).calls.at(-1)).toBe("end");
  });

  it("with an endless line is upstream_protocol, and is not read on", async () => {
    await using server = await startFakeUpstream(() => ({ body: [{ endless: Buffer.alloc(65_536, 0x41) }] }));
    await using client = clientOf(server.url);
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    expect((await recorder.failed()).message).toMatch(/over 4194304 bytes/);
    await until("the server to see it go", () => server.requests[0]?.abortedAtMs !== null);
  });

  it("leaves the next request to a fresh connection", async () => {
    await using server = await startFakeUpstream(() => ({ body: ["nonsense\n", "stall"] }));
    await using client = clientOf(server.url, { maxConnections: 1 });
    const failed = new Recorder();
    client.open(SPEECH, failed);
    await failed.over();
    server.use(() => speechAnswer(ndjsonSpeech({ text: SPEECH.text })));
    const recorder = new Recorder();
    client.open(SPEECH, recorder);
    await recorder.over();
    expect(recorder.calls).toEqual(["sent", "head", "chunk", "end"]);
  });
});

describe("a handler that throws", () => {
  it("fails its own synthesis as internal and no other", async () => {
    await using server = await startFakeUpstream();
    await using client = clientOf(server.url);
    const broken = new Recorder();
    const fine = new Recorder();
    broken.onChunk = () => {
      throw new TypeError("a fault of the session");
    };
    client.open(SPEECH, broken);
    client.open(SPEECH, fine);
    await Promise.all([broken.over(), fine.over()]);
    expect(broken.failure?.code).toBe("internal");
    expect(fine.isEnded).toBe(true);
  });
});
