/** Uploads of 200 MB into a service in a process of its own: its memory stays flat, and nothing of them is left behind. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wavHeader } from "../../src/audio/wav.ts";
import { until } from "../helpers/until.ts";
import { VOICE } from "./client.ts";

const BUILT = pathToFileURL(join(import.meta.dirname, "../../dist/service/service.js")).href;
const MEGABYTE = 1024 * 1024;
const UPLOAD_BYTES = 200 * MEGABYTE;
const MAX_GROWTH_BYTES = 64 * MEGABYTE;
const BOUNDARY = "voicewire-test";
const CONVERT = `/v1/speech-to-speech/${VOICE}?output_format=pcm_16000`;

/** Tells its port, then on each "peak" the most memory since the one before. */
const SERVICE = `
const { startService } = await import(${JSON.stringify(BUILT)});
const service = await startService({ host: "127.0.0.1", port: 0 });
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

/** Of the temporary files that the service holds: they have no name, only a handle. */
function openUploads(): number {
  const handles = `/proc/${child.pid}/fd`;
  const isUpload = (handle: string): boolean => {
    try {
      const target = readlinkSync(join(handles, handle));
      return target.startsWith(join(files, "voicewire-")) && target.endsWith(" (deleted)");
    } catch (thrown) {
      // Closed between both calls.
      if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return false;
      throw thrown;
    }
  };
  return readdirSync(handles).filter(isUpload).length;
}

interface Sound {
  readonly header: Uint8Array;
  readonly fill: number;
  readonly bytes: number;
}

/** A WAV file of 16 kHz: 200 MB of it are nearly two hours. */
function silence(seconds: number): Sound {
  const bytes = seconds * 32_000;
  return { header: wavHeader({ sampleRate: 16_000, dataBytes: bytes }), fill: 0, bytes };
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
  // A client that leaves has no answer, and one that is refused early can't write on: who waits for either is told.
  answer.catch(() => undefined);
  writing.catch(() => undefined);
  return { request: sending, written: writing, answer };
}

describe("an upload of 200 MB", { timeout: 90_000 }, () => {
  it.each([
    ["for conversion, longer than an hour", CONVERT, silence(UPLOAD_BYTES / 32_000), "audio_too_long"],
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
      const sent = send(path, silence(UPLOAD_BYTES / 32_000), UPLOAD_BYTES / 2);
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
