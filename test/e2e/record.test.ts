/** A gateway that records: sessions of all kinds run again with the very same bytes, and a recording without texts has none. */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { courseOf } from "../../src/recording/course.ts";
import type { Recording } from "../../src/recording/format.ts";
import { replay } from "../../src/recording/player.ts";
import { startService } from "../../src/service/service.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { recordingsIn } from "../helpers/recordings.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { PLAYS, scriptOf } from "./recorded-sessions.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-record-"));
afterAll(() => rmSync(folder, { recursive: true }));

function bySessionIn(of: string): Map<string, Recording> {
  return new Map(recordingsIn(of).map((recording) => [recording.head.session, recording]));
}

describe("a gateway that records", { timeout: 120_000 }, () => {
  const kept = join(folder, "kept");
  let bySession: ReadonlyMap<string, Recording>;
  beforeAll(async () => {
    await using upstream = await startFakeUpstream(scriptOf());
    await using gateway = await gatewayAt(upstream.url, {
      record: kept,
      graceMs: 300,
      upstreamTimeoutMs: 5000,
    });
    await Promise.all(Object.entries(PLAYS).map(([name, play]) => play(gateway, name)));
    await gateway.close();
    bySession = bySessionIn(kept);
  }, 120_000);

  it.each(Object.keys(PLAYS))("%s: runs again with the same bytes for every connection", (name) => {
    const recording = bySession.get(name);
    if (recording === undefined) throw new Error("It was not recorded");
    const replayed = replay(recording);
    expect(replayed).toMatchObject({ difference: null, entries: recording.entries.length });
    expect(replayed.messages).toBeGreaterThan(2);
  });

  it("its files are their owner's alone", () => {
    for (const name of readdirSync(kept)) expect(statSync(join(kept, name)).mode & 0o077).toBe(0);
    expect(statSync(kept).mode & 0o077).toBe(0);
  });

  it("the course of an interrupted session says what was asked, cut and heard", () => {
    const recording = bySession.get("interrupted");
    if (recording === undefined) throw new Error("It was not recorded");
    const { utterances, words, wave, connections } = courseOf(recording);
    expect(utterances.map(({ id, interrupts }) => [id, interrupts])).toEqual([
      ["u", 1],
      ["v", 0],
    ]);
    expect(utterances[0]?.heard?.source).toBe("ack");
    expect(words.map(({ text }) => text)).toContain("alpha");
    // How much was played before the cut depends on the machine.
    expect(wave.length).toBeGreaterThan(1);
    expect(connections).toMatchObject([{ number: 1, id: "l1", format: "ulaw_8000" }]);
  });
});

/** Sessions whose speech comes as Opus, as the built-in voice and the vendor send it. */
const OPUS_PLAYS: Readonly<Record<string, (at: TestGateway, session: string) => Promise<void>>> = {
  passedOn: async (gateway, session) => {
    await using client = await TestClient.connect(gateway, `/live/${session}?format=opus_48000&events=words`);
    client.send({ type: "speak", text: OPUS_TEXT });
    const { source_format } = await client.next("utterance.started");
    expect(source_format).toMatch(/^opus_48000/);
    await client.next("utterance.done");
  },
  cut: async (gateway, session) => {
    await using client = await TestClient.connect(gateway, `/live/${session}?format=opus_48000&events=words`);
    client.send({ type: "speak", text: OPUS_TEXT });
    await client.until(() => client.frames.length > 20);
    client.send({ type: "interrupt" });
    await client.next("interrupted");
    client.send({ type: "resume" });
    await client.next("utterance.done", 2);
  },
  decoded: async (gateway, session) => {
    await using client = await TestClient.connect(gateway, `/live/${session}?format=opus_48000&events=words`);
    client.send({ type: "speak", text: OPUS_TEXT });
    await client.until(() => client.frames.length > 10);
    const path = `/live/${session}?role=listener&format=pcm_24000&events=none`;
    await using late = await TestClient.connect(gateway, path);
    await late.until(() => late.frames.length > 10);
    await client.next("utterance.done");
  },
};
const OPUS_TEXT = "Your parcel is on its way, and comes on Monday.";

describe("a gateway that records speech which comes as Opus", { timeout: 120_000 }, () => {
  const kept = join(folder, "opus");
  let bySession: ReadonlyMap<string, Recording>;
  beforeAll(async () => {
    const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false });
    try {
      await using gateway = await gatewayAt(service.url, { record: kept, voice: "" });
      await Promise.all(Object.entries(OPUS_PLAYS).map(([name, play]) => play(gateway, name)));
    } finally {
      await service.close();
    }
    bySession = bySessionIn(kept);
  }, 120_000);

  it.each(Object.keys(OPUS_PLAYS))("%s: runs again with the same bytes for every connection", (name) => {
    const recording = bySession.get(name);
    if (recording === undefined) throw new Error("It was not recorded");
    const replayed = replay(recording);
    expect(replayed).toMatchObject({ difference: null, entries: recording.entries.length });
    // Frames that are sent at once are one of these: on a busy machine there are fewer.
    expect(replayed.messages).toBeGreaterThan(3);
    expect(courseOf(recording).utterances[0]?.outcome).not.toBe("failed");
  });
});
