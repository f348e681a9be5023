/** An upstream that is asked to wait is let go on: whatever the settings, speech is not waited for by both sides. */
import { expect, it } from "vitest";
import { createRig } from "../../../helpers/session-rig.ts";

const ULAW_SILENCE = 0xff;
const ULAW_SOUND = 0x20;
const PIECE_MS = 20;

it.each([
  { aheadMs: 500, trimMs: 500, silenceMs: 480 },
  { aheadMs: 1500, trimMs: 1000, silenceMs: 980 },
  { aheadMs: 5000, trimMs: 5000, silenceMs: 4900 },
])("a response is read through its leading silence: $aheadMs ms ahead, $trimMs ms to trim", (setting) => {
  const { aheadMs, trimMs, silenceMs } = setting;
  const rig = createRig({ aheadMs, trimMs });
  const client = rig.join("role=both&format=ulaw_8000&events=none");
  client.send({ type: "speak", text: "Hello there.", voice_id: "v" });
  const [request] = rig.requests;
  if (request === undefined) throw new Error("Nothing was asked of the upstream");
  request.head();
  for (let atMs = 0; atMs < silenceMs + 1000; atMs += PIECE_MS) {
    for (let waits = 0; request.isPaused && waits < 50; waits += 1) rig.clock.advance(100);
    expect(request.isPaused, `after ${atMs} ms of the response`).toBe(false);
    const byte = atMs < silenceMs ? ULAW_SILENCE : ULAW_SOUND;
    request.chunk(new Uint8Array(PIECE_MS * 8).fill(byte));
  }
  request.handlers.end();
  rig.clock.advance(3000);
  expect(client.listener.eventsOf("utterance.done")).toMatchObject([{ outcome: "done" }]);
});

it("a response that was full is read on though its last word may not be whole, where nobody paces", () => {
  const rig = createRig({ aheadMs: 5000 });
  const client = rig.join("role=both&format=ulaw_8000&events=words&pace=burst&policy=lossless");
  client.send({ type: "speak", text: "Hello there and so on.", voice_id: "v" });
  const [request] = rig.requests;
  if (request === undefined) throw new Error("Nothing was asked of the upstream");
  const characters = [..."Hello "];
  const times = characters.map((_character, index) => index / 20);
  request.head();
  client.listener.isFull = true;
  request.chunk(new Uint8Array(300 * 8).fill(ULAW_SOUND), {
    alignment: {
      characters,
      character_start_times_seconds: times,
      character_end_times_seconds: times.map((seconds) => seconds + 1 / 20),
    },
  });
  for (let piece = 0; piece < 2000 && !request.isPaused; piece += 1) {
    request.chunk(new Uint8Array(100 * 8).fill(ULAW_SOUND));
  }
  expect(request.isPaused).toBe(true);
  client.listener.isFull = false;
  client.session.drained(client.participant);
  expect(request.isPaused).toBe(false);
});

it.each([
  { name: "sent with it", lateChunks: 0, isRead: false },
  { name: "a second behind it", lateChunks: 5, isRead: true },
])("audio ahead of the listeners is read at once only where its times are behind it: $name", (setting) => {
  const rig = createRig({ aheadMs: 5000 });
  const client = rig.join("role=both&format=ulaw_8000&events=words");
  client.send({ type: "speak", text: "Hello there and so on and on.", voice_id: "v" });
  const [request] = rig.requests;
  if (request === undefined) throw new Error("Nothing was asked of the upstream");
  request.head();
  const word = "Hello there and so on and on.";
  for (let piece = 0; piece < 6; piece += 1) {
    // What has come is looked at.
    if (piece === 5) rig.clock.advance(200);
    const timed = piece - setting.lateChunks;
    const characters = timed < 0 ? [] : [...word.slice(timed * 4, timed * 4 + 4)];
    const startOf = (index: number) => timed / 5 + index / 20;
    request.chunk(new Uint8Array(200 * 8).fill(ULAW_SOUND), {
      alignment: {
        characters,
        character_start_times_seconds: characters.map((_character, index) => startOf(index)),
        character_end_times_seconds: characters.map((_character, index) => startOf(index + 1)),
      },
    });
  }
  // 1.2 s are here, and listeners are sent 200 ms.
  expect(request.isPaused).toBe(!setting.isRead);
});
