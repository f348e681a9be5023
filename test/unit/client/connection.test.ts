/** The client against a real server of the protocol, over real sockets. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { type Connection, connect, type VoicewireError } from "../../../src/client/index.ts";
import type { Event } from "../../../src/protocol/events.ts";
import { ScriptedServer } from "./scripted-server.ts";

let server: ScriptedServer;
const open: Connection[] = [];

beforeEach(async () => {
  server = await ScriptedServer.start();
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((connection) => connection.close()));
  await server.close();
});

async function join(): Promise<Connection> {
  const connection = await connect({
    baseUrl: server.url,
    session: "s",
    settings: { format: "pcm_8000" },
    WebSocket,
  });
  open.push(connection);
  return connection;
}

function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "resolved",
    (error: VoicewireError) => error.code,
  );
}

describe("connect()", () => {
  it("resolves at hello with what the gateway said, and asks for its settings in the query", async () => {
    const connection = await join();
    expect(connection.hello.session).toBe("s");
    expect(connection.audio?.frame_ms).toBe(20);
    expect(server.lastUrl).toBe("/live/s?format=pcm_8000");
  });

  it("takes a whole url", async () => {
    const connection = await connect({
      url: `${server.url.replace("http", "ws")}/live/x?frame_ms=40`,
      WebSocket,
    });
    open.push(connection);
    expect(server.lastUrl).toBe("/live/x?frame_ms=40");
  });

  it("hands on frames and events that come in one packet with hello", async () => {
    server.withHello = (socket) => {
      socket.send(Buffer.from([1]));
      server.event({ type: "gap", frames: 2, ms: 40 });
      socket.send(Buffer.from([2]));
    };
    const connection = await join();
    const got: [number, number][] = [];
    connection.onAudio((frame, { atMs }) => got.push([frame[0] ?? -1, atMs]));
    await expect
      .poll(() => got)
      .toEqual([
        [1, 100],
        [2, 160],
      ]);
  });

  it("rejects with the gateway's own code when it refuses before hello", async () => {
    server.helloCode = "session_limit";
    expect(await codeOf(join())).toBe("session_limit");
  });

  it("rejects with connect_failed where nobody listens", async () => {
    const { url } = server;
    await server.close();
    expect(await codeOf(connect({ baseUrl: url, session: "s", WebSocket }))).toBe("connect_failed");
  });

  it("rejects with connect_timeout when no hello comes", async () => {
    server.helloCode = "silence";
    expect(await codeOf(connect({ baseUrl: server.url, session: "s", timeoutMs: 50, WebSocket }))).toBe(
      "connect_timeout",
    );
  });

  it("rejects an address that is not a URL with TypeError", async () => {
    await expect(connect({ baseUrl: "nowhere", session: "s", WebSocket })).rejects.toBeInstanceOf(TypeError);
  });
});

describe("Connection", () => {
  it("speak() resolves at utterance.queued with an id of its own", async () => {
    const connection = await join();
    const first = await connection.speak("One");
    const second = await connection.speak({ text: "Two", voice_id: "v" });
    expect(first.utterance_id).not.toBe(second.utterance_id);
    expect(server.commands.at(-1)).toMatchObject({ type: "speak", text: "Two", voice_id: "v" });
  });

  it("speak() rejects with code, field and retryable of the error, and an error event has it, too", async () => {
    server.answer = () => ({
      type: "error",
      code: "queue_full",
      message: "Full",
      retryable: true,
      retry_after_ms: 1000,
    });
    const connection = await join();
    const received: string[] = [];
    connection.on("error", (event) => received.push(event.code));
    await expect(connection.speak("Too much")).rejects.toMatchObject({
      code: "queue_full",
      isRetryable: true,
      retryAfterMs: 1000,
    });
    expect(received).toEqual(["queue_full"]);
  });

  it("say() resolves at its own utterance.done", async () => {
    const connection = await join();
    let isDone = false;
    const said = connection.say({ text: "Hello", utterance_id: "mine" }).then((event) => {
      isDone = true;
      return event;
    });
    await expect.poll(() => server.commands.length).toBe(1);
    server.done("other", "done");
    await connection.ping();
    expect(isDone).toBe(false);
    server.done("mine", "interrupted");
    expect(await said).toMatchObject({ utterance_id: "mine", outcome: "interrupted" });
  });

  it("say() rejects when the utterance fails, is refused, or the connection ends first", async () => {
    const connection = await join();
    const failing = codeOf(connection.say({ text: "Hello", utterance_id: "a" }));
    await expect.poll(() => server.commands.length).toBe(1);
    server.done("a", "failed");
    expect(await failing).toBe("upstream_failed");
    server.answer = () => ({ type: "error", code: "utterance_id_taken", message: "Taken", retryable: false });
    expect(await codeOf(connection.say({ text: "Hello", utterance_id: "a" }))).toBe("utterance_id_taken");
    server.answer = null;
    const cut = codeOf(connection.say("Hello"));
    await expect.poll(() => server.commands.length).toBe(3);
    server.dropAll();
    expect(await cut).toBe("connection_lost");
  });

  it("sends text, flush, end, mark, played and dialogue as the protocol has them", async () => {
    const connection = await join();
    connection.text("Hel", { utterance_id: "u", voice_id: "v" });
    connection.flush("u");
    connection.end();
    connection.mark("here");
    connection.played({ at_ms: 120 });
    await connection.dialogue([{ text: "Hi", voice_id: "a" }]);
    expect(server.commands).toMatchObject([
      { type: "text", text: "Hel", utterance_id: "u", voice_id: "v" },
      { type: "flush", utterance_id: "u" },
      { type: "end" },
      { type: "mark", name: "here" },
      { type: "played", at_ms: 120 },
      { type: "dialogue", inputs: [{ text: "Hi", voice_id: "a" }] },
    ]);
  });

  it("sends cancel, resume, replacements, priority, replace and played by mark as the protocol has them", async () => {
    const connection = await join();
    await connection.speak({ text: "Hi", clean: ["emoji"], priority: 5, replace: "queued" });
    connection.text("Hel", { utterance_id: "u", replacements: [{ from: "a", to: "b" }], replace: "all" });
    connection.played({ mark: "here" });
    connection.cancel();
    connection.cancel({ utterance_id: "u" });
    server.answer = () => ({ type: "utterance.resumed", start: 3, start_ms: 40, kept_end: 9 });
    expect((await connection.resume({ utterance_id: "u" })).start).toBe(3);
    server.answer = () => ({ type: "error", code: "nothing_to_resume", message: "No", retryable: false });
    expect(await codeOf(connection.resume())).toBe("nothing_to_resume");
    expect(server.commands).toMatchObject([
      { type: "speak", text: "Hi", clean: ["emoji"], priority: 5, replace: "queued" },
      { type: "text", replacements: [{ from: "a", to: "b" }], replace: "all" },
      { type: "played", mark: "here" },
      { type: "cancel" },
      { type: "cancel", utterance_id: "u" },
      { type: "resume", utterance_id: "u" },
      { type: "resume" },
    ]);
  });

  it("text() says when to wait, and ready() for how long", async () => {
    const connection = await join();
    expect(connection.text("Hel", { utterance_id: "u" })).toBe(true);
    await connection.ready();
    server.event({ type: "paused", utterance_id: "u", pending_chars: 900, limit_chars: 800 });
    await connection.ping();
    expect(connection.text("lo", { utterance_id: "u" })).toBe(false);
    expect(connection.isPaused("u")).toBe(true);
    const ready = connection.ready("u");
    server.event({ type: "resumed", utterance_id: "u", pending_chars: 100, limit_chars: 800 });
    await ready;
    expect(connection.isPaused()).toBe(false);
  });

  it("interrupt() resolves with the receipt and places the next frame at next_ms", async () => {
    const connection = await join();
    const atMs: number[] = [];
    connection.onAudio((_frame, info) => atMs.push(info.atMs));
    server.frame(1);
    server.answer = () => ({
      type: "interrupted",
      utterance_id: "u",
      heard: { text: "He", end: 2, ms: 120, source: "ack", bound_ms: 40 },
      unheard_text: "llo",
      next_ms: 400,
    });
    expect((await connection.interrupt()).heard.end).toBe(2);
    server.frame(2);
    await expect.poll(() => atMs).toEqual([100, 400]);
  });

  it("keeps its place when an utterance is taken out of the queue before it was heard", async () => {
    const connection = await join();
    const atMs: number[] = [];
    connection.onAudio((_frame, info) => atMs.push(info.atMs));
    server.event({
      type: "interrupted",
      utterance_id: "queued-one",
      heard: { text: "", end: 0, ms: 0, source: "estimate", bound_ms: 0 },
      unheard_text: "Hello",
      next_ms: null,
    });
    server.frame(1);
    await expect.poll(() => atMs).toEqual([100]);
  });

  it("starts again at start_ms when configured describes other audio", async () => {
    const connection = await join();
    const atMs: number[] = [];
    connection.onAudio((_frame, info) => atMs.push(info.atMs));
    server.frame(1);
    server.answer = () => ({
      type: "configured",
      settings: connection.hello.settings,
      audio: { ...connection.hello.audio, frame_ms: 40, start_ms: 640 },
      ignored: [],
    });
    await connection.configure({ frame_ms: 40 });
    server.frame(2);
    server.frame(3);
    await expect.poll(() => atMs).toEqual([100, 640, 680]);
    expect(connection.audio?.frame_ms).toBe(40);
  });

  it("onEvent() hands on every event in order, until it is stopped", async () => {
    const connection = await join();
    const got: string[] = [];
    const stop = connection.onEvent(({ type }) => got.push(type));
    server.event({ type: "gap", frames: 0, ms: 0 });
    server.event({ type: "pong" });
    await expect.poll(() => got).toEqual(["gap", "pong"]);
    stop();
    server.event({ type: "gap", frames: 0, ms: 0 });
    await connection.ping();
    expect(got).toEqual(["gap", "pong"]);
  });

  it("on() stops when asked, and a handler that throws harms no other", async () => {
    const connection = await join();
    const seen: Event[] = [];
    const surfaced = new Promise((resolve) => process.once("uncaughtException", resolve));
    const stop = connection.on("warning", (event) => seen.push(event));
    connection.on("warning", () => {
      throw new Error("a fault of the caller's");
    });
    connection.on("warning", (event) => seen.push(event));
    const warning = { type: "warning", code: "x", message: "x" };
    server.event(warning);
    await expect.poll(() => seen.length).toBe(2);
    expect(String(await surfaced)).toContain("a fault of the caller's");
    stop();
  });

  it("close() may be called twice and closed gives the code; commands then reject or throw not_connected", async () => {
    const connection = await join();
    const [first, second] = await Promise.all([connection.close(), connection.close()]);
    expect(first).toEqual(second);
    expect(first.code).toBe(1000);
    expect(await connection.closed).toEqual(first);
    expect(connection.isOpen).toBe(false);
    expect(await codeOf(connection.speak("Late"))).toBe("not_connected");
    expect(() => connection.text("Late")).toThrow("closed");
  });

  it("closes with 4400 when the gateway sends what is no event", async () => {
    const connection = await join();
    server.raw("not json");
    expect((await connection.closed).code).toBe(4400);
  });
});
