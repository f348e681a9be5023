/** Uploads of 96 MB and more into a service in a process of its own: its memory stays flat, and nothing of them is left. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wavHeader } from "../../src/audio/containers/wav.ts";
import { until } from "../helpers/until.ts";
import { VOICE } from "./client.ts";
import { openTemporaryFiles } from "./temporary-parts.ts";

const BUILT = pathToFileURL(join(import.meta.dirname, "../../dist/service/service.js")).href;
const MEGABYTE = 1024 * 1024;
const UPLOAD_BYTES = 96 * MEGABYTE;
const MAX_GROWTH_BYTES = 64 * MEGABYTE;
const BOUNDARY = "voicewire-test";
const CONVERT = `/v1/speech-to-speech/${VOICE}?output_format=pcm_16000`;

/** Sends its port, then on each "peak" the most memory since the one before. */
const SERVICE = `
const { startService } = await import(${JSON.stringify(BUILT)});
const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false });
let peak = 0;
setInterval(() => { peak = Math.max(peak, process.memoryUsage().rss); }, 10).unref();
process.on("message", () => {
  process.send({ peakBytes: Math.max(peak, process.memoryUsage().rss) });
  peak = 0;
});
process.on("disconnect", () => process.exit(0));
process.send({ port: service.port });
`;

let folder: string;
let files: string;
let child: ChildProcess;
let port: number;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  files = join(folder, "tmp");
  await mkdir(files);
  const script = join(folder, "service.mjs");
  await writeFile(script, SERVICE);
  child = fork(script, { env: { ...process.env, TMPDIR: files } });
  [{ port }] = (await once(child, "message")) as [{ port: number }];
  // What comes with the first upload, the first decoder and the first answer is no growth.
  for (const path of [CONVERT, "/v1/audio-isolation"]) {
    expect((await send(path, silence(2)).answer).status).toBe(200);
    expect((await send(path, noAudio(20 * MEGABYTE)).answer).status).toBe(400);
  }
}, 60_000);
afterAll(async () => {
  child.kill();
  await once(child, "exit");
  await rm(folder, { recursive: true, force: true });
});

async function peakBytes(): Promise<number> {
  child.send("peak");
  const [message] = (await once(child, "message")) as [{ peakBytes: number }];
  return message.peakBytes;
}

const openUploads = (): number => openTemporaryFiles(child.pid ?? 0);

interface Sound {
  readonly header: Uint8Array;
  readonly fill: number;
  readonly bytes: number;
}

/** A WAV file of 8 kHz: 96 MB of it are more than an hour and a half. */
function silence(seconds: number): Sound {
  const bytes = seconds * 16_000;
  return { header: wavHeader({ sampleRate: 8000, dataBytes: bytes }), fill: 0, bytes };
}

function noAudio(bytes: number): Sound {
  return { header: new Uint8Array(0), fill: 7, bytes };
}

interface Sent {
  readonly request: ClientRequest;
  /** Resolves when all that is to be sent has been given to the socket. */
  readonly written: Promise<void>;
  readonly answer: Promise<{ readonly status: number; readonly body: Buffer }>;
}

/** Uploads the sound as a form, piece by piece, as fast as the service takes it; `untilBytes`: and stops there. */
function send(path: string, sound: Sound, untilBytes = Number.POSITIVE_INFINITY): Sent {
  const front = Buffer.from(
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="audio"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n`,
  );
  const back = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
  const sending = request({
    port,
    path,
    method: "POST",
    headers: {
      "content-type": `multipart/form-data; boundary=${BOUNDARY}`,
      "content-length": front.length + sound.header.length + sound.bytes + back.length,
    },
  });
  const answer = (async () => {
    const [message] = (await once(sending, "response")) as [IncomingMessage];
    const parts: Buffer[] = [];
    for await (const part of message) parts.push(part as Buffer);
    return { status: message.statusCode ?? 0, body: Buffer.concat(parts) };
  })();
  const piece = Buffer.alloc(65_536, sound.fill);
  let written = 0;
  const writing = (async () => {
    sending.write(front);
    sending.write(sound.header);
    while (written < Math.min(sound.bytes, untilBytes)) {
      const part = piece.subarray(0, Math.min(piece.length, sound.bytes - written));
      written += part.length;
      if (!sending.write(part)) await once(sending, "drain");
    }
    if (written === sound.bytes) sending.end(back);
  })();
  // A client that leaves has no answer, and one that is refused early can't write on: who waits for either gets an error.
  answer.catch(() => undefined);
  writing.catch(() => undefined);
  return { request: sending, written: writing, answer };
}

describe("an upload of 96 MB", { timeout: 90_000 }, () => {
  it.each([
    ["for conversion, longer than an hour", CONVERT, silence(UPLOAD_BYTES / 16_000), "audio_too_long"],
    ["for conversion that is no audio", CONVERT, noAudio(UPLOAD_BYTES), "invalid_audio_format"],
    ["for isolation that is no audio", "/v1/audio-isolation", noAudio(UPLOAD_BYTES), "invalid_audio_format"],
  ])(
    "%s: is refused when it is there, in flat memory, and its file is gone",
    async (_name, path, sound, code) => {
      const startBytes = await peakBytes();
      const { status, body } = await send(path, sound).answer;
      expect([status, JSON.parse(body.toString()).detail.code]).toEqual([400, code]);
      expect((await peakBytes()) - startBytes).toBeLessThan(MAX_GROWTH_BYTES);
      await until("the file's end", () => openUploads() === 0);
      expect(readdirSync(files).filter((name) => /^voicewire-[\da-f]{8}-/.test(name))).toEqual([]);
    },
  );

  it.each([CONVERT, "/v1/audio-isolation"])(
    "%s: its file is gone when its client leaves in the middle, and others are served",
    async (path) => {
      const startBytes = await peakBytes();
      const sent = send(path, silence(UPLOAD_BYTES / 16_000), UPLOAD_BYTES / 2);
      sent.request.on("error", () => undefined);
      await sent.written;
      await until("the upload's file", () => openUploads() > 0);
      sent.request.destroy();
      await until("the file's end", () => openUploads() === 0);
      expect((await peakBytes()) - startBytes).toBeLessThan(MAX_GROWTH_BYTES);
      expect((await send(path, silence(1)).answer).status).toBe(200);
    },
  );
});

describe("an upload over the service's own limits", { timeout: 90_000 }, () => {
  const tooLarge = (body: Buffer) => {
    const { code, message } = JSON.parse(body.toString()).detail;
    return `${code}: ${message}`;
  };

  it.each([CONVERT, "/v1/audio-isolation", "/v1/voices/add"])(
    "%s: a file of 101 MB is refused on its way, in flat memory, and is gone",
    async (path) => {
      const startBytes = await peakBytes();
      const sent = send(path, noAudio(101 * MEGABYTE));
      const { status, body } = await sent.answer;
      sent.request.destroy();
      expect(status).toBe(400);
      expect(tooLarge(body)).toBe(
        "request_too_large: A file is larger than 100 MB: send a shorter recording, or a compressed one.",
      );
      expect((await peakBytes()) - startBytes).toBeLessThan(MAX_GROWTH_BYTES);
      await until("the file's end", () => openUploads() === 0);
    },
  );

  it("a form that says that it is larger than 250 MB is refused before it is read", async () => {
    const sent = send(CONVERT, noAudio(251 * MEGABYTE), 0);
    const { status, body } = await sent.answer;
    sent.request.destroy();
    expect(status).toBe(400);
    expect(tooLarge(body)).toBe("request_too_large: The form is larger than 250 MB: send less at once.");
  });
});
