/** Captions over plain HTTP, against a real gateway: events, files that grow, files at once. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CueEvent } from "../../src/protocol/events.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { readStrictVtt } from "../helpers/strict-vtt.ts";
import { until } from "../helpers/until.ts";

const TEXT = "Fish & chips for 3 < 5. And then --> home, where everybody waits for us in the dark.";
const DIALOGUE = {
  type: "dialogue",
  inputs: [
    { text: "Good evening to you.", voice_id: "a", speaker: "Ana <& Co>" },
    { text: "And to you!", voice_id: "b" },
  ],
};

/** A client of a response that goes on. */
class Reader implements AsyncDisposable {
  readonly response: IncomingMessage;
  text = "";
  end: "whole" | "cut" | null = null;

  private constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => {
      this.text += chunk;
    });
    response.on("error", () => {
      this.end = "cut";
    });
    response.on("close", () => {
      this.end = response.complete ? "whole" : "cut";
    });
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<Reader> {
    const [response] = (await once(get(url, { agent: false, headers }), "response")) as [IncomingMessage];
    return new Reader(response);
  }

  /** Server-sent events, as a browser reads them. */
  get events(): { id: string; event: string; data: Record<string, unknown> }[] {
    return this.text
      .split("\n\n")
      .slice(0, -1)
      .filter((block) => block.includes("data: "))
      .map((block) => {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
        return { id: field("id"), event: field("event"), data: JSON.parse(field("data")) };
      });
  }

  of(event: string) {
    return this.events.filter((one) => one.event === event);
  }

  async has(event: string, count = 1): Promise<void> {
    await until(event, () => this.of(event).length >= count, { deadlineMs: 15_000 });
  }
  async isOver(): Promise<void> {
    await until("the end", () => this.end !== null, { deadlineMs: 15_000 });
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.response.destroy();
    await this.isOver();
  }
}

async function speaker(gateway: TestGateway, session = "s"): Promise<TestClient> {
  const client = await TestClient.connect(gateway, `/live/${session}?format=ulaw_8000&events=none`);
  await client.next("hello");
  return client;
}

describe.concurrent("GET /live/{session}/captions", () => {
  it("sends cues, words and what becomes of utterances, each with its place", async () => {
    await using upstream = await startFakeUpstream(speaking({ msPerChar: 30 }));
    await using gateway = await gatewayAt(upstream.url);
    await using client = await speaker(gateway);
    await using reader = await Reader.open(`${gateway.url}/live/s/captions?cue_profile=phone`);
    expect(reader.response.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
      vary: "Origin",
    });
    client.send({ type: "speak", text: "Hello there, general listener.", voice_id: "v" });
    await reader.has("utterance.done");
    const [hello] = reader.of("hello");
    expect(reader.text.startsWith("retry: 1000\n\n")).toBe(true);
    expect(hello?.data).toMatchObject({ settings: { events: ["cues", "words"], cue_profile: "phone" } });
    for (const { id, data } of reader.events) expect(id).toBe(`${hello?.data.epoch}:${data.seq}`);
    const lines = reader.of("cue").flatMap(({ data }) => (data as unknown as CueEvent).lines);
    expect(lines.map((line) => line.text)).toEqual(["Hello there,", "general listener."]);
    expect(reader.of("words").length).toBeGreaterThan(0);
    expect(reader.of("utterance.started")).toHaveLength(1);
  });

  it("goes on where a browser was that comes back", async () => {
    await using upstream = await startFakeUpstream(speaking({ msPerChar: 30 }));
    await using gateway = await gatewayAt(upstream.url);
    await using client = await speaker(gateway);
    const first = await Reader.open(`${gateway.url}/live/s/captions`);
    client.send({
      type: "speak",
      text: "One sentence is here. Another sentence is there, too.",
      voice_id: "v",
    });
    await first.has("cue");
    await first[Symbol.asyncDispose]();
    const lastId = first.events.at(-1)?.id ?? "";
    await using second = await Reader.open(`${gateway.url}/live/s/captions`, { "last-event-id": lastId });
    await second.has("utterance.done");
    expect(second.of("hello")[0]?.data).toMatchObject({ resumed: true });
    const seqs = [...first.events, ...second.events]
      .filter(({ event }) => event !== "hello")
      .map(({ data }) => Number(data.seq));
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
    const cues = [...first.of("cue"), ...second.of("cue")].map(({ data }) => data as unknown as CueEvent);
    expect(cues.flatMap((cue) => cue.lines.map((line) => line.text)).join(" ")).toBe(
      "One sentence is here. Another sentence is there, too.",
    );
    await using third = await Reader.open(`${gateway.url}/live/s/captions?last_event_id=other:1`);
    await third.has("warning");
    expect(third.of("warning")[0]?.data).toMatchObject({ code: "resume_refused" });
  });

  it("says why it ends, and refuses what is not there as the sockets do", async () => {
    await using upstream = await startFakeUpstream(speaking({ msPerChar: 30 }));
    await using gateway = await gatewayAt(upstream.url);
    await using client = await speaker(gateway);
    const reader = await Reader.open(`${gateway.url}/live/s/captions`);
    await reader.has("hello");
    for (const path of ["captions", "captions.vtt", "captions.srt?live=false"]) {
      const gone = await fetch(`${gateway.url}/live/nobody/${path}`);
      expect([gone.status, (await gone.json()) as object]).toMatchObject([
        404,
        { error: { code: "unknown_session" } },
      ]);
      const head = await fetch(`${gateway.url}/live/s/${path}`, { method: "HEAD" });
      expect(head.status).toBe(200);
      expect(head.headers.get("content-type")).toMatch(/event-stream|vtt|subrip/);
      expect((await fetch(`${gateway.url}/live/nobody/${path}`, { method: "HEAD" })).status).toBe(404);
    }
    expect((await fetch(`${gateway.url}/live/s/captions?cue_profile=cinema`)).status).toBe(400);
    expect((await fetch(`${gateway.url}/live/s/captions.vtt?words=yes`)).status).toBe(400);
    client.socket.close();
    await gateway.close();
    await reader.isOver();
    expect([reader.end, reader.of("closed")[0]?.data]).toMatchObject(["whole", { code: "draining" }]);
  });
});

describe.concurrent("GET /live/{session}/captions.vtt and .srt", () => {
  it("hold what was said, escaped, with the words' times, and grow to the session's end", async () => {
    await using upstream = await startFakeUpstream(speaking({ msPerChar: 30 }));
    await using gateway = await gatewayAt(upstream.url);
    await using client = await speaker(gateway);
    const growing = await Reader.open(`${gateway.url}/live/s/captions.vtt?words=true`);
    const srt = await Reader.open(`${gateway.url}/live/s/captions.srt`);
    client.send({ type: "speak", text: TEXT, voice_id: "v" });
    await client.next("utterance.done");
    const atOnce = await (await fetch(`${gateway.url}/live/s/captions.vtt?live=false`)).text();
    // For audio that begins with a frame of silence.
    const later = await (await fetch(`${gateway.url}/live/s/captions.vtt?live=false&origin_ms=-20`)).text();
    await gateway.close();
    await growing.isOver();
    await srt.isOver();
    const cues = readStrictVtt(growing.text);
    expect(cues.flatMap((cue) => cue.lines).join(" ")).toBe(TEXT);
    expect(cues.flatMap((cue) => cue.tagsMs).length).toBeGreaterThan(8);
    expect(readStrictVtt(atOnce)).toEqual(cues.map((cue) => ({ ...cue, tagsMs: [] })));
    expect(readStrictVtt(later)).toEqual(
      cues.map((cue) => ({ ...cue, startMs: cue.startMs + 20, endMs: cue.endMs + 20, tagsMs: [] })),
    );
    expect(growing.end).toBe("whole");
    expect(srt.text).toMatch(/^\ufeff1\n00:00:0\d,\d{3} --> 00:00:0\d,\d{3}\nFish & chips/);
    expectReadByFfprobe("captions.vtt", growing.text, cues);
    expectReadByFfprobe("captions.srt", srt.text, cues);
  }, 30_000);

  it("name who speaks, and no cue is of two voices", async () => {
    await using upstream = await startFakeUpstream(speaking({ msPerChar: 30 }));
    await using gateway = await gatewayAt(upstream.url, { captions: "always" });
    await using client = await speaker(gateway);
    client.send(DIALOGUE);
    await client.next("utterance.done");
    const cues = readStrictVtt(await (await fetch(`${gateway.url}/live/s/captions.vtt?live=false`)).text());
    expect(cues.map(({ voice, lines }) => [voice, lines.join(" ")])).toEqual([
      ["Ana <& Co>", "Good evening to you."],
      ["Speaker 2", "And to you!"],
    ]);
    const srt = await (await fetch(`${gateway.url}/live/s/captions.srt?live=false`)).text();
    expect(srt).toContain("\nSpeaker 2: And to you!\n");
    expect(JSON.stringify(upstream.requests)).not.toContain("Ana");
  });

  it("cut the cue in which speech is interrupted, and have nothing behind it", async () => {
    await using upstream = await startFakeUpstream(speaking({ msPerChar: 30 }));
    await using gateway = await gatewayAt(upstream.url, { captions: "always" });
    await using client = await speaker(gateway);
    client.send({ type: "speak", text: `${TEXT} ${TEXT}`, voice_id: "v" });
    await client.until(() => client.frames.length > 60);
    client.send({ type: "interrupt" });
    const cut = await client.next("interrupted");
    const cues = readStrictVtt(await (await fetch(`${gateway.url}/live/s/captions.vtt?live=false`)).text());
    expect(cues.at(-1)?.endMs).toBeLessThanOrEqual(Math.round(cut.at_ms));
    expect(cues.length).toBeGreaterThan(0);
  });

  it("roll up line by line, each with the one before", async () => {
    await using upstream = await startFakeUpstream(speaking({ msPerChar: 30 }));
    await using gateway = await gatewayAt(upstream.url);
    await using client = await speaker(gateway);
    const url = `${gateway.url}/live/s/captions.vtt?live=false&cue_mode=roll-up`;
    expect(await (await fetch(url)).text()).toBe("WEBVTT\n\n");
    client.send({ type: "speak", text: TEXT, voice_id: "v" });
    await client.next("utterance.done");
    const cues = readStrictVtt(await (await fetch(url)).text());
    const spoken = cues.map((cue) => cue.lines.at(-1));
    expect(spoken.join(" ")).toBe(TEXT);
    expect(cues.length).toBeGreaterThan(2);
    cues.slice(1).forEach((cue, index) => {
      expect(cue.lines[0]).toBe(spoken[index]);
      expect(cue.startMs).toBe(cues[index]?.endMs);
    });
  });
});

/** Where it is installed: another reader finds the same cues. */
function expectReadByFfprobe(name: string, file: string, cues: { startMs: number; endMs: number }[]): void {
  const folder = mkdtempSync(join(tmpdir(), "captions-"));
  try {
    writeFileSync(join(folder, name), file);
    const args = ["-v", "error", "-show_entries", "packet=pts_time,duration_time", "-of", "csv=p=0"];
    const read = spawnSync("ffprobe", [...args, join(folder, name)], { encoding: "utf8" });
    if (read.error !== undefined) return;
    const rows = read.stdout
      .trim()
      .split("\n")
      .map((row) => row.split(",").map((seconds) => Number(seconds)));
    expect(
      rows.map(([start = 0, duration = 0]) => [start, start + duration].map((s) => Math.round(s * 1000))),
    ).toEqual(cues.map(({ startMs, endMs }) => [startMs, endMs]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
