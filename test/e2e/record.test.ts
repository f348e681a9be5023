/** A gateway that records: sessions of all kinds run again with the very same bytes, and a recording without texts has none. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Chain } from "../../src/recording/chain.ts";
import { courseOf } from "../../src/recording/course.ts";
import { type Recording, RecordingReader } from "../../src/recording/format.ts";
import { replay } from "../../src/recording/player.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt } from "../helpers/start-gateway.ts";
import { PLAYS, scriptOf } from "./recorded-sessions.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-record-"));
afterAll(() => rmSync(folder, { recursive: true }));

function recordings(of: string): { readonly path: string; readonly text: string }[] {
  return readdirSync(of).map((name) => {
    const path = join(of, name);
    return { path, text: readFileSync(path, "utf8") };
  });
}

function read(text: string): Recording {
  const chain = new Chain();
  const reader = new RecordingReader((json) => chain.next(json));
  for (const line of text.split("\n").slice(0, -1)) reader.line(line);
  return reader.done();
}

describe("a gateway that records", { timeout: 120_000 }, () => {
  const kept = join(folder, "kept");
  const bySession = new Map<string, Recording>();
  beforeAll(async () => {
    await using upstream = await startFakeUpstream(scriptOf());
    await using gateway = await gatewayAt(upstream.url, {
      record: kept,
      graceMs: 300,
      upstreamTimeoutMs: 5000,
    });
    await Promise.all(Object.entries(PLAYS).map(([name, play]) => play(gateway, name)));
    await gateway.close();
    for (const { text } of recordings(kept)) {
      const recording = read(text);
      bySession.set(recording.head.session, recording);
    }
  }, 120_000);

  it.each(Object.keys(PLAYS))("%s: runs again with the same bytes for every connection", (name) => {
    const recording = bySession.get(name);
    if (recording === undefined) throw new Error("It was not recorded");
    const replayed = replay(recording);
    expect(replayed).toMatchObject({ difference: null, entries: recording.entries.length });
    expect(replayed.messages).toBeGreaterThan(2);
  });

  it("its files are their owner's alone", () => {
    for (const { path } of recordings(kept)) expect(statSync(path).mode & 0o077).toBe(0);
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
