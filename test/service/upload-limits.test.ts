/** Who may upload how much at once, on a whole service as it is started. */
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../helpers/until.ts";
import { type Client, startClient } from "./client.ts";
import { bodyOf, endpointsOf, fetchDocument } from "./openapi/document.ts";
import { openTemporaryFiles } from "./temporary-parts.ts";

const KEY = "the-only-key";
const PATH = "/v1/audio-isolation";
const PART =
  '--xyz\r\ncontent-disposition: form-data; name="audio"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n';

interface Sent {
  readonly request: ClientRequest;
  readonly answer: Promise<{ readonly status: number; readonly detail: unknown }>;
}

/** Begins a form and leaves it open. */
function send(
  client: Client,
  options: { readonly path?: string; readonly headers?: object; readonly body?: string },
): Sent {
  const { path = PATH, headers, body = `${PART}RIFF` } = options;
  const sent = request(client.service.url + path, {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=xyz", ...headers },
    agent: false,
  });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once("response", resolve).once("error", reject);
  }).then(async (message) => {
    const parts: Buffer[] = [];
    for await (const part of message) parts.push(part as Buffer);
    return { status: message.statusCode ?? 0, detail: JSON.parse(Buffer.concat(parts).toString()).detail };
  });
  // One that is broken off has none.
  answer.catch(() => undefined);
  sent.write(body);
  return { request: sent, answer };
}

/** So many uploads that are under way. */
async function underWay(client: Client, count: number, headers = {}): Promise<Sent[]> {
  const sent = Array.from({ length: count }, () => send(client, { headers }));
  await until("the uploads", () => openTemporaryFiles() === count);
  return sent;
}

async function leave(sent: readonly Sent[]): Promise<void> {
  for (const one of sent) one.request.destroy();
  await until("the end of the uploads", () => openTemporaryFiles() === 0);
}

async function temporaryBytes(client: Client): Promise<number> {
  const answer = await client.get("/service/stats");
  return JSON.parse(answer.body.toString()).temporary_bytes;
}

const BUSY = { status: 429, detail: { type: "rate_limit_error", code: "system_busy" } };

describe("a service without a key", () => {
  let client: Client;
  beforeAll(async () => {
    client = await startClient({ faults: true });
  });
  afterAll(() => client[Symbol.asyncDispose]());

  it("takes four uploads at once from one address, on all its endpoints together", async () => {
    const sent = await underWay(client, 4);
    for (const path of [PATH, `${PATH}/stream`, "/v1/voices/add", "/v1/speech-to-speech/any"]) {
      expect(await send(client, { path }).answer, path).toMatchObject(BUSY);
    }
    await leave(sent);
    await leave(await underWay(client, 4));
  });

  it("has the bytes of its temporary files in its stats", async () => {
    const sent = await underWay(client, 2);
    await expect.poll(() => temporaryBytes(client)).toBe(8);
    await leave(sent);
    await expect.poll(() => temporaryBytes(client)).toBe(0);
  });
});

/** The form's field with the file, where it is not `audio`. */
const FILE_FIELDS: Readonly<Record<string, string>> = {
  "/v1/voices/add": "files",
  "/v1/pronunciation-dictionaries/add-from-file": "file",
};

describe("a service with a key", () => {
  let client: Client;
  beforeAll(async () => {
    client = await startClient({ key: KEY, faults: true });
  });
  afterAll(() => client[Symbol.asyncDispose]());

  it("takes more than four uploads at once from who has it: a gateway, whose address is that of all its clients", async () => {
    await leave(await underWay(client, 6, { "xi-api-key": KEY }));
    await leave(await underWay(client, 6, { authorization: `Bearer ${KEY}` }));
  });

  it.each([
    ["no key", {}, 401],
    ["a wrong key", { "xi-api-key": "wrong" }, 401],
    ["a wrong key of the vendor's shape", { "xi-api-key": "sk_0123" }, 400],
  ])("keeps no byte of an upload with %s, on any endpoint", async (_, headers, status) => {
    const forms = endpointsOf(await fetchDocument(client.service.url)).filter(
      (endpoint) => bodyOf(endpoint)?.type === "multipart/form-data",
    );
    expect(forms.length).toBe(6);
    for (const { path } of forms) {
      const name = 'content-disposition: form-data; name="name"\r\n\r\nA\r\n--xyz\r\n';
      const files = PART.replaceAll("audio", FILE_FIELDS[path] ?? "audio").replace("--xyz\r\n", "");
      const small = send(client, {
        path: path.replace("{voice_id}", "any"),
        headers,
        body: `--xyz\r\n${name}${files}${"x".repeat(300_000)}`,
      });
      // Nothing of it is on the disk, though it has been read.
      await until("the upload", () => small.request.socket?.writableLength === 0);
      expect([openTemporaryFiles(), await temporaryBytes(client)], path).toEqual([0, 0]);
      small.request.end("\r\n--xyz--\r\n");
      expect((await small.answer).status, path).toBe(status);
      const large = send(client, { path, headers: { ...headers, "content-length": 50_000_000 } });
      expect((await large.answer).status, path).toBe(status);
      large.request.destroy();
    }
  });

  it("reports to a stranger first what a small form lacks, as the interface does", async () => {
    const sent = send(client, { body: '--xyz\r\ncontent-disposition: form-data; name="a"\r\n\r\nb' });
    sent.request.end("\r\n--xyz--\r\n");
    expect(await sent.answer).toMatchObject({
      status: 422,
      detail: [{ type: "missing", loc: ["body", "audio"] }],
    });
  });
});

describe("a service behind a gateway", () => {
  it("leaves the uploads of each client to the gateway", async () => {
    await using client = await startClient({ gatewayKey: KEY });
    await leave(await underWay(client, 6, { "xi-api-key": KEY }));
  });
});
