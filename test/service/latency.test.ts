/** optimize_streaming_latency: the writes of an answer by their sizes, and what is said of numbers. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measures } from "../helpers/measures.ts";
import { encodeWavFile } from "../kit/wav-file.ts";
import { samplesOf } from "../unit/service/convert/measures.ts";
import { type Client, linesOf, OTHER_VOICE, startClient, VOICE } from "./client.ts";
import { startConvertApp } from "./convert-app.ts";

const TEXT =
  "Please say when the next train leaves for the city, and whether I can still buy a ticket today.";
const RATE = 24_000;
const LEVELS = [0, 1, 2, 3];
let folder: string;
let client: Client;
let app: Awaited<ReturnType<typeof startConvertApp>>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  client = await startClient({ dataFolder: join(folder, "speech") });
  app = await startConvertApp(join(folder, "conversion"));
}, 60_000);
afterAll(async () => {
  await app.close();
  await client[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** The bytes of each write of the answer: one chunk of HTTP's chunked coding each (RFC 9112, section 7.1). */
async function writesOf(url: string, { type, body }: { type: string; body: Buffer }): Promise<Buffer[]> {
  const { hostname, port, pathname, search } = new URL(url);
  const socket = connect(Number(port), hostname);
  const head =
    `POST ${pathname}${search} HTTP/1.1\r\nhost: ${hostname}\r\nconnection: close\r\n` +
    `content-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n`;
  socket.write(Buffer.concat([Buffer.from(head), body]));
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  await once(socket, "end");
  const answer = Buffer.concat(parts);
  expect(answer.toString("latin1", 0, 12)).toBe("HTTP/1.1 200");
  const writes: Buffer[] = [];
  for (let at = answer.indexOf("\r\n\r\n") + 4; ; ) {
    const lineEnd = answer.indexOf("\r\n", at);
    const size = Number.parseInt(answer.toString("latin1", at, lineEnd), 16);
    if (size === 0) return writes;
    writes.push(answer.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}

function speak(level: number | null, options: { query?: string; path?: string; text?: string } = {}) {
  const { query = "", path = "", text = TEXT } = options;
  const latency = level === null ? "" : `&optimize_streaming_latency=${level}`;
  const url = `${client.service.url}/v1/text-to-speech/${VOICE}/stream${path}?output_format=pcm_${RATE}${latency}${query}`;
  const body = Buffer.from(JSON.stringify({ text, seed: 4 }));
  return writesOf(url, { type: "application/json", body });
}

async function convert(level: number, recording: Int16Array) {
  const form = new FormData();
  form.set("audio", new Blob([encodeWavFile(recording, RATE) as Uint8Array<ArrayBuffer>]), "said.wav");
  const request = new Request("http://form/", { method: "POST", body: form });
  const url =
    `${app.url}/v1/speech-to-speech/${OTHER_VOICE}/stream?output_format=pcm_${RATE}` +
    `&optimize_streaming_latency=${level}`;
  const type = request.headers.get("content-type") ?? "";
  return writesOf(url, { type, body: Buffer.from(await request.arrayBuffer()) });
}

function expectFalling(values: readonly number[]): void {
  for (const [at, value] of values.slice(1).entries()) expect(value).toBeLessThan(values[at] ?? 0);
}

const sizes = (writes: readonly Buffer[]) => writes.map(({ length }) => length);
const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;

describe("optimize_streaming_latency", { timeout: 90_000 }, () => {
  it.each([
    ["with history", ""],
    ["without", "&enable_logging=false"],
  ])("of speech, %s: 0 to 3 send a smaller first piece, and smaller pieces", async (_, query) => {
    const answers: Buffer[][] = [];
    for (const level of LEVELS) answers.push(await speak(level, { query }));
    expectFalling(answers.map((writes) => sizes(writes)[0] ?? 0));
    expectFalling(answers.map((writes) => mean(sizes(writes))));
    const [usual = Buffer.alloc(0), ...others] = answers.map((writes) => Buffer.concat(writes));
    for (const other of others) expect(other.equals(usual)).toBe(true);
  });

  it("speech gains half of what 3 gains with 1, and three quarters with 2", async () => {
    measures(
      "POST /v1/text-to-speech/{voice_id}",
      "optimize_streaming_latency",
      "the size of the pieces, and numbers left as written at 4",
    );
    const firstBytes: number[] = [];
    for (const level of LEVELS) {
      firstBytes.push(sizes(await speak(level, { query: "&enable_logging=false" }))[0] ?? 0);
    }
    const [usual = 0, , , smallest = 0] = firstBytes;
    const gains = firstBytes.map((bytes) => (usual - bytes) / (usual - smallest));
    for (const [level, gain] of [0, 0.5, 0.75, 1].entries()) expect(gains[level]).toBeCloseTo(gain, 1);
  });

  it("speech without the parameter comes as with 0", async () => {
    expect(sizes(await speak(null))).toEqual(sizes(await speak(0)));
  });

  it("the first line of speech with times has sound alone, and the characters are those of 0", async () => {
    const lines = linesOf(Buffer.concat(await speak(3, { path: "/with-timestamps" })));
    const usual = linesOf(Buffer.concat(await speak(0, { path: "/with-timestamps" })));
    expect(lines.length).toBeGreaterThan(2 * usual.length);
    expect(lines[0]?.alignment).toBeNull();
    const firstBytes = Buffer.from(lines[0]?.audio_base64 ?? "", "base64").length;
    expect(firstBytes / 2 / RATE).toBeCloseTo(0.02, 2);
    const starts = (all: typeof lines) =>
      all.flatMap(({ alignment }) => alignment?.character_start_times_seconds ?? []);
    expect(starts(lines)).toHaveLength(TEXT.length);
    for (const [at, start] of starts(usual).entries()) expect(starts(lines)[at]).toBeCloseTo(start, 2);
  });

  it("speech with 4 comes as with 3, and numbers are read as they are written", async () => {
    const said = async (level: number) => {
      const lines = linesOf(
        Buffer.concat(await speak(level, { path: "/with-timestamps", text: "It is $12." })),
      );
      return lines.flatMap(({ normalized_alignment: one }) => one?.characters ?? []).join("");
    };
    expect(await said(3)).toBe("It is twelve dollars.");
    expect(await said(4)).toBe("It is $12.");
    expect(sizes(await speak(4))).toEqual(sizes(await speak(3)));
  });

  it("speech to speech sends smaller pieces from 0 to 3, and with 4 as with 3", async () => {
    measures("POST /v1/speech-to-speech/{voice_id}", "optimize_streaming_latency", "the size of the pieces");
    const recording = samplesOf(Buffer.concat(await speak(0)));
    const answers: Buffer[][] = [];
    for (const level of LEVELS) answers.push(await convert(level, recording));
    expectFalling(answers.map((writes) => mean(sizes(writes))));
    expectFalling(answers.map((writes) => sizes(writes)[0] ?? 0));
    const lengths = answers.map((writes) => Buffer.concat(writes).length);
    for (const length of lengths) expect(length).toBe(lengths[0]);
    expect(sizes(await convert(4, recording))).toEqual(sizes(answers[3] ?? []));
  });
});
