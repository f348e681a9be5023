import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unzipSync } from "fflate";
import { MPEGDecoder } from "mpg123-decoder";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { registerHistoryAudio } from "../../src/service/http/history/history-audio.ts";
import { measures } from "../helpers/measures.ts";
import { type Client, linesOf, OTHER_VOICE, startClient, VOICE } from "./client.ts";
import { mount } from "./mounted.ts";

interface Item {
  readonly history_item_id: string;
  readonly text: string | null;
  readonly voice_id: string | null;
  readonly [field: string]: unknown;
}
interface Page {
  readonly history: readonly Item[];
  readonly last_history_item_id: string | null;
  readonly has_more: boolean;
}

let folder: string;
let client: Client;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  client = await startClient({ dataFolder: folder });
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** Says it, and gives the id of its item. */
async function say(text: string, path = "", format = "mp3_44100_128"): Promise<string> {
  const answer = await client.post(`/v1/text-to-speech/${VOICE}${path}?output_format=${format}`, { text });
  expect(answer.status).toBe(200);
  return String(answer.headers["history-item-id"]);
}

async function json<T>(path: string): Promise<T> {
  const answer = await client.get(path);
  expect(answer.status).toBe(200);
  return JSON.parse(answer.body.toString()) as T;
}

async function remove(path: string) {
  const answer = await fetch(client.service.url + path, { method: "DELETE" });
  return { status: answer.status, body: (await answer.json()) as unknown };
}

async function mp3Seconds(bytes: Uint8Array): Promise<number> {
  const decoder = new MPEGDecoder();
  await decoder.ready;
  const { samplesDecoded, sampleRate } = decoder.decode(bytes);
  decoder.free();
  return samplesDecoded / sampleRate;
}

describe("history", () => {
  it("has what each speech endpoint said: text, voice, audio to the byte, alignments, characters billed", async () => {
    measures("GET /v1/history/{history_item_id}/audio", "history_item_id", "the very bytes of that answer");
    for (const path of ["", "/stream", "/with-timestamps", "/stream/with-timestamps"]) {
      const text = `Kept from ${path === "" ? "the plain one" : path}.`;
      const said = await client.post(`/v1/text-to-speech/${VOICE}${path}`, {
        text,
        model_id: "eleven_flash_v2_5",
      });
      const id = String(said.headers["history-item-id"]);
      const item = await json<Item>(`/v1/history/${id}`);
      expect(item).toMatchObject({
        history_item_id: id,
        request_id: said.headers["request-id"],
        text,
        voice_id: VOICE,
        voice_category: "premade",
        model_id: "eleven_flash_v2_5",
        content_type: "audio/mpeg",
        source: "TTS",
        state: "created",
        dialogue: null,
      });
      const billed = Number(item.character_count_change_to) - Number(item.character_count_change_from);
      expect(billed).toBe(Number(said.headers["character-cost"]));
      const { alignment } = item.alignments as { alignment: { characters: string[] } };
      expect(alignment.characters.join("")).toBe(text);
      const audio = await client.get(`/v1/history/${id}/audio`);
      expect(audio.headers["content-type"]).toBe("audio/mpeg");
      const given =
        path === "/with-timestamps"
          ? Buffer.from((JSON.parse(said.body.toString()) as { audio_base64: string }).audio_base64, "base64")
          : path === "/stream/with-timestamps"
            ? Buffer.concat(linesOf(said.body).map((line) => Buffer.from(line.audio_base64, "base64")))
            : said.body;
      expect(audio.body.equals(given)).toBe(true);
    }
  });

  it("has a dialogue with its lines in the place of text and voice", async () => {
    const inputs = [
      { text: "Who is there?", voice_id: VOICE },
      { text: "Only me.", voice_id: OTHER_VOICE },
    ];
    const said = await client.post("/v1/text-to-dialogue", { inputs });
    const item = await json<Item>(`/v1/history/${said.headers["history-item-id"]}`);
    expect(item).toMatchObject({ text: null, voice_id: null });
    expect(item.dialogue).toMatchObject(inputs);
    const found = await json<Page>("/v1/history?search=only%20me");
    expect(found.history.map((one) => one.history_item_id)).toEqual([item.history_item_id]);
    for (const { voice_id } of inputs) {
      const heard = await json<Page>(`/v1/history?search=only%20me&voice_id=${voice_id}`);
      expect(heard.history.map((one) => one.history_item_id)).toEqual([item.history_item_id]);
    }
    expect((await json<Page>("/v1/history?search=only%20me&voice_id=nobody")).history).toEqual([]);
  });

  it("an item of any format is given as MPEG, as long as what was said", async () => {
    measures("POST /v1/history/download", "output_format", "a WAV file of the same length");
    for (const format of ["ulaw_8000", "pcm_24000", "wav_22050", "opus_48000_64"]) {
      const id = await say("One two three four five.", "", format);
      const audio = await client.get(`/v1/history/${id}/audio`);
      expect(audio.headers["content-type"]).toBe("audio/mpeg");
      const wav = await client.post("/v1/history/download", { history_item_ids: [id], output_format: "wav" });
      expect(wav.body.toString("latin1", 0, 4)).toBe("RIFF");
      const seconds = wav.body.readUInt32LE(40) / wav.body.readUInt32LE(28);
      expect(seconds).toBeGreaterThan(1);
      expect(wav.body.length).toBe(44 + wav.body.readUInt32LE(40));
      expect(Math.abs((await mp3Seconds(audio.body)) - seconds)).toBeLessThan(0.12);
    }
  });

  it("leaves no trace of a request with enable_logging=false", async () => {
    measures("POST /v1/text-to-speech/{voice_id}", "enable_logging", "nothing in the history, no file");
    const files = async () =>
      (await readdir(folder, { recursive: true })).filter((name) => !/voicewire\.db/.test(name)).toSorted();
    const [before, filesBefore] = [await json<Page>("/v1/history"), await files()];
    const said = await client.post(`/v1/text-to-speech/${VOICE}?enable_logging=false`, { text: "Not kept." });
    expect(said.status).toBe(200);
    expect(said.headers["history-item-id"]).toBeUndefined();
    expect(await json<Page>("/v1/history")).toEqual(before);
    expect(await files()).toEqual(filesBefore);
  });

  it("keeps nothing of what the client gave up", async () => {
    const before = await json<Page>("/v1/history");
    const answer = await client.open(`/v1/text-to-speech/${VOICE}/stream`, {
      text: "Given up. ".repeat(400),
    });
    await new Promise((resolve) => answer.once("data", resolve));
    client.abortOpenRequests();
    while (client.service.stats().jobs_active > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await json<Page>("/v1/history")).toEqual(before);
    while ((await readdir(join(folder, "media", "tmp"))).length > 0)
      await new Promise((resolve) => setTimeout(resolve, 20));
  });

  it("pages by start_after_history_item_id in both directions", async () => {
    measures("GET /v1/history", "page_size", "how many items a page has");
    measures("GET /v1/history", "start_after_history_item_id", "where the page begins");
    for (const text of ["Page one.", "Page two.", "Page three."]) await say(text);
    for (const direction of ["asc", "desc"]) {
      const all = await json<Page>(`/v1/history?sort_direction=${direction}`);
      const seen: Item[] = [];
      for (let after = ""; ; ) {
        const page = await json<Page>(`/v1/history?sort_direction=${direction}&page_size=2${after}`);
        expect(page.history.length).toBeLessThanOrEqual(2);
        seen.push(...page.history);
        expect(page.last_history_item_id).toBe(page.history.at(-1)?.history_item_id);
        if (!page.has_more) break;
        after = `&start_after_history_item_id=${page.last_history_item_id}`;
      }
      expect(seen).toEqual(all.history);
    }
  });

  it("paging goes on where an item was deleted, in both directions", async () => {
    for (const text of ["Gone one.", "Gone two.", "Gone three.", "Gone four."]) await say(text);
    for (const direction of ["asc", "desc"]) {
      const query = `/v1/history?search=gone&sort_direction=${direction}`;
      const all = await json<Page>(query);
      const first = await json<Page>(`${query}&page_size=1`);
      expect((await remove(`/v1/history/${first.last_history_item_id}`)).status).toBe(200);
      const next = await json<Page>(`${query}&start_after_history_item_id=${first.last_history_item_id}`);
      expect(next.history).toEqual(all.history.slice(1));
    }
  });

  it.each(["start_after_history_item_id", "voice_id", "model_id", "search"])(
    "an empty %s counts as absent",
    async (name) => {
      await say("Empty.");
      const all = await json<Page>("/v1/history");
      expect(all.history.length).toBeGreaterThan(0);
      expect(await json<Page>(`/v1/history?${name}=`)).toEqual(all);
    },
  );

  it("filters by voice, model, source, dates and words", async () => {
    measures("GET /v1/history", "voice_id", "which items are listed");
    measures("GET /v1/history", "model_id", "which items are listed");
    measures("GET /v1/history", "source", "which items are listed");
    measures("GET /v1/history", "search", "which items are listed");
    measures("GET /v1/history", "date_before_unix", "which items are listed");
    await say("Only hay.");
    const id = await say("A needle in the haystack.");
    const item = await json<Item>(`/v1/history/${id}`);
    const ids = async (query: string) =>
      (await json<Page>(`/v1/history?${query}`)).history.map((one) => one.history_item_id);
    expect(await ids("search=NEEDLE")).toEqual([id]);
    expect(await ids("search=%00needle")).toEqual([]);
    expect(await ids(`search=needle&voice_id=${OTHER_VOICE}`)).toEqual([]);
    expect(await ids("search=needle&model_id=eleven_v3")).toEqual([]);
    expect(await ids("search=needle&source=STS")).toEqual([]);
    expect(await ids(`search=needle&date_after_unix=${item.date_unix}`)).toEqual([id]);
    expect(await ids(`search=needle&date_before_unix=${item.date_unix}`)).toEqual([]);
  });

  it("deletes really: item, audio and file", async () => {
    measures("GET /v1/history/{history_item_id}", "history_item_id", "404 once it is deleted");
    measures("DELETE /v1/history/{history_item_id}", "history_item_id", "the item is gone");
    const id = await say("To be deleted.");
    expect(await remove(`/v1/history/${id}`)).toEqual({ status: 200, body: { status: "ok" } });
    for (const path of [`/v1/history/${id}`, `/v1/history/${id}/audio`]) {
      const answer = await client.get(path);
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.body.toString())).toMatchObject({
        detail: { type: "not_found", code: "history_item_not_found", param: "history_item_id" },
      });
    }
    expect((await remove(`/v1/history/${id}`)).status).toBe(404);
    expect((await json<Page>("/v1/history?search=to%20be%20deleted")).history).toEqual([]);
  });

  it("downloads one as its file, several as a zip of theirs", async () => {
    measures("POST /v1/history/download", "history_item_ids", "which audio comes, and a zip for several");
    const ids = [await say("First file."), await say("Second file.", "", "ulaw_8000")];
    const one = await client.post("/v1/history/download", { history_item_ids: [ids[0]] });
    const audio = await client.get(`/v1/history/${ids[0]}/audio`);
    expect(one.headers["content-type"]).toBe("audio/mpeg");
    expect(one.body.equals(audio.body)).toBe(true);
    const several = await client.post("/v1/history/download", { history_item_ids: ids });
    expect(several.headers["content-type"]).toBe("application/zip");
    const files = unzipSync(several.body);
    const names = Object.keys(files);
    expect(names).toHaveLength(2);
    expect(names[0]).toContain(ids[0]);
    expect(Buffer.from(files[names[0] ?? ""] ?? []).equals(audio.body)).toBe(true);
    expect(names[1]).toMatch(/\.ulaw$/);
  });

  it.each(["none", "default"])(
    "a download with output_format %s: is the file as it was made",
    async (format) => {
      const id = await say("As it was made.", "", "ulaw_8000");
      const plain = await client.post("/v1/history/download", { history_item_ids: [id] });
      const asked = await client.post("/v1/history/download", {
        history_item_ids: [id],
        output_format: format,
      });
      expect(asked.status).toBe(200);
      expect(asked.headers["content-type"]).toBe("audio/basic");
      expect(asked.body.equals(plain.body)).toBe(true);
    },
  );

  it("refuses downloads in a shape of their own, and unknown ids as everywhere", async () => {
    const id = await say("Refused.");
    const post = async (body: unknown) => {
      const answer = await client.post("/v1/history/download", body);
      return { status: answer.status, body: JSON.parse(answer.body.toString()) as Record<string, unknown> };
    };
    const format = await post({ history_item_ids: [id], output_format: "flac" });
    expect(format).toMatchObject({ status: 400, body: { error: "invalid_output_format" } });
    expect(typeof format.body.message).toBe("string");
    expect(await post({ history_item_ids: [] })).toMatchObject({ status: 400 });
    expect(await post({ history_item_ids: ["nobody"] })).toMatchObject({ status: 404 });
    expect(await post({})).toMatchObject({ status: 422 });
    expect(await post({ history_item_ids: [5] })).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "history_item_ids", 0], type: "string_type" }] },
    });
  });

  it("names what is wrong with a list's query, and stays up", async () => {
    const refused = async (query: string) => {
      const answer = await client.get(`/v1/history?${query}`);
      return { status: answer.status, body: JSON.parse(answer.body.toString()) as unknown };
    };
    const entry = (type: string, name: string) => ({
      status: 422,
      body: { detail: [{ type, loc: ["query", name] }] },
    });
    expect(await refused("page_size=0")).toMatchObject(entry("greater_than_equal", "page_size"));
    expect(await refused("page_size=1001")).toMatchObject(entry("less_than_equal", "page_size"));
    expect(await refused("page_size=many")).toMatchObject(entry("int_parsing", "page_size"));
    expect(await refused("sort_direction=up")).toMatchObject(entry("literal_error", "sort_direction"));
    expect(await refused("source=Dubbing")).toMatchObject(entry("literal_error", "source"));
    expect(await refused("start_after_history_item_id=nobody")).toMatchObject({ status: 400 });
  });

  it("keeps the fields that shape the sound", async () => {
    const first = await client.post(`/v1/text-to-speech/${VOICE}`, { text: "One." });
    const ids = [String(first.headers["request-id"])];
    const path = `/v1/text-to-speech/${VOICE}?optimize_streaming_latency=1`;
    const fields = { seed: 3, previous_request_ids: ids, next_request_ids: ids };
    const { headers } = await client.post(path, { text: "Two.", ...fields });
    const item = await client.get(`/v1/history/${headers["history-item-id"]}`);
    expect(JSON.parse(item.body.toString()).settings).toEqual({
      ...fields,
      optimize_streaming_latency: 1,
    });
  });

  it("lists nothing of a window of dates that nothing can be in", async () => {
    const { headers } = await client.post(`/v1/text-to-speech/${VOICE}`, { text: "Now." });
    const item = await client.get(`/v1/history/${headers["history-item-id"]}`);
    const { date_unix: date } = JSON.parse(item.body.toString());
    for (const [after, before] of [
      [date, date],
      [date + 10, date - 10],
    ]) {
      const answer = await client.get(`/v1/history?date_after_unix=${after}&date_before_unix=${before}`);
      expect([answer.status, JSON.parse(answer.body.toString())]).toEqual([
        200,
        { history: [], last_history_item_id: null, has_more: false, scanned_until: null },
      ]);
    }
  });
});

describe("a download as WAV", () => {
  it("is refused with 429 when the temporary files have no room for its samples", async () => {
    await using mounted = await mount({ maxTemporaryBytes: 1_000_000 }, registerHistoryAudio);
    const { store, temporaryFiles, url } = mounted;
    const item = {
      requestId: "r",
      voiceId: "v",
      voiceName: "V",
      voiceCategory: "premade",
      modelId: "m",
      text: "Long",
      dateUnix: 1000,
      characters: 4,
      contentType: "audio/basic",
      outputFormat: "ulaw_8000",
      source: "TTS",
      settings: null,
      alignmentsJson: null,
      dialogue: null,
    } as const;
    // Twice as much as PCM: more than is held in memory.
    const { id } = store.history.add(item, await store.media.put(Buffer.alloc(2_200_000)));
    const answer = await fetch(`${url}/v1/history/download`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ history_item_ids: [id], output_format: "wav" }),
    });
    expect(answer.status).toBe(429);
    expect(await answer.json()).toMatchObject({ detail: { code: "system_busy" } });
    expect(temporaryFiles.bytes).toBe(0);
  });
});
