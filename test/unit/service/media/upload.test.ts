import { createHash } from "node:crypto";
import { readdirSync, readlinkSync } from "node:fs";
import { request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { Refusal } from "../../../../src/service/http/refusal.ts";
import {
  readUpload,
  registerUploads,
  type Upload,
  type UploadOptions,
} from "../../../../src/service/media/upload.ts";
import { until } from "../../audio/helpers.ts";

/** What the handler of the test says about an upload. */
interface Told {
  readonly fields: Readonly<Record<string, string>>;
  readonly files: readonly object[];
}

const apps: FastifyInstance[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

async function start(options: UploadOptions = {}, look?: (upload: Upload) => Promise<void>) {
  const app = Fastify({ forceCloseConnections: true, bodyLimit: 1000 });
  apps.push(app);
  const ends: string[] = [];
  app.setErrorHandler((thrown, _request, reply) => {
    if (!(thrown instanceof Refusal)) throw thrown;
    return reply.code(thrown.httpStatus).send(thrown.body(""));
  });
  app.register(async (scope) => {
    await registerUploads(scope);
    scope.post("/", async (request) => {
      try {
        const upload = await readUpload(request, options);
        try {
          await look?.(upload);
          return await tell(upload);
        } finally {
          await upload.close();
          await upload.close();
        }
      } finally {
        ends.push("over");
      }
    });
  });
  app.post("/plain", async (request) => ({ body: request.body }));
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, ends };
}

async function tell(upload: Upload): Promise<Told> {
  const files: object[] = [];
  for (const file of upload.files) {
    const hash = createHash("sha256");
    let read = 0;
    // From the start each time.
    for (let round = 0; round < 2; round += 1) {
      read = 0;
      for await (const bytes of file.read()) {
        read += bytes.length;
        if (round === 1) hash.update(bytes);
      }
    }
    const { field, fileName, mimeType, bytes } = file;
    files.push({ field, fileName, mimeType, bytes, read, hash: hash.digest("hex") });
  }
  return { fields: Object.fromEntries(upload.fields), files };
}

const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const blob = (bytes: Uint8Array, type = "audio/wav") => new Blob([new Uint8Array(bytes)], { type });

async function post(url: string, body: FormData): Promise<{ status: number; told: unknown }> {
  const answer = await fetch(url, { method: "POST", body });
  return { status: answer.status, told: await answer.json() };
}

function openFiles(): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return /voicewire-[\w-]+ \(deleted\)$/.test(readlinkSync(join("/proc/self/fd", fd)));
    } catch {
      return false;
    }
  }).length;
}

const PART = '--xyz\r\nContent-Disposition: form-data; name="audio"; filename="a.wav"\r\n\r\n';

function send(url: string, first: string) {
  const headers = { "content-type": "multipart/form-data; boundary=xyz" };
  const sent = httpRequest(url, { method: "POST", headers });
  sent.on("error", () => undefined);
  sent.write(first);
  return sent;
}

describe("uploads", () => {
  it("have their fields and files, byte for byte, in order; readable again and again", async () => {
    const { url } = await start();
    const large = Uint8Array.from({ length: 3_000_001 }, (_, at) => (at * 7) % 256);
    const small = Uint8Array.of(1, 2, 3);
    const form = new FormData();
    form.append("name", "Zoë — 音");
    form.append("files", blob(large), "folder/große Datei.wav");
    form.append("name2", "");
    form.append("files", blob(small, "audio/x-thing"), "b");
    form.append("empty", blob(new Uint8Array(0)), "c");
    form.append("name", "last");
    const { status, told } = await post(url, form);
    expect(status).toBe(200);
    const mimeType = "audio/wav";
    expect(told).toEqual({
      fields: { name: "last", name2: "" },
      files: [
        {
          field: "files",
          fileName: "große Datei.wav",
          mimeType,
          bytes: 3_000_001,
          read: 3_000_001,
          hash: hashOf(large),
        },
        { field: "files", fileName: "b", mimeType: "audio/x-thing", bytes: 3, read: 3, hash: hashOf(small) },
        { field: "empty", fileName: "c", mimeType, bytes: 0, read: 0, hash: hashOf(new Uint8Array(0)) },
      ],
    });
    expect(openFiles()).toBe(0);
  });

  it("leave the rest of the server as it was", async () => {
    const { url } = await start();
    const answer = await fetch(`${url}plain`, {
      method: "POST",
      body: '{"a":1}',
      headers: { "content-type": "application/json" },
    });
    expect(await answer.json()).toEqual({ body: { a: 1 } });
    expect(await post(url, new FormData())).toEqual({ status: 200, told: { fields: {}, files: [] } });
  });

  it("fields that call themselves JSON stay text", async () => {
    const { url } = await start();
    const raw =
      '--xyz\r\nContent-Disposition: form-data; name="labels"\r\nContent-Type: application/json\r\n\r\n{"a": 1}\r\n--xyz--\r\n';
    const answer = await fetch(url, {
      method: "POST",
      body: raw,
      headers: { "content-type": "multipart/form-data; boundary=xyz" },
    });
    expect(await answer.json()).toEqual({ fields: { labels: '{"a":1}' }, files: [] });
  });

  it("a file at the limit is taken, one over it is refused and freed", async () => {
    const { url } = await start({ maxFileBytes: 100_000 });
    for (const [bytes, status] of [
      [100_000, 200],
      [100_001, 400],
      [5_000_000, 400],
    ] as const) {
      const form = new FormData();
      form.append("audio", blob(new Uint8Array(bytes)), "a");
      form.append("after", "x");
      const answer = await post(url, form);
      expect(answer.status).toBe(status);
      if (status === 400) expect(answer.told).toMatchObject({ detail: { code: "request_too_large" } });
      await until(() => openFiles() === 0);
    }
  });

  it("files are not kept for a stranger", async () => {
    let whileOpen = -1;
    const { url } = await start({ keepsFiles: false }, async () => {
      whileOpen = openFiles();
    });
    const form = new FormData();
    form.append("audio", blob(new Uint8Array(500_000)), "a");
    expect((await post(url, form)).told).toMatchObject({
      files: [{ field: "audio", bytes: 500_000, read: 0 }],
    });
    expect(whileOpen).toBe(0);
  });

  it("a client that leaves in the middle frees everything", async () => {
    const { url, ends } = await start();
    for (const first of [`${PART}${"R".repeat(100)}`, `${PART}RIFF${"x".repeat(200_000)}`]) {
      const sent = send(url, first);
      await until(() => openFiles() === 1);
      sent.destroy();
      await until(() => openFiles() === 0 && ends.length === 1);
      ends.splice(0);
    }
    const inField = send(url, '--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\nabc');
    await new Promise((resolve) => setTimeout(resolve, 50));
    inField.destroy();
    await until(() => ends.length === 1);
  });

  it("a client that falls silent is cut off", async () => {
    const { url, ends } = await start({ stallMs: 50 });
    const sent = send(url, `${PART}RIFF`);
    await new Promise((resolve) => sent.once("close", resolve));
    await until(() => ends.length === 1 && openFiles() === 0);
  });

  it("200 MB take no more memory than a few", async () => {
    const { url } = await start();
    const sent = send(url, PART);
    const answered = new Promise<number>((resolve) =>
      sent.on("response", (message) => resolve(message.statusCode ?? 0)),
    );
    const piece = Buffer.alloc(524_288, 3);
    let highest = 0;
    const used = () => process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed;
    const before = used();
    for (let at = 0; at < 400; at += 1) {
      if (!sent.write(piece)) await new Promise((resolve) => sent.once("drain", resolve));
      highest = Math.max(highest, used());
    }
    sent.end("\r\n--xyz--\r\n");
    expect(await answered).toBe(200);
    expect(highest - before).toBeLessThan(50e6);
    expect(openFiles()).toBe(0);
  });
});
