/** Joining over a real socket: what hello says, and every way to be refused. */
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

describe("joining", () => {
  it("hello states protocol, session, epoch, resolved settings, audio, limits and what was ignored", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(
      gateway,
      "/live/a.b-c_1?format=ulaw_8000&frame_ms=40&colour=red",
    );
    const hello = await client.next("hello");
    expect(client.messages[0]).toEqual({ event: hello });
    expect(hello).toMatchObject({
      protocol: 1,
      session: "a.b-c_1",
      seq: 0,
      at_ms: 0,
      settings: {
        role: "both",
        format: "ulaw_8000",
        frame_ms: 40,
        pace: "realtime",
        lead_ms: 300,
        policy: "live",
      },
      audio: { codec: "ulaw", sample_rate: 8000, frame_samples: 320, frame_bytes: 320, start_ms: 0 },
      limits: { text_chars: 10_000, message_bytes: 262_144 },
      ignored: ["colour"],
    });
    expect(hello.epoch).toMatch(/^[0-9a-f]{12}$/);
  });

  it("is refused with a code, the field and a close code, and nobody else notices", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using other = await TestClient.connect(gateway, "/live/s?format=none");
    const refusals = [
      ["/live/s?format=mp3", "unknown_format", "format", 4400],
      ["/live/s?events=words,smells", "unknown_event", "events", 4400],
      ["/live/s?frame_ms=25", "invalid_field", "frame_ms", 4400],
      ["/live/s?frame_ms=110", "invalid_field", "frame_ms", 4400],
      ["/live/s?format=opus_48000&frame_ms=100", "invalid_field", "frame_ms", 4400],
      ["/live/s?lead_ms=-1", "invalid_field", "lead_ms", 4400],
      ["/live/s?lead_ms=soon", "invalid_field", "lead_ms", 4400],
      ["/live/s?role=boss", "invalid_field", "role", 4400],
      ["/live/s?pace=walk", "invalid_field", "pace", 4400],
      ["/live/not%20a%20name", "invalid_field", "session", 4400],
      ["/live/nobody-opened-this?role=listener", "unknown_session", "session", 4404],
    ] as const;
    for (const [path, code, field, closeCode] of refusals) {
      const client = await TestClient.connect(gateway, path);
      expect(await client.untilClosed()).toEqual({ code: closeCode, reason: code });
      expect(client.events).toMatchObject([{ type: "error", code, field }]);
    }
    other.send({ type: "ping", id: 7 });
    expect(await other.next("pong")).toMatchObject({ id: 7 });
  });

  it("a listener that may wait is in the session before its speaker and misses nothing", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using listener = await TestClient.connect(
      gateway,
      "/live/later?role=listener&wait=true&format=ulaw_8000&pace=burst",
    );
    const hello = await listener.next("hello");
    expect([hello.ignored, hello.audio?.start_ms]).toEqual([[], 0]);
    await using speaker = await TestClient.connect(gateway, "/live/later?role=speaker&pace=burst");
    speaker.send({ type: "speak", text: "From the beginning.", voice_id: "v" });
    const done = await listener.next("utterance.done");
    expect(listener.frames.length).toBe(Math.ceil(done.end_ms / 20));
  });

  it("is refused with HTTP 431 when the request that opens it is larger than 4 KB", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const socket = new WebSocket(`${gateway.wsUrl}/live/s?resume=${"x".repeat(5000)}`);
    const [error] = (await once(socket, "error")) as [Error];
    expect(error.message).toContain("431");
  });

  it("takes every frame length and format at its bounds", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    for (const query of [
      "format=ulaw_8000&frame_ms=10",
      "format=pcm_48000&frame_ms=100",
      "format=opus_48000&frame_ms=60",
    ]) {
      await using client = await TestClient.connect(gateway, `/live/s?${query}&lead_ms=10000`);
      const hello = await client.next("hello");
      expect(hello.audio?.frame_ms).toBe(Number(/frame_ms=(\d+)/.exec(query)?.[1]));
    }
  });

  it("limits on sessions and listeners are refused by name once full", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { maxSessions: 1, maxListeners: 1 });
    await using first = await TestClient.connect(gateway, "/live/one");
    await first.next("hello");
    const second = await TestClient.connect(gateway, "/live/one");
    expect(await second.untilClosed()).toEqual({ code: 4429, reason: "listener_limit" });
    const third = await TestClient.connect(gateway, "/live/two");
    expect(await third.untilClosed()).toEqual({ code: 4429, reason: "session_limit" });
  });
});

describe("messages", () => {
  it("bad ones are answered by name with the field, the connection and the others live on", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url, { maxMessageBytes: 1024, maxTextChars: 20 });
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    const bad: [string | Buffer, string, string | undefined][] = [
      ["{", "malformed_json", undefined],
      ["[1]", "malformed_json", undefined],
      ["null", "malformed_json", undefined],
      ['{"type":"sing"}', "unknown_type", "type"],
      ['{"text":"x"}', "unknown_type", "type"],
      ['{"type":"speak"}', "invalid_field", "text"],
      ['{"type":"speak","text":5}', "invalid_field", "text"],
      ['{"type":"speak","text":"  "}', "invalid_field", "text"],
      ['{"type":"speak","text":"x","utterance_id":"has space"}', "invalid_field", "utterance_id"],
      [
        '{"type":"speak","text":"x","voice_settings":{"stability":2}}',
        "invalid_field",
        "voice_settings.stability",
      ],
      ['{"type":"dialogue","inputs":[{"text":"x"}]}', "invalid_field", "inputs.0.voice_id"],
      ['{"type":"speak","text":"a\\ud800"}', "invalid_text", "text"],
      ['{"type":"speak","text":"a\\u0007"}', "invalid_text", "text"],
      ['{"type":"speak","text":"123456789012345678901"}', "text_too_long", "text"],
      [`{"type":"ping","pad":"${"x".repeat(1100)}"}`, "message_too_large", undefined],
      [Buffer.from([1, 2, 3]), "binary_not_allowed", undefined],
      ['{"type":"interrupt"}', "nothing_to_interrupt", undefined],
      ['{"type":"interrupt","utterance_id":"x"}', "unknown_utterance", "utterance_id"],
      ['{"type":"end"}', "unknown_utterance", "utterance_id"],
      ['{"type":"configure","format":"wav"}', "unknown_format", "format"],
      ['{"type":"configure","events":["x"]}', "unknown_event", "events.0"],
      ['{"type":"configure","frame_ms":15}', "invalid_field", "frame_ms"],
      ['{"type":"played","at_ms":1e9}', "invalid_field", "at_ms"],
    ];
    for (const [index, [message, code, field]] of bad.entries()) {
      client.send(message);
      const error = await client.next("error", index + 1);
      expect([error.code, error.field], String(message).slice(0, 60)).toEqual([code, field]);
      expect(typeof error.retryable).toBe("boolean");
    }
    client.send({ type: "speak", text: "Still here", voice_id: "v" });
    expect(await client.next("utterance.done")).toMatchObject({ outcome: "done" });
    expect(client.closed).toBeNull();
  });

  it("text that is not UTF-8 ends its own connection and no other (RFC 6455 section 8.1)", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using other = await TestClient.connect(gateway, "/live/s");
    const socket = new WebSocket(`${gateway.wsUrl}/live/s`);
    await once(socket, "open");
    const closed = once(socket, "close");
    socket.send(Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), { binary: false });
    await closed;
    other.send({ type: "ping" });
    await other.next("pong");
    expect(other.eventsOf("error")).toEqual([]);
  });

  it("unknown fields of a command are named once in a warning and do no harm", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using client = await TestClient.connect(gateway, "/live/s?format=ulaw_8000");
    client.send({ type: "ping", mood: "good" });
    client.send({ type: "ping", mood: "good" });
    await client.next("pong", 2);
    expect(client.eventsOf("warning")).toHaveLength(1);
    expect(client.eventsOf("warning")[0]?.message).toContain("mood");
  });

  it("close ends the connection with 1000", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    const client = await TestClient.connect(gateway, "/live/s");
    client.send({ type: "close" });
    expect((await client.untilClosed()).code).toBe(1000);
  });
});
