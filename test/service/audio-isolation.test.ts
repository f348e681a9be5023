import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { registerAudioIsolation } from "../../src/service/http/audio/audio-isolation.ts";
import { decodeUpload } from "../../src/service/media/decode-upload.ts";
import { measures } from "../helpers/measures.ts";
import { correlation, lagOf, levelOf, randomNumbers } from "../kit/signals.ts";
import { ffmpegDecode, hasProgram, until } from "../unit/audio/helpers.ts";
import { encodeFile, fileOf, testSound } from "../unit/service/media/helpers.ts";
import { startClient, VOICE } from "./client.ts";
import { type Mounted, mount } from "./mounted.ts";
import { openTemporaryFiles } from "./temporary-parts.ts";
import { WorkerCrash } from "./worker-crash.ts";

interface Item {
  readonly id: string;
  readonly title: string | null;
  readonly [field: string]: unknown;
}

let mounted: Mounted;
let folder: string;
const oldFolder = process.env.TMPDIR;

beforeAll(async () => {
  // Its own temporary folder, so that left-over files would be seen.
  folder = mkdtempSync(join(tmpdir(), "voicewire-test-"));
  process.env.TMPDIR = folder;
  mounted = await mount({}, registerAudioIsolation);
});
afterAll(async () => {
  await mounted[Symbol.asyncDispose]();
  if (oldFolder === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = oldFolder;
  rmSync(folder, { recursive: true, force: true });
});

const WHOLE = "/v1/audio-isolation";
const STREAM = "/v1/audio-isolation/stream";

function formOf(
  audio: Uint8Array | undefined,
  fields: Readonly<Record<string, string>> = {},
  name = "a.wav",
) {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  if (audio !== undefined) form.append("audio", new Blob([new Uint8Array(audio)]), name);
  return form;
}

const post = (path: string, body: FormData | string, headers = {}, to = mounted) =>
  fetch(to.url + path, { method: "POST", body, headers });

/** A WAV file of so many samples at 16 kHz. */
function wavOf(pcm: Int16Array, rate = 16_000): Uint8Array {
  const header = Buffer.alloc(44);
  header.write("RIFF", 0);
  header.writeUInt32LE(36 + pcm.byteLength, 4);
  header.write("WAVEfmt ", 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36);
  header.writeUInt32LE(pcm.byteLength, 40);
  return Buffer.concat([header, Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength)]);
}

const shortWav = (seconds = 0.5) => wavOf(testSound(seconds, 16_000));

async function list(query = "", to = mounted): Promise<{ items: Item[]; has_more: boolean }> {
  const answer = await fetch(`${to.url}/v1/audio-isolation/history${query}`);
  expect(answer.status).toBe(200);
  return (await answer.json()) as { items: Item[]; has_more: boolean };
}

const remove = (id: string) => fetch(`${mounted.url}/v1/audio-isolation/history/${id}`, { method: "DELETE" });

/** Adds noise: white, or pink by Kellet's filter; at so many dB below the speech. */
function noisy(clean: Int16Array, { snrDb, isPink }: { snrDb: number; isPink: boolean }): Int16Array {
  const random = randomNumbers(5);
  let [b0, b1, b2] = [0, 0, 0];
  const noise = Float32Array.from(clean, () => {
    const white = random() * 2 - 1;
    b0 = 0.99765 * b0 + white * 0.099046;
    b1 = 0.963 * b1 + white * 0.2965164;
    b2 = 0.57 * b2 + white * 1.0526913;
    return isPink ? b0 + b1 + b2 + white * 0.1848 : white;
  });
  const gain = (levelOf(clean) * 10 ** (-snrDb / 20)) / levelOf(noise);
  return clean.map((sample, at) => Math.max(-32_768, Math.min(32_767, sample + (noise[at] ?? 0) * gain)));
}

/** Seconds with nothing in them before, between and after what the service's own voice says. */
async function speech(): Promise<Int16Array> {
  await using client = await startClient();
  const texts = ["The birch canoe slid on the smooth planks.", "Glue the sheet to the dark blue background."];
  const parts: Int16Array[] = [new Int16Array(16_000)];
  for (const text of texts) {
    const answer = await client.post(`/v1/text-to-speech/${VOICE}?output_format=pcm_16000`, { text });
    const { body } = answer;
    const pcm = new Int16Array(
      body.buffer.slice(body.byteOffset, body.byteOffset + body.length - (body.length % 2)),
    );
    parts.push(pcm, new Int16Array(16_000));
  }
  return Int16Array.from(parts.flatMap((part) => [...part]));
}

/** As a player has it that reads the first frame: ffmpeg does so for files only, not for pipes. */
async function exactSeconds(mp3: Uint8Array): Promise<number> {
  let seconds = 0;
  for await (const { pcm, sampleRate } of decodeUpload(fileOf(mp3), { fileFormat: "other" })) {
    seconds += pcm.length / sampleRate;
  }
  return seconds;
}

const decibels = (ratio: number) => 20 * Math.log10(ratio);

describe.runIf(hasProgram("ffmpeg"))("isolated speech", () => {
  let clean: Int16Array;
  beforeAll(async () => {
    clean = await speech();
  }, 60_000);

  it.each([
    { path: WHOLE, snrDb: 5, isPink: false },
    { path: WHOLE, snrDb: 10, isPink: true },
    { path: STREAM, snrDb: 10, isPink: false },
    { path: STREAM, snrDb: 5, isPink: true },
  ])(
    "$path at $snrDb dB (pink: $isPink): less noise, the same speech, in its place",
    async (noise) => {
      measures("POST /v1/audio-isolation", "audio", "less noise, the same speech in its place");
      measures("POST /v1/audio-isolation/stream", "audio", "less noise, the same speech in its place");
      const dirty = noisy(clean, noise);
      const answer = await post(noise.path, formOf(wavOf(dirty)), { origin: "http://localhost:1" });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("audio/mpeg");
      expect(answer.headers.get("access-control-allow-origin")).toBe("http://localhost:1");
      const mp3 = new Uint8Array(await answer.arrayBuffer());
      expect(answer.headers.get("content-length")).toBe(noise.path === WHOLE ? String(mp3.length) : null);
      const cleaned = ffmpegDecode(mp3, { rate: 16_000 });
      // Streamed, the padding of the last frames can't be announced.
      const extra = cleaned.length - clean.length;
      expect(extra).toBeGreaterThanOrEqual(-1);
      expect(extra).toBeLessThanOrEqual(900);
      if (noise.path === WHOLE) expect(await exactSeconds(mp3)).toBeCloseTo(clean.length / 16_000, 4);
      expect(Math.abs(lagOf(clean, cleaned, 800))).toBeLessThanOrEqual(160);
      // The pauses before and after, without their edges.
      for (const [from, to] of [
        [4000, 15_000],
        [clean.length - 10_000, clean.length - 2000],
      ] as const) {
        const less = decibels(levelOf(dirty, from, to) / (levelOf(cleaned, from, to) + 0.1));
        expect(less).toBeGreaterThan(12);
      }
      const [from, to] = [16_000, clean.length - 16_000];
      expect(correlation(clean, cleaned, { from, to })).toBeGreaterThan(
        correlation(clean, dirty, { from, to }),
      );
      // Voiced parts: 20 ms at a time, those that are loud.
      let [kept, there] = [0, 0];
      for (let at = from; at < to; at += 320) {
        if (levelOf(clean, at, at + 320) < levelOf(clean, from, to)) continue;
        kept += levelOf(cleaned, at, at + 320) ** 2;
        there += levelOf(clean, at, at + 320) ** 2;
      }
      expect(Math.abs(decibels(Math.sqrt(kept / there)))).toBeLessThan(3);
    },
    60_000,
  );
});

describe.runIf(hasProgram("ffmpeg"))("what is taken", () => {
  it.each([
    ["wav", ["-f", "wav"]],
    ["mp3", ["-c:a", "libmp3lame", "-f", "mp3"]],
    ["ogg", ["-c:a", "libopus", "-f", "ogg"]],
    ["ogg", ["-c:a", "libvorbis", "-f", "ogg"]],
    ["flac", ["-c:a", "flac", "-f", "flac"]],
  ])("%s, by its content and not by its name", async (format, args) => {
    const answer = await post(STREAM, formOf(encodeFile(testSound(1), args), {}, "film.avi"));
    expect(answer.status).toBe(200);
    const pcm = ffmpegDecode(new Uint8Array(await answer.arrayBuffer()), { rate: 16_000 });
    expect(Math.abs(pcm.length - 16_000)).toBeLessThan(1300);
    const [item] = (await list("?page_size=1")).items;
    expect(item).toMatchObject({ title: "film.avi", format });
    expect(item?.duration_seconds).toBeCloseTo(1, 1);
  });

  it("raw PCM where file_format says so, streamed", async () => {
    measures(
      "POST /v1/audio-isolation/stream",
      "file_format",
      "raw samples are taken, and their length kept",
    );
    const audio = new Uint8Array(testSound(1, 16_000).buffer);
    const answer = await post(STREAM, formOf(audio, { file_format: "pcm_s16le_16" }));
    const pcm = ffmpegDecode(new Uint8Array(await answer.arrayBuffer()), { rate: 16_000 });
    expect(Math.abs(pcm.length - 16_000)).toBeLessThan(1300);
    expect((await post(STREAM, formOf(audio))).status).toBe(400);
  });

  it.each([WHOLE, STREAM])(
    "raw PCM with half a sample at its end is refused before it begins: %s",
    async (path) => {
      // Long enough that a stream has begun before its end is decoded.
      const audio = new Uint8Array(testSound(8, 16_000).buffer).subarray(1);
      const answer = await post(path, formOf(audio, { file_format: "pcm_s16le_16" }));
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({
        detail: { code: "invalid_audio", message: expect.stringContaining("1 byte at its end is too many") },
      });
    },
  );

  it("raw PCM where file_format says so", async () => {
    measures("POST /v1/audio-isolation", "file_format", "raw samples are taken, and their length kept");
    const audio = new Uint8Array(testSound(1, 16_000).buffer);
    const answer = await post(WHOLE, formOf(audio, { file_format: "pcm_s16le_16" }));
    const pcm = ffmpegDecode(new Uint8Array(await answer.arrayBuffer()), { rate: 16_000 });
    expect(Math.abs(pcm.length - 16_000)).toBeLessThanOrEqual(900);
    expect((await post(WHOLE, formOf(audio))).status).toBe(400);
  });
});

describe("what is refused", () => {
  const detailOf = async (answer: Response) => ((await answer.json()) as { detail: unknown }).detail;

  it("a form without audio, before the key is looked at; its file format as well", async () => {
    await using locked = await mount({ key: "right" }, registerAudioIsolation);
    for (const path of [WHOLE, STREAM]) {
      const answer = await post(path, formOf(undefined, { file_format: "mp3" }), {}, locked);
      expect(answer.status).toBe(422);
      expect(await detailOf(answer)).toEqual([
        { type: "missing", loc: ["body", "audio"], msg: "Field required", input: null },
        {
          type: "literal_error",
          loc: ["body", "file_format"],
          msg: "Input should be 'pcm_s16le_16' or 'other'",
          input: "mp3",
          ctx: { expected: "'pcm_s16le_16' or 'other'" },
        },
      ]);
      expect((await post(path, formOf(shortWav()), {}, locked)).status).toBe(401);
      expect((await post(path, formOf(shortWav()), { "xi-api-key": "right" }, locked)).status).toBe(200);
    }
  });

  it("audio that is text, and bodies that are no form", async () => {
    const form = new FormData();
    form.append("audio", "not a file");
    const answer = await post(WHOLE, form);
    expect(answer.status).toBe(422);
    expect(await detailOf(answer)).toMatchObject([{ type: "value_error", loc: ["body", "audio"] }]);
    for (const type of ["application/json", "audio/wav", "application/x-www-form-urlencoded", "text/plain"]) {
      const other = await post(STREAM, `{"audio": "${"x".repeat(3_000_000)}"}`, { "content-type": type });
      expect(other.status, type).toBe(422);
      expect(await detailOf(other)).toMatchObject([{ type: "missing", loc: ["body", "audio"] }]);
    }
    expect((await fetch(mounted.url + WHOLE, { method: "POST" })).status).toBe(422);
  });

  it("broken forms", async () => {
    const type = { "content-type": "multipart/form-data; boundary=xyz" };
    const part = '--xyz\r\nContent-Disposition: form-data; name="audio"; filename="a.wav"\r\n\r\nRIFF';
    const proto = part.replace('"audio"', '"__proto__"');
    for (const body of [part, `${part}\r\n--xy`, "nonsense", `${proto}\r\n--xyz--\r\n`]) {
      const answer = await post(WHOLE, body, type);
      expect(answer.status, body).toBe(400);
      expect(await answer.json()).toEqual({ detail: "There was an error parsing the body" });
    }
    const bare = await post(WHOLE, part, { "content-type": "multipart/form-data" });
    expect(bare.status).toBe(400);
  });

  it("too many parts, a field too long, a preview that is too long or no base64", async () => {
    const many = new FormData();
    for (let at = 0; at < 30; at += 1) many.append("audio", new Blob(["x"]), "x");
    for (const form of [many, formOf(shortWav(), { preview_b64: "A".repeat(1_100_000) })]) {
      const answer = await post(WHOLE, form);
      expect(answer.status).toBe(400);
      expect(await detailOf(answer)).toMatchObject({ type: "invalid_request", code: "request_too_large" });
    }
    const two = formOf(shortWav());
    two.append("audio", new Blob([new Uint8Array(shortWav())]), "b.wav");
    for (const path of [WHOLE, STREAM]) {
      const answer = await post(path, two);
      expect([answer.status, await detailOf(answer)]).toMatchObject([
        422,
        [{ type: "value_error", loc: ["body", "audio"] }],
      ]);
    }
    for (const preview_b64 of [
      "no base64",
      "aGVsbG8",
      "data:image/png;base64,aGVsbG8=",
      "aGVs=bG8",
      "aGVsbG8_",
    ]) {
      const answer = await post(WHOLE, formOf(shortWav(), { preview_b64 }));
      expect([preview_b64, answer.status]).toEqual([preview_b64, 400]);
      const detail = { type: "validation_error", code: "invalid_parameters", param: "preview_b64" };
      expect(await detailOf(answer)).toMatchObject(detail);
    }
    const long = await post(WHOLE, formOf(shortWav(), { preview_b64: "A".repeat(200_000) }));
    expect(await detailOf(long)).toMatchObject({ code: "invalid_parameters", param: "preview_b64" });
  });

  it("what is no audio, and none", async () => {
    const noise = Uint8Array.from({ length: 20_000 }, (_, at) => (at * at * 31) % 251);
    for (const path of [WHOLE, STREAM]) {
      for (const [audio, code] of [
        [noise, "invalid_audio_format"],
        [new Uint8Array(0), "invalid_audio"],
        [shortWav().subarray(0, 44), "invalid_audio"],
      ] as const) {
        const answer = await post(path, formOf(audio));
        expect(answer.status).toBe(400);
        const detail = await detailOf(answer);
        expect(detail).toMatchObject({ type: "validation_error", code, status: code, param: "audio" });
        expect(detail).toMatchObject({ request_id: answer.headers.get("x-trace-id") });
      }
    }
  });
});

describe.runIf(hasProgram("ffmpeg"))("containers of browsers and telephones", () => {
  const silent = new Int16Array(3 * 48_000);
  const sound = testSound(1);
  const pcm = new Int16Array([...silent, ...sound]);
  it.each([
    ["WebM, which begins with silence", "matroska", ["-c:a", "libopus", "-b:a", "24k", "-f", "webm"]],
    ["M4A, whose index is its end", "mp4", ["-c:a", "aac", "-f", "ipod"]],
    ["Matroska with AAC", "matroska", ["-c:a", "aac", "-f", "matroska"]],
    ["AIFF", "aiff", ["-c:a", "pcm_s16be", "-f", "aiff"]],
  ])("%s: is isolated in its whole length", async (name, format, args) => {
    const answer = await post(WHOLE, formOf(encodeFile(pcm, args), {}, `${name}.mp3`));
    expect(answer.status).toBe(200);
    const isolated = ffmpegDecode(new Uint8Array(await answer.arrayBuffer()), { rate: 16_000 });
    expect(isolated.length / 16_000).toBeCloseTo(4, 0);
    const items = (await (await fetch(`${mounted.url}/v1/audio-isolation/history`)).json()) as {
      items: Item[];
    };
    expect(items.items[0]).toMatchObject({ title: `${name}.mp3`, format });
  });
});

describe("the history of isolations", () => {
  it("has what was isolated, newest first, with every key; a search finds it; deletion takes the media with it", async () => {
    measures("POST /v1/audio-isolation", "preview_b64", "kept with the item");
    measures("GET /v1/audio-isolation/history", "page_size", "how many items a page has");
    measures("GET /v1/audio-isolation/history", "page", "where the page begins");
    measures("GET /v1/audio-isolation/history", "search", "which items are listed");
    measures(
      "DELETE /v1/audio-isolation/history/{history_item_id}",
      "history_item_id",
      "the item and its file are gone",
    );
    await using own = await mount({}, registerAudioIsolation);
    for (const name of ["Morning walk.wav", "evening_50%.wav", "Évening.wav"]) {
      await (await post(WHOLE, formOf(shortWav(), { preview_b64: "aGVsbG8=" }, name), {}, own)).arrayBuffer();
    }
    const streamed = await post(
      STREAM,
      formOf(shortWav(0.7), { preview_b64: "aGVsbG8=" }, "streamed"),
      {},
      own,
    );
    const bytes = Buffer.from(await streamed.arrayBuffer());
    const { items, has_more } = await list("", own);
    expect(has_more).toBe(false);
    expect(items.map(({ title }) => title)).toEqual([
      "streamed",
      "Évening.wav",
      "evening_50%.wav",
      "Morning walk.wav",
    ]);
    expect(items[3]).toEqual({
      id: expect.stringMatching(/^\w{10,}$/),
      title: "Morning walk.wav",
      created_at_unix: expect.any(Number),
      format: "wav",
      duration_seconds: 0.5,
      download_url: null,
      icon_url: null,
      source_video_url: null,
      supports_video: false,
      processing: false,
      video_processing_failed: false,
      preview_b64: "aGVsbG8=",
    });
    // Of the full variant only.
    expect(items[0]?.preview_b64).toBeNull();
    const kept = own.store.isolations.get(items[0]?.id ?? "");
    expect(await own.store.media.read(kept?.media.hash ?? "")).toEqual(bytes);
    const titles = async (query: string) => (await list(query, own)).items.map(({ title }) => title);
    expect(await titles("?search=MORNING")).toEqual(["Morning walk.wav"]);
    expect(await titles("?search=50%25")).toEqual(["evening_50%.wav"]);
    expect(await titles("?search=wav&page_size=2&page=2")).toEqual(["Morning walk.wav"]);
    expect(await list("?page_size=2&search=wav", own)).toMatchObject({ has_more: true });
    // A page without a search is the first.
    expect(await titles("?page_size=1&page=3")).toEqual(["streamed"]);
    expect(await titles("?search=wav&page=999999999999999")).toEqual([]);
    // ... and the client that asks for one more each time comes to an end.
    const hasMore = async (page: number) => (await list(`?page_size=1&page=${page}`, own)).has_more;
    expect([await hasMore(1), await hasMore(2), await hasMore(3)]).toEqual([true, false, false]);
    const id = items[0]?.id ?? "";
    const path = `${own.url}/v1/audio-isolation/history/${id}`;
    const deleted = await fetch(path, { method: "DELETE" });
    expect(deleted.status).toBe(204);
    expect(await deleted.text()).toBe("");
    expect((await fetch(path, { method: "DELETE" })).status).toBe(404);
    expect(await titles("")).not.toContain("streamed");
    await expect(own.store.media.read(kept?.media.hash ?? "")).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("refuses unknown pages and unknown ids", async () => {
    for (const query of ["page_size=0", "page_size=1001", "page=0", "page=x", "page_size=1.5"]) {
      const answer = await fetch(`${mounted.url}/v1/audio-isolation/history?${query}`);
      expect(answer.status, query).toBe(422);
    }
    const answer = await remove("nothing");
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({
      detail: { type: "not_found", code: "history_item_not_found", param: "history_item_id" },
    });
  });
});

describe("zero retention and formats of isolations", () => {
  it("enable_logging=false: the same sound, and no item, file or file being written", async () => {
    measures("POST /v1/audio-isolation", "enable_logging", "nothing in the history, no file");
    measures("POST /v1/audio-isolation/stream", "enable_logging", "nothing in the history, no file");
    await using own = await mount({}, registerAudioIsolation);
    for (const path of [WHOLE, STREAM]) {
      const kept = await post(path, formOf(shortWav()), {}, own);
      const unkept = await post(
        `${path}?enable_logging=false`,
        formOf(shortWav(), {}, "secret.wav"),
        {},
        own,
      );
      expect([kept.status, unkept.status]).toEqual([200, 200]);
      expect(await unkept.arrayBuffer()).toEqual(await kept.arrayBuffer());
    }
    expect((await list("", own)).items.map(({ title }) => title)).toEqual(["a.wav", "a.wav"]);
    expect(own.store.database.all("SELECT * FROM isolation")).toHaveLength(2);
    expect(unfinishedMedia()).toBe(0);
    const withPicture = formOf(shortWav(), { preview_b64: "aGVsbG8=" });
    const refused = await post(`${WHOLE}?enable_logging=false`, withPicture, {}, own);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ detail: { param: "preview_b64" } });
  });

  it("enable_logging=false is for enterprise customers only: 403", async () => {
    await using own = await mount({ tier: "business" }, registerAudioIsolation);
    for (const path of [WHOLE, STREAM]) {
      const refused = await post(`${path}?enable_logging=false`, formOf(shortWav()), {}, own);
      expect(refused.status).toBe(403);
      expect(await refused.json()).toMatchObject({ detail: { param: "enable_logging" } });
      expect((await post(`${path}?enable_logging=true`, formOf(shortWav()), {}, own)).status).toBe(200);
    }
  });

  it("output_format: 400 for any but the one that it makes", async () => {
    measures("POST /v1/audio-isolation", "output_format", "400 for any but the one that there is");
    measures("POST /v1/audio-isolation/stream", "output_format", "400 for any but the one that there is");
    for (const path of [WHOLE, STREAM]) {
      const refused = await post(`${path}?output_format=pcm_16000`, formOf(shortWav()));
      expect(refused.status).toBe(400);
      expect(await refused.json()).toMatchObject({
        detail: { code: "invalid_output_format", param: "output_format" },
      });
      const named = await post(`${path}?output_format=mp3_44100_128`, formOf(shortWav()));
      expect([named.status, named.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
      await named.arrayBuffer();
    }
  });
});

/** Media that are being written, of all stores. */
function unfinishedMedia(): number {
  const shelves = readdirSync(folder).map((name) => join(folder, name, "media", "tmp"));
  return shelves.reduce((sum, shelf) => sum + (existsSync(shelf) ? readdirSync(shelf).length : 0), 0);
}

describe("large uploads and clients that leave", () => {
  const HEAD =
    '--xyz\r\nContent-Disposition: form-data; name="file_format"\r\n\r\npcm_s16le_16\r\n' +
    '--xyz\r\nContent-Disposition: form-data; name="audio"; filename="big.pcm"\r\n\r\n';
  const start = (path: string, onAnswer: (message: IncomingMessage) => void = () => undefined) => {
    const sent = httpRequest(mounted.url + path, {
      method: "POST",
      headers: { "content-type": "multipart/form-data; boundary=xyz" },
    });
    sent.on("response", onAnswer).on("error", () => undefined);
    sent.write(HEAD);
    return sent;
  };

  it("60 MB take little memory", async () => {
    const before = process.memoryUsage();
    let highest = 0;
    const sent = start(STREAM);
    const piece = Buffer.alloc(262_144);
    for (let at = 0; at < 240; at += 1) {
      if (!sent.write(piece)) await new Promise((resolve) => sent.once("drain", resolve));
      highest = Math.max(highest, process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed);
    }
    expect(openTemporaryFiles()).toBe(1);
    expect(highest - before.arrayBuffers - before.heapUsed).toBeLessThan(40e6);
    sent.destroy();
    await until(() => openTemporaryFiles() === 0);
  });

  it.each([WHOLE, STREAM])(
    "%s: a client that leaves while it is being answered leaves nothing",
    async (path) => {
      const count = (await list()).items.length;
      const sent = start(path, (message) => message.once("data", () => sent.destroy()));
      for (let at = 0; at < 80; at += 1) sent.write(Buffer.alloc(65_536));
      sent.end("\r\n--xyz--\r\n");
      if (path === WHOLE) {
        await until(() => openTemporaryFiles() === 2);
        sent.destroy();
      }
      await new Promise((resolve) => sent.once("close", resolve));
      await until(() => openTemporaryFiles() === 0);
      await until(() => unfinishedMedia() === 0);
      await until(() => mounted.temporaryFiles.bytes === 0);
      expect((await list()).items.length).toBe(count);
    },
  );
});

describe("temporary files of an isolation", () => {
  it("are given back when the thread that isolates crashes", async () => {
    await using own = await mount({}, registerAudioIsolation);
    using crash = new WorkerCrash();
    const audio = wavOf(testSound(60, 16_000));
    const answering = post(WHOLE, formOf(audio), {}, own);
    // The upload is there, and the first of the answer.
    await until(() => own.temporaryFiles.bytes > audio.length);
    await crash.now();
    expect((await answering).status).toBe(500);
    await until(() => own.temporaryFiles.bytes === 0);
  });

  it("refuse an answer with 429 that they have no room for, and free the upload", async () => {
    const audio = shortWav();
    await using own = await mount({ maxTemporaryBytes: audio.length + 100 }, registerAudioIsolation);
    const answer = await post(WHOLE, formOf(audio), {}, own);
    expect(answer.status).toBe(429);
    expect(await answer.json()).toMatchObject({ detail: { code: "system_busy" } });
    await until(() => own.temporaryFiles.bytes === 0);
  });
});
