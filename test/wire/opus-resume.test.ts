/** A listener of Opus whose socket is lost in the middle of speech: it gets each packet of the stream once. */
import { describe, expect, it } from "vitest";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";

const TEXT = "Hello there, general listener. This goes on for a while.";
const LISTENER = "/live/s?role=listener&format=opus_48000&lead_ms=100&events=words";
const MULAW = "/live/s?role=listener&format=ulaw_8000&events=none";

/** Packets by their place on the timeline, ms. */
function placed(client: TestClient): Map<number, string> {
  const audio = client.eventsOf("hello")[0]?.audio;
  if (audio == null) throw new Error("No audio is described");
  return new Map(
    client.frames.map((packet, index) => [audio.start_ms + index * audio.frame_ms, packet.toString("hex")]),
  );
}

/** What the client has, as docs/protocol.md says to send it. */
function placeOf(client: TestClient): string {
  const hello = client.eventsOf("hello")[0];
  const frameMs = hello?.audio?.frame_ms ?? 0;
  const seq = Math.max(...client.events.map((event) => event.seq));
  const atMs = (hello?.audio?.start_ms ?? 0) + client.frames.length * frameMs;
  return `${hello?.resume_token}&seq=${seq}&at_ms=${atMs}`;
}

const wordsOf = (client: TestClient): string[] =>
  client.eventsOf("words").flatMap((event) => event.words.map((word) => `${word.start} ${word.text}`));

describe.concurrent("an Opus listener that comes back", () => {
  it.each([
    ["next to another one, which hears on", true],
    ["as the only one of its format", false],
  ])("%s: gets the very packets that were encoded, none twice, none missing", async (_, hasOther) => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using speaker = await TestClient.connect(gateway, "/live/s?role=speaker&events=none");
    // Of another format, so that the packets are encoded here.
    await using other = await TestClient.connect(gateway, hasOther ? LISTENER : MULAW);
    await using mulaw = await TestClient.connect(gateway, MULAW);
    await using first = await TestClient.connect(gateway, LISTENER);
    await first.next("hello");
    await other.next("hello");
    await mulaw.next("hello");
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    await first.until(() => first.frames.length >= 25);
    first.socket.terminate();
    await first.untilClosed();
    await using back = await TestClient.connect(gateway, `${LISTENER}&resume=${placeOf(first)}`);
    const hello = await back.next("hello");
    const done = await back.next("utterance.done");
    expect(hello.resumed).toBe(true);
    expect(back.eventsOf("gap")).toEqual([]);
    const [before, after] = [placed(first), placed(back)];
    expect([...after.keys()].filter((ms) => before.has(ms))).toEqual([]);
    const heard = new Map([...before, ...after]);
    const frameMs = hello.audio?.frame_ms ?? 0;
    const count = Math.round((done.end_ms + done.pad_ms) / frameMs);
    expect([...heard.keys()]).toEqual(Array.from({ length: heard.size }, (_, index) => index * frameMs));
    expect(heard.size).toBeGreaterThanOrEqual(count);
    expect([...wordsOf(first), ...wordsOf(back)].map((word) => word.split(" ")[1])).toEqual(
      TEXT.match(/\w+/g),
    );
    if (!hasOther) return;
    await other.next("utterance.done");
    const whole = placed(other);
    // Both were sent all up to the end of the utterance.
    for (const [ms, packet] of heard) expect(packet).toBe(whole.get(ms));
    expect(wordsOf(other)).toEqual([...wordsOf(first), ...wordsOf(back)]);
  });

  it("with its token alone gets no packet twice, and hello says where it goes on", async () => {
    await using upstream = await startFakeUpstream();
    await using gateway = await gatewayAt(upstream.url);
    await using speaker = await TestClient.connect(gateway, "/live/s?role=speaker&events=none");
    // Of another format, so that the packets are encoded here.
    await using mulaw = await TestClient.connect(gateway, MULAW);
    await mulaw.next("hello");
    await using first = await TestClient.connect(gateway, LISTENER);
    const { resume_token } = await first.next("hello");
    await speaker.next("hello");
    speaker.send({ type: "speak", text: TEXT, voice_id: "v" });
    await first.until(() => first.frames.length >= 25);
    first.socket.terminate();
    await first.untilClosed();
    await using back = await TestClient.connect(gateway, `${LISTENER}&resume=${resume_token}`);
    const { resumed, audio } = await back.next("hello");
    await back.next("utterance.done");
    expect(resumed).toBe(true);
    const [before, after] = [placed(first), placed(back)];
    expect([...after.keys()].filter((ms) => before.has(ms))).toEqual([]);
    expect([...after.keys()][0]).toBe(audio?.start_ms);
    expect(audio?.start_ms).toBeGreaterThanOrEqual(Math.max(...before.keys()));
    // Packets that were written and not read are lost, and few: events of that time are not emitted twice either.
    const words = [...wordsOf(first), ...wordsOf(back)];
    expect(new Set(words).size).toBe(words.length);
  });
});
