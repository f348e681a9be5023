/** `voicewire listen` over connections that break, against a gateway that breaks them. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { runCli } from "../../../src/cli/commands.ts";
import type { WordsEvent } from "../../../src/protocol/events.ts";
import { memoryIo } from "./memory-io.ts";
import { cueEvent } from "./scripted-cues.ts";
import { type Joined, ScriptedGateway } from "./scripted-gateway.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-listen-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function listen(
  onJoin: (joined: Joined, index: number) => void,
  ...flags: string[]
): Promise<{ code: number; out: string; err: string; samples: number[]; gateway: ScriptedGateway }> {
  await using gateway = await ScriptedGateway.start({ onJoin });
  const file = join(folder, `${Math.random()}.pcm`);
  const io = memoryIo(["listen", "s", "--url", gateway.url, "--out", file, "--format", "pcm_8000", ...flags]);
  const code = await runCli(io);
  const pcm = readFileSync(file);
  // One number a frame: every sample of a frame is the same.
  const samples = Array.from({ length: pcm.length / 320 }, (_, frame) => pcm.readInt16LE(frame * 320));
  return { code, out: io.stdout.text, err: io.stderr.text, samples, gateway };
}

const said = (seq: number, text: string) => ({
  type: "characters",
  utterance_id: "u1",
  seq,
  start: 0,
  end: text.length,
  characters: [...text],
  start_ms: [],
  end_ms: [],
  timing: "exact",
});

const words = (
  list: readonly (readonly [text: string, start: number, startMs: number])[],
): Omit<WordsEvent, "seq" | "at_ms"> => ({
  type: "words",
  utterance_id: "u1",
  words: list.map(([text, start, start_ms]) => ({
    text,
    start,
    end: start + text.length,
    start_ms,
    end_ms: start_ms + 100,
  })),
  timing: "exact",
});
/** `count` frames of one value: 20 ms each. */
const frames = (count: number, value: number): number[] => Array.from({ length: count }, () => value);

const placeOf = (query: URLSearchParams | undefined) =>
  ["resume", "seq", "at_ms"].map((key) => query?.get(key));

describe("voicewire listen", () => {
  test("asks for the policy and the place, and gets only what comes after it", async () => {
    const { code, samples, err, gateway } = await listen(
      (joined) => {
        joined.hello({ startMs: 20, resumed: true });
        joined.frames([1, 2, 3, 4]);
        joined.close(1000);
      },
      "--policy",
      "lossless",
      "--resume",
      "t0:7:60",
    );
    expect(code).toBe(0);
    expect(gateway.joined[0]?.query.get("policy")).toBe("lossless");
    expect(placeOf(gateway.joined[0]?.query)).toEqual(["t0", "7", "60"]);
    expect(samples).toEqual([3, 4]);
    expect(err).toContain("voicewire: joined again\n");
  });

  test("comes back where it was when the connection breaks: nothing twice, nothing missing", async () => {
    const { code, samples, out, err, gateway } = await listen((joined, index) => {
      if (index === 0) {
        joined.hello({ startMs: 100 });
        joined.frames([1, 2, 3]);
        joined.send(said(4, "Hello"));
        setTimeout(() => joined.drop(), 50);
        return;
      }
      joined.hello({ startMs: 140, resumed: true });
      joined.send(said(4, "Hello"));
      joined.frames([3, 4, 5]);
      joined.send(said(5, " there"));
      joined.close(1000);
    }, "--json");
    expect(code).toBe(0);
    expect(placeOf(gateway.joined[1]?.query)).toEqual(["t1", "4", "160"]);
    expect(samples).toEqual([1, 2, 3, 4, 5]);
    const events = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.map((event) => `${event.type} ${event.seq}`)).toEqual([
      "hello 0",
      "characters 4",
      "hello 100",
      "characters 5",
    ]);
    expect(err).toMatch(
      /^voicewire: the connection broke \(1006\), joining again\nvoicewire: joined again\n/,
    );
  });

  test("has what was said again once, in the text and in the captions", async () => {
    const { out, err } = await listen(
      (joined) => {
        joined.hello();
        joined.frames([1, 2, 3, 4, 5]);
        joined.event(said(1, "One two th"));
        joined.event(
          words([
            ["One", 0, 0],
            ["two", 4, 100],
            ["th", 8, 200],
          ]),
        );
        joined.event({
          type: "warning",
          code: "speech_recovered",
          message: "It broke off",
          utterance_id: "u1",
          start: 7,
        });
        joined.event({ ...said(4, " three"), start: 7, end: 13 });
        joined.event({ ...words([["three", 8, 300]]), at_ms: 300 });
        // Cues are made of words that are sure: none is void.
        joined.event({ ...cueEvent("One two three", { startMs: 0, wordMs: 40 }) });
        joined.frames([6, 7]);
        joined.close(1000);
      },
      "--srt",
      "-",
    );
    expect(out).toMatch(/^1\n00:00:00,000 --> .*\nOne two three\n\n$/);
    expect(err).toContain("voicewire: It broke off\n");
    expect(err).not.toContain("thth");
  });

  test("says what was missed, once, and keeps the file true to the timeline", async () => {
    const { samples, err } = await listen((joined, index) => {
      if (index === 0) {
        joined.hello();
        joined.frames([1]);
        setTimeout(() => joined.drop(), 50);
        return;
      }
      joined.hello({ startMs: 80, resumed: true });
      // `start_ms` has covered the frames: this is about the events that are gone with them.
      joined.send({ type: "gap", frames: 0, ms: 60, events: 2 });
      joined.frames([5]);
      joined.close(1000);
    });
    expect(samples).toEqual([1, 0, 0, 0, 5]);
    expect(err.match(/60 ms/g)).toHaveLength(1);
    expect(err).toContain("voicewire: joined again; missed 60 ms of audio\nvoicewire: missed 2 events\n");
  });

  test("fills what a slow reader was not sent, too, but not what a cut left out", async () => {
    const { samples } = await listen((joined) => {
      joined.hello();
      joined.frames([1]);
      joined.send({ type: "gap", frames: 2, ms: 40 });
      joined.frames([4]);
      joined.event({ type: "interrupted", utterance_id: "u1", next_ms: 200 });
      joined.frames([11]);
      joined.close(1000);
    });
    expect(samples).toEqual([1, 0, 0, 4, 11]);
  });

  test("goes on with a session that has begun again, and says so", async () => {
    const { samples, out, err } = await listen(
      (joined, index) => {
        joined.hello(index === 0 ? { startMs: 5000 } : { epoch: "e2", startMs: 0, resumed: false });
        const startMs = index === 0 ? 5000 : 0;
        joined.event(said(1, index === 0 ? "Said before lost." : "Said since."));
        // Of the first session the sound of the third word does not come any more.
        joined.event({ ...cueEvent(index === 0 ? "Said before lost." : "Said since.", { startMs }) });
        joined.frames(frames(10, index + 1));
        if (index === 0) setTimeout(() => joined.drop(), 50);
        else joined.close(1000);
      },
      "--vtt",
      "-",
    );
    expect(samples).toEqual([...frames(10, 1), ...frames(10, 2)]);
    expect(err).toContain("the session has begun again");
    expect(out.replace(/<[^>]*>/g, "")).toMatch(
      /^WEBVTT\n\n00:00:00\.000 --> 00:00:00\.200\nSaid before\n\n00:00:00\.200 --> .*\nSaid since\.\n\n$/,
    );
  });

  test("interrupted: captions have what was heard, and fit the file where the timeline goes on elsewhere", async () => {
    const { samples, out } = await listen(
      (joined) => {
        joined.hello({ leadMs: 120 });
        joined.event({ ...cueEvent("One two three four.", { startMs: 0, endMs: 900 }) });
        joined.frames(frames(15, 1));
        // "two" has not been heard to its end, and what follows not at all.
        joined.event({ type: "interrupted", utterance_id: "u1", at_ms: 180, next_ms: 360 });
        joined.event({ ...cueEvent("Next.", { startMs: 380, utteranceId: "u2" }) });
        joined.frames(frames(10, 2));
        joined.close(1000);
      },
      "--srt",
      "-",
    );
    expect(samples).toEqual([...frames(15, 1), ...frames(10, 2)]);
    expect(out).toMatch(/^1\n00:00:00,000 --> 00:00:00,180\nOne two\n\n2\n00:00:00,320 --> .*\nNext\.\n\n$/);
  });

  test("--no-reconnect ends with the connection, with 4", async () => {
    const { code, err, gateway } = await listen((joined) => {
      joined.hello();
      joined.frames([1]);
      setTimeout(() => joined.drop(), 50);
    }, "--no-reconnect");
    expect(code).toBe(4);
    expect(err).toContain("The gateway closed the connection: 1006");
    expect(gateway.joined).toHaveLength(1);
  });

  test("does not come back to a gateway that has refused it", async () => {
    const { code, gateway } = await listen((joined) => {
      joined.hello();
      joined.close(4403);
    });
    expect(code).toBe(4);
    expect(gateway.joined).toHaveLength(1);
  });
});
