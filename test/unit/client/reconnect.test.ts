/** Coming back: the client against a real server of the protocol whose sockets break. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { backoffMs } from "../../../src/client/backoff.ts";
import {
  type Connection,
  connect,
  type ReconnectedEvent,
  type ReconnectOptions,
  type VoicewireError,
} from "../../../src/client/index.ts";
import type { WordsEvent } from "../../../src/protocol/events.ts";
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

async function join(reconnect: boolean | ReconnectOptions = { firstDelayMs: 1 }): Promise<Connection> {
  const settings = { format: "pcm_8000" } as const;
  const connection = await connect({ baseUrl: server.url, session: "s", settings, WebSocket, reconnect });
  open.push(connection);
  return connection;
}

function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "resolved",
    (error: VoicewireError) => error.code,
  );
}

function word(seq: number): Omit<WordsEvent, "at_ms"> {
  return { type: "words", seq, utterance_id: "u", words: [], timing: "exact" };
}

function cut(seq: number, next_ms: number) {
  const heard = { text: "", end: 0, ms: 0, source: "ack", bound_ms: 0 };
  return { type: "interrupted", seq, utterance_id: "u", heard, unheard_text: "", resumable: true, next_ms };
}

/** The next `reconnected`; `breakIt` makes the connection break. */
function back(connection: Connection, breakIt: () => void): Promise<ReconnectedEvent> {
  return new Promise((resolve) => {
    const stop = connection.on("reconnected", (event) => {
      stop();
      resolve(event);
    });
    breakIt();
  });
}

describe("a connection that comes back", () => {
  it("asks for what it missed, and hands out each frame and event once and in order", async () => {
    const connection = await join();
    const frames: [number, number][] = [];
    const seqs: number[] = [];
    connection.onAudio((frame, { atMs }) => frames.push([frame[0] ?? -1, atMs]));
    connection.on("words", ({ seq }) => seqs.push(seq));
    for (const seq of [1, 2]) server.event(word(seq));
    for (const byte of [1, 2, 3]) server.frame(byte);
    await expect.poll(() => frames.length).toBe(3);
    // The gateway goes further back than it was asked to: nothing of that is to be seen.
    server.startMs = 120;
    server.hello = { resumed: true };
    server.withHello = () => {
      for (const seq of [1, 2, 3]) server.event(word(seq));
      for (const byte of [2, 3, 4, 5]) server.frame(byte);
    };
    expect(await back(connection, () => server.dropAll())).toMatchObject({ resumed: true, gapMs: 0 });
    expect(server.lastUrl).toBe("/live/s?format=pcm_8000&resume=t1&seq=2&at_ms=160");
    await expect.poll(() => frames.length).toBe(5);
    expect(frames).toEqual([1, 2, 3, 4, 5].map((byte, index) => [byte, 100 + index * 20]));
    expect(seqs).toEqual([1, 2, 3]);
  });

  it("reports each wait, and the gap where the audio is gone", async () => {
    const connection = await join();
    const waits: [number, number][] = [];
    connection.on("reconnecting", ({ attempt, code }) => waits.push([attempt, code]));
    const atMs: number[] = [];
    connection.onAudio((_frame, info) => atMs.push(info.atMs));
    server.frame(1);
    await expect.poll(() => atMs.length).toBe(1);
    server.startMs = 900;
    expect(await back(connection, () => server.closeAll(4429, "listener_limit"))).toMatchObject({
      resumed: false,
      gapMs: 780,
    });
    expect(waits).toEqual([[1, 4429]]);
    server.frame(2);
    await expect.poll(() => atMs).toEqual([100, 900]);
  });

  it("waits as long as the gateway asked when it closed the connection, and no longer for other closes", async () => {
    const connection = await join();
    const waits: number[] = [];
    connection.on("reconnecting", ({ delayMs }) => waits.push(delayMs));
    const refusal = { type: "error", message: "Connect again", retryable: true, retry_after_ms: 80 };
    server.event({ ...refusal, code: "bus_lost", closing: true });
    await back(connection, () => server.closeAll(4502, "bus_lost"));
    await back(connection, () => server.closeAll(4502, "bus_lost"));
    server.event({ ...refusal, code: "queue_full" });
    await back(connection, () => server.closeAll(4502, "bus_lost"));
    expect(waits).toEqual([80, expect.any(Number), expect.any(Number)]);
    expect(Math.max(...waits.slice(1))).toBeLessThanOrEqual(1);
  });

  it("takes why it was closed for no error where it comes back, and says so with the wait", async () => {
    const connection = await join();
    server.event(word(7));
    server.hello = { resumed: true };
    await back(connection, () => server.dropAll());
    const errors: string[] = [];
    const reasons: (string | undefined)[] = [];
    connection.on("error", ({ code }) => errors.push(code));
    connection.on("reconnecting", ({ error }) => reasons.push(error?.code));
    const said = connection.say({ text: "Hello", utterance_id: "u" });
    await expect.poll(() => server.commands.at(-1)?.type).toBe("speak");
    const why = { type: "error", seq: 0, message: "Connect again", retryable: true, retry_after_ms: 1 };
    await back(connection, () => {
      server.event({ ...why, code: "bus_lost", closing: true });
      server.closeAll(4502, "bus_lost");
    });
    server.event({ type: "utterance.done", seq: 8, utterance_id: "u", outcome: "done" });
    expect(await codeOf(said)).toBe("resolved");
    expect([errors, reasons]).toEqual([[], ["bus_lost"]]);
    server.event({ ...why, code: "token_revoked", retryable: false, closing: true });
    server.closeAll(4403, "token_revoked");
    await connection.closed;
    expect(errors).toEqual(["token_revoked"]);
  });

  it("takes the frames after a cut that happened while it was away", async () => {
    const connection = await join();
    const atMs: number[] = [];
    connection.onAudio((_frame, info) => atMs.push(info.atMs));
    for (const byte of [1, 2, 3]) server.frame(byte);
    await expect.poll(() => atMs.length).toBe(3);
    server.startMs = 160;
    server.hello = { resumed: true, seq: 5 };
    server.withHello = () => {
      server.event(cut(5, 120));
      server.frame(4);
    };
    await back(connection, () => server.dropAll());
    await expect.poll(() => atMs).toEqual([100, 120, 140, 120]);
  });

  it("keeps to hello's place where a cut is emitted and the audio after it is gone, too", async () => {
    const connection = await join();
    const atMs: number[] = [];
    connection.onAudio((_frame, info) => atMs.push(info.atMs));
    server.startMs = 5000;
    server.hello = { resumed: true, seq: 5 };
    server.withHello = () => {
      server.event(cut(5, 100));
      server.frame(1);
    };
    await back(connection, () => server.dropAll());
    await expect.poll(() => atMs).toEqual([5000]);
  });

  it("on another epoch it begins again, and fails what waited for its end", async () => {
    const connection = await join();
    const seqs: number[] = [];
    connection.on("words", ({ seq }) => seqs.push(seq));
    const said = codeOf(connection.say("Hello"));
    await expect.poll(() => server.commands.length).toBe(1);
    server.event(word(9));
    await expect.poll(() => seqs).toEqual([9]);
    server.hello = { epoch: "other" };
    server.startMs = 0;
    expect(await back(connection, () => server.dropAll())).toMatchObject({ resumed: false, gapMs: null });
    expect(await said).toBe("connection_lost");
    expect(connection.hello.epoch).toBe("other");
    server.event(word(1));
    await expect.poll(() => seqs).toEqual([9, 1]);
  });

  it("where another node goes on with the session, say() goes on waiting for what is not over there", async () => {
    const connection = await join();
    const over = codeOf(connection.say({ text: "Hi", utterance_id: "z" }));
    const said = connection.say({ text: "Hello", utterance_id: "a" });
    await connection.ping();
    const { epoch } = connection.hello;
    server.hello = { epoch: "other", former_epoch: epoch, utterances: ["a"] };
    server.startMs = 0;
    const how = await back(connection, () => server.dropAll());
    expect(how).toMatchObject({ resumed: false, takenOver: true, gapMs: null });
    expect(await over).toBe("connection_lost");
    server.done("a", "done");
    expect((await said).outcome).toBe("done");
  });

  it("say() goes on waiting over a break that lost nothing, and fails where events are gone", async () => {
    const connection = await join();
    const said = connection.say({ text: "Hello", utterance_id: "a" });
    const missed = codeOf(connection.say({ text: "Hello", utterance_id: "b" }));
    await connection.ping();
    server.hello = { resumed: true };
    await back(connection, () => server.dropAll());
    server.done("a", "done");
    expect((await said).outcome).toBe("done");
    server.event({ type: "gap", frames: 0, ms: 0, events: 3 });
    expect(await missed).toBe("connection_lost");
  });

  it("comes back with the settings that configure() made, and sends its replacements again", async () => {
    const connection = await join();
    server.answer = () => ({
      type: "configured",
      settings: { role: "both", lead_ms: 40, events: ["words", "cues"] },
      audio: connection.hello.audio,
      ignored: [],
    });
    await connection.configure({ clean: ["markdown"], replacements: [{ from: "SQL", to: "sequel" }] });
    await connection.configure({ lead_ms: 40 });
    server.commands.length = 0;
    await back(connection, () => server.dropAll());
    const query = new URL(server.lastUrl, "http://h").searchParams;
    expect([query.get("lead_ms"), query.get("events"), query.get("role")]).toEqual([
      "40",
      "words,cues",
      null,
    ]);
    await expect
      .poll(() => server.commands)
      .toEqual([{ type: "configure", clean: ["markdown"], replacements: [{ from: "SQL", to: "sequel" }] }]);
  });

  it("while it is away commands are refused, and what was asked before fails", async () => {
    const connection = await join({ firstDelayMs: 60_000, maxDelayMs: 60_000 });
    server.answer = () => ({ type: "warning", code: "x", message: "no answer" });
    const asked = codeOf(connection.ping());
    const away = new Promise((resolve) => connection.on("reconnecting", resolve));
    server.dropAll();
    await away;
    expect(await asked).toBe("connection_lost");
    expect(await codeOf(connection.speak("Hello"))).toBe("not_connected");
    expect(() => connection.cancel()).toThrow("closed");
    server.answer = null;
    await back(connection, () => connection.tryNow());
    expect((await connection.speak("Hello")).type).toBe("utterance.queued");
  });

  it.each([1000, 4400, 4403, 4409, 4413, 4404])("does not come back after %d", async (code) => {
    const connection = await join();
    server.closeAll(code, "because");
    expect(await connection.closed).toEqual({ code, reason: "because" });
    expect(server.urls.length).toBe(1);
  });

  it("does not come back where the caller did not ask for it", async () => {
    const connection = await join(false);
    server.dropAll();
    expect((await connection.closed).code).toBe(1006);
    expect(server.urls.length).toBe(1);
  });

  it("gives up after maxTries, and at once where the gateway says that it is of no use", async () => {
    const connection = await join({ firstDelayMs: 1, maxTries: 3 });
    server.helloCode = "session_limit";
    server.dropAll();
    expect((await connection.closed).code).toBe(4429);
    expect(server.urls.length).toBe(4);
    server.helloCode = "hello";
    const refused = await join({ firstDelayMs: 1, maxTries: 3 });
    server.helloCode = "invalid_field";
    server.isRetryable = false;
    server.dropAll();
    await refused.closed;
    expect(server.urls.length).toBe(6);
  });

  it("close() while it waits for the next try ends it", async () => {
    const connection = await join({ firstDelayMs: 60_000, maxDelayMs: 60_000 });
    const away = new Promise((resolve) => connection.on("reconnecting", resolve));
    server.dropAll();
    await away;
    expect((await connection.close()).code).toBe(1000);
    expect(server.urls.length).toBe(1);
  });
});

describe("backoffMs()", () => {
  it("doubles up to ten seconds, and never waits less than half", () => {
    expect([1, 2, 3, 4, 5, 6, 20].map((attempt) => backoffMs(attempt, 1))).toEqual([
      500, 1000, 2000, 4000, 8000, 10_000, 10_000,
    ]);
    expect(backoffMs(3, 0)).toBe(1000);
  });
});
