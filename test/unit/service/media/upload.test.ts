import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { ApiError } from "../../../../src/service/api-error.ts";
import { UPLOAD_LIMITS, type Upload } from "../../../../src/service/media/upload.ts";
import {
  openTemporaryFiles as openFiles,
  type TemporaryPartsOptions,
  temporaryParts,
} from "../../../service/temporary-parts.ts";
import { until } from "../../audio/helpers.ts";

/** What the handler of the test says about an upload. */
interface Reported {
  readonly fields: Readonly<Record<string, string>>;
  readonly files: readonly object[];
}

const apps: FastifyInstance[] = [];
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

interface StartOptions extends TemporaryPartsOptions {
  /** Every client is one, and is refused with this. */
  readonly stranger?: ApiError;
  readonly look?: (upload: Upload) => Promise<void>;
}

async function start({ stranger, look, ...options }: StartOptions = {}) {
  const app = Fastify({ forceCloseConnections: true, bodyLimit: 1000 });
  apps.push(app);
  const { temporaryFiles, uploads } = temporaryParts(options);
  const ends: string[] = [];
  const sockets: Socket[] = [];
  app.server.on("connection", (socket) => sockets.push(socket));
  app.setErrorHandler((thrown, _request, reply) => {
    if (!(thrown instanceof ApiError)) throw thrown;
    return reply.code(thrown.httpStatus).send(thrown.body(""));
  });
  app.register(async (scope) => {
    await uploads.register(scope);
    scope.post("/", async (request, reply) => {
      try {
        const upload = await uploads.read(request, reply, { stranger: stranger ?? null });
        try {
          await look?.(upload);
          return await report(upload);
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
  return { url: `http://127.0.0.1:${port}/`, ends, temporaryFiles, sockets };
}

async function report(upload: Upload): Promise<Reported> {
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

async function post(url: string, body: FormData): Promise<{ status: number; reported: unknown }> {
  const answer = await fetch(url, { method: "POST", body });
  return { status: answer.status, reported: await answer.json() };
}

const FILE = 'Content-Disposition: form-data; name="audio"; filename="a.wav"';
const PART = `--xyz\r\n${FILE}\r\n\r\n`;
const NEXT = `\r\n${PART}`;
const END = "\r\n--xyz--\r\n";

/** Sends the beginning of a form; the test sends on. */
function send(url: string, first: string, headers: Readonly<Record<string, string | number>> = {}) {
  const sent = httpRequest(url, {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=xyz", ...headers },
    agent: false,
  });
  const answer = new Promise<{ readonly status: number; readonly detail: unknown }>((resolve, reject) => {
    sent.once("error", reject);
    sent.once("response", async (message) => {
      const parts: Buffer[] = [];
      for await (const part of message) parts.push(part as Buffer);
      const { detail } = JSON.parse(Buffer.concat(parts).toString());
      resolve({ status: message.statusCode ?? 0, detail });
    });
  });
  // A client that is cut off has no answer.
  answer.catch(() => undefined);
  sent.write(first);
  return Object.assign(sent, { answer });
}

type Sent = ReturnType<typeof send>;

/** Sends zeros until the connection is cut, whatever the answer says. Resolves with what was answered until then. */
async function flood(
  url: string,
  first: string,
  type = "multipart/form-data; boundary=xyz",
): Promise<string> {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes.toString();
  });
  // A reset says no more than the end.
  socket.on("error", () => undefined);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const chunk = (bytes: string) => `${bytes.length.toString(16)}\r\n${bytes}\r\n`;
  const head = `POST / HTTP/1.1\r\nhost: test\r\ncontent-type: ${type}\r\ntransfer-encoding: chunked\r\n\r\n`;
  socket.write(head + chunk(first));
  const zeros = chunk("0".repeat(65_536));
  while (!socket.destroyed) {
    if (socket.write(zeros)) await new Promise(setImmediate);
    else await Promise.race([new Promise((resolve) => socket.once("drain", resolve)), closed]);
  }
  return answer;
}

const TOO_LARGE = { status: 400, detail: { type: "invalid_request", code: "request_too_large" } };
const BUSY = { status: 429, detail: { type: "rate_limit_error", code: "system_busy" } };
const UNAUTHORIZED = { type: "authentication_error", code: "unauthorized", message: "Who is it?" };

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
    const { status, reported } = await post(url, form);
    expect(status).toBe(200);
    const mimeType = "audio/wav";
    expect(reported).toEqual({
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
    expect(await post(url, new FormData())).toEqual({ status: 200, reported: { fields: {}, files: [] } });
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

  it("a client that leaves in the middle frees everything", async () => {
    const { url, ends, temporaryFiles, sockets } = await start();
    for (const first of [`${PART}${"R".repeat(100)}`, `${PART}RIFF${"x".repeat(200_000)}`]) {
      const sent = send(url, first);
      await until(() => openFiles() === 1 && temporaryFiles.bytes > 0);
      sent.destroy();
      await until(() => openFiles() === 0 && ends.length === 1);
      expect(temporaryFiles.bytes).toBe(0);
      ends.splice(0);
    }
    const before = sockets.length;
    const inField = send(url, '--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\nabc');
    await until(() => (sockets[before]?.bytesRead ?? 0) > 0);
    inField.destroy();
    await until(() => ends.length === 1);
  });

  it("a client that falls silent is cut off", async () => {
    const { url, ends } = await start({ uploadLimits: { stallMs: 50 } });
    const sent = send(url, `${PART}RIFF`);
    await new Promise((resolve) => sent.once("close", resolve));
    await until(() => ends.length === 1 && openFiles() === 0);
  });

  it("two files of 96 MB take no more memory than a few", async () => {
    const { url } = await start();
    const sent = send(url, PART);
    const piece = Buffer.alloc(524_288, 3);
    let highest = 0;
    const used = () => process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed;
    const before = used();
    for (let at = 0; at < 384; at += 1) {
      if (at === 192) sent.write(NEXT);
      if (!sent.write(piece)) await new Promise((resolve) => sent.once("drain", resolve));
      highest = Math.max(highest, used());
    }
    sent.end(END);
    expect((await sent.answer).status).toBe(200);
    expect(highest - before).toBeLessThan(80e6);
    expect(openFiles()).toBe(0);
  });
});

describe("limits of uploads", () => {
  it("are 100 MB a file, 8 files and 250 MB a form, 64 forms at once and 4 of one client", () => {
    expect(UPLOAD_LIMITS).toMatchObject({
      maxFileBytes: 100 * 1024 ** 2,
      maxFiles: 8,
      maxFormBytes: 250 * 1024 ** 2,
      maxUploads: 64,
      maxUploadsPerClient: 4,
    });
  });

  it("a file at the limit is taken; one over it is refused before it has ended, and freed", async () => {
    const { url, temporaryFiles } = await start({ uploadLimits: { maxFileBytes: 100_000 } });
    const fitting = send(url, PART + "x".repeat(100_000));
    fitting.end(END);
    expect((await fitting.answer).status).toBe(200);
    const message = "A file is larger than 100000 bytes: send a shorter recording, or a compressed one.";
    const larger = send(url, PART + "x".repeat(100_001));
    expect(await larger.answer).toMatchObject({ ...TOO_LARGE, detail: { ...TOO_LARGE.detail, message } });
    expect([openFiles(), temporaryFiles.bytes]).toEqual([0, 0]);
  });

  it("a form is refused that is too large: by what it says before it is read, else by what has come", async () => {
    const { url, temporaryFiles } = await start({ uploadLimits: { maxFormBytes: 300_000 } });
    const declared = send(url, PART, { "content-length": 300_001 });
    const message = "The form is larger than 300000 bytes: send less at once.";
    expect(await declared.answer).toMatchObject({ ...TOO_LARGE, detail: { ...TOO_LARGE.detail, message } });
    const sent = send(url, PART + "x".repeat(200_000));
    sent.write(NEXT + "x".repeat(99_000));
    await until(() => temporaryFiles.bytes > 290_000);
    sent.write("x".repeat(2000));
    expect(await sent.answer).toMatchObject(TOO_LARGE);
    expect([openFiles(), temporaryFiles.bytes]).toEqual([0, 0]);
  });

  it("a form that has no parts but goes on and on is cut off", async () => {
    const { url, ends, sockets } = await start({ uploadLimits: { maxFormBytes: 300_000 } });
    expect(await flood(url, "no boundary")).toBe("");
    expect(ends).toEqual(["over"]);
    expect(sockets[0]?.bytesRead).toBeLessThan(2_000_000);
  });

  it("fields are refused that are larger than 1 MB together", async () => {
    const { url } = await start();
    const form = new FormData();
    for (const name of ["a", "b", "c"]) form.append(name, "x".repeat(400_000));
    expect(await post(url, form)).toMatchObject({ status: 400, reported: { detail: TOO_LARGE.detail } });
  });

  it("eight files are taken, nine are refused", async () => {
    const { url } = await start();
    const form = new FormData();
    for (let at = 0; at < 8; at += 1) form.append("files", blob(Uint8Array.of(at)), "a");
    expect((await post(url, form)).status).toBe(200);
    form.append("files", blob(Uint8Array.of(8)), "a");
    expect(await post(url, form)).toMatchObject({ status: 400, reported: { detail: TOO_LARGE.detail } });
    expect(openFiles()).toBe(0);
  });

  it("an upload is refused with 429 when all temporary files have no more room, and frees what it had", async () => {
    const { url, temporaryFiles } = await start({ maxTemporaryBytes: 500_000 });
    const first = send(url, PART + "x".repeat(400_000));
    await until(() => temporaryFiles.bytes >= 390_000);
    const second = send(url, PART + "x".repeat(200_000));
    expect(await second.answer).toMatchObject(BUSY);
    await until(() => openFiles() === 1);
    expect(temporaryFiles.bytes).toBeLessThanOrEqual(400_000);
    first.end(END);
    expect((await first.answer).status).toBe(200);
    expect(temporaryFiles.bytes).toBe(0);
  });

  it("a client has four uploads at once, and another when one ends in any way", async () => {
    const { url, temporaryFiles } = await start({ uploadLimits: { maxFileBytes: 100_000 } });
    const open = async (): Promise<Sent> => {
      const before = openFiles();
      const sent = send(url, `${PART}RIFF`);
      await until(() => openFiles() === before + 1);
      return sent;
    };
    const [first, second, third] = [await open(), await open(), await open(), await open()];
    const refused = async () => expect(await send(url, `${PART}RIFF`).answer).toMatchObject(BUSY);
    await refused();
    first?.end(END);
    expect((await first?.answer)?.status).toBe(200);
    await open();
    await refused();
    second?.write("x".repeat(100_001));
    expect((await second?.answer)?.status).toBe(400);
    await open();
    await refused();
    third?.destroy();
    await until(() => openFiles() === 3);
    await open();
    await refused();
    expect(temporaryFiles.bytes).toBe(4 * 4);
  });

  it("a refused client has time for its answer, and is cut off when it goes on sending", async () => {
    const { url, sockets } = await start({ uploadLimits: { maxFileBytes: 100_000, lingerMs: 100 } });
    const answer = await flood(url, PART);
    expect(answer).toMatch(/^HTTP\/1.1 400 .*\r\nconnection: close\r\n.*"code":"request_too_large"/s);
    expect(sockets[0]?.bytesRead).toBeLessThan(2_000_000);
  });

  it("a body that is no form is not read to its end either", async () => {
    const { url, sockets } = await start({ uploadLimits: { lingerMs: 100 } });
    const answer = await flood(url, "RIFF", "audio/wav");
    expect(answer).toMatch(/^HTTP\/1.1 200 .*\r\nconnection: close\r\n.*"files":\[\]/s);
    expect(sockets[0]?.bytesRead).toBeLessThan(2_000_000);
  });

  it("a refused form that has come to its end leaves the connection open", async () => {
    const { url, sockets } = await start({ uploadLimits: { maxFileBytes: 1000 } });
    const agent = new Agent({ keepAlive: true });
    for (let round = 0; round < 2; round += 1) {
      const sent = httpRequest(url, {
        method: "POST",
        headers: { "content-type": "multipart/form-data; boundary=xyz" },
        agent,
      });
      sent.end(PART + "x".repeat(2000) + END);
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      expect([answer.statusCode, answer.headers.connection]).toEqual([400, "keep-alive"]);
      await once(answer.resume(), "close");
    }
    expect(sockets.length).toBe(1);
    agent.destroy();
  });
});

describe("a stranger's upload", () => {
  const stranger = ApiError.of(UNAUTHORIZED);

  it("is read to its end while it is small, and no byte of its files is kept", async () => {
    const seen: number[][] = [];
    const { url, temporaryFiles } = await start({
      stranger,
      look: async () => {
        seen.push([openFiles(), temporaryFiles.bytes]);
      },
    });
    const form = new FormData();
    form.append("audio", blob(new Uint8Array(500_000)), "a");
    expect((await post(url, form)).reported).toMatchObject({
      files: [{ field: "audio", bytes: 500_000, read: 0 }],
    });
    expect(seen).toEqual([[0, 0]]);
  });

  it("is refused before it is read where it says that it is larger than 1 MB", async () => {
    const { url, sockets } = await start({ stranger });
    const sent = send(url, PART, { "content-length": 1_048_577 });
    expect(await sent.answer).toMatchObject({ status: 401, detail: UNAUTHORIZED });
    expect(sockets[0]?.bytesRead).toBeLessThan(1000);
  });

  it("is refused after 1 MB, and cut off when it goes on", async () => {
    const { url, sockets, temporaryFiles } = await start({ stranger, uploadLimits: { lingerMs: 100 } });
    expect(await flood(url, PART)).toMatch(
      /^HTTP\/1.1 401 .*\r\nconnection: close\r\n.*"code":"unauthorized"/s,
    );
    expect(sockets[0]?.bytesRead).toBeLessThan(3_000_000);
    expect([openFiles(), temporaryFiles.bytes]).toEqual([0, 0]);
  });

  it("has four places an address, also where who has the key is not limited", async () => {
    const limits = { maxUploadsPerClient: Number.POSITIVE_INFINITY };
    const { url, sockets } = await start({ stranger, uploadLimits: limits });
    const open = Array.from({ length: 4 }, () => send(url, `${PART}RIFF`));
    await until(() => sockets.length === 4 && sockets.every(({ bytesRead }) => bytesRead > 0));
    expect(await send(url, `${PART}RIFF`).answer).toMatchObject({ status: 401, detail: UNAUTHORIZED });
    for (const sent of open) sent.end(END);
    expect((await Promise.all(open.map(({ answer }) => answer))).map(({ status }) => status)).toEqual([
      200, 200, 200, 200,
    ]);
  });
});
