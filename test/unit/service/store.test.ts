import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { StoreDatabase } from "../../../src/service/store/database.ts";
import type { HistoryItem, HistoryQuery, NewHistoryItem } from "../../../src/service/store/history.ts";
import { MIGRATIONS } from "../../../src/service/store/migrations.ts";
import { openStore, type Store } from "../../../src/service/store/store.ts";

/** Items of these tests are of 1970. */
const limits = { keepDays: 100_000, keepBytes: 1e9 };

let folder: string;
let store: Store;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  store = await openStore({ folder, limits });
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const EVERYTHING: HistoryQuery = {
  pageSize: 100,
  startAfterId: null,
  voiceId: null,
  modelId: null,
  beforeUnix: null,
  afterUnix: null,
  direction: "desc",
  search: null,
  source: null,
};

function itemOf(changes: Partial<NewHistoryItem> = {}): NewHistoryItem {
  return {
    requestId: "r",
    voiceId: "v",
    voiceName: "Nora",
    voiceCategory: "premade",
    modelId: "m",
    text: "Hello",
    dateUnix: 1000,
    characters: 5,
    contentType: "audio/mpeg",
    outputFormat: "mp3_44100_128",
    source: "TTS",
    settings: { stability: 0.5 },
    alignmentsJson: '{"alignment":{"characters":["H"]}}',
    dialogue: null,
    ...changes,
  };
}

async function add(changes: Partial<NewHistoryItem> = {}, audio = "audio"): Promise<HistoryItem> {
  const { id } = store.history.add(itemOf(changes), await store.media.put(Buffer.from(audio)));
  const item = store.history.get(id);
  if (item === undefined) throw new Error("An item that was added is not there");
  return item;
}

function recordOf(item: HistoryItem): Record<string, unknown> {
  return JSON.parse(item.recordJson.toString()) as Record<string, unknown>;
}

function mediaFiles(): string[] {
  return readdirSync(join(folder, "media"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);
}

describe("history", () => {
  it("gives back what was added, with its audio, also after the store was opened again", async () => {
    const dialogue = [{ text: "Hi", voice_id: "v", voice_name: "Nora" }];
    const first = await add();
    const second = await add(
      { text: null, voiceId: null, dialogue, settings: null, alignmentsJson: null },
      "b",
    );
    await store.close();
    store = await openStore({ folder, limits });
    expect(store.history.get(first.id)).toEqual(first);
    expect(store.history.get(second.id)).toEqual(second);
    expect(store.history.list(EVERYTHING).items).toEqual([second, first]);
    expect(first.alignmentsJson?.toString()).toBe('{"alignment":{"characters":["H"]}}');
    expect(second.alignmentsJson).toBeNull();
    expect(recordOf(second)).toMatchObject({ text: null, voice_id: null, dialogue, settings: null });
    expect((await store.media.read(second.media.hash)).toString()).toBe("b");
    expect(first.media.hash).toBe(createHash("sha256").update("audio").digest("hex"));
  });

  it("counts the characters of one item after the other", async () => {
    const first = await add({ characters: 7 });
    store.history.charge(3);
    const second = await add({ characters: 5 });
    const counts = { character_count_change_from: 0, character_count_change_to: 7 };
    expect(recordOf(first)).toMatchObject(counts);
    expect(recordOf(second)).toMatchObject({
      character_count_change_from: 10,
      character_count_change_to: 15,
    });
    expect(store.history.charactersUsed).toBe(15);
  });

  it("gives an item in the interface's words, whatever signs its text has", async () => {
    const text = 'Él dijo: "¡hola!" \\ 👋\n\t\u0001\u2028</script>}';
    const item = await add({ id: "i1", text, voiceName: "}", settings: { stability: 0.5, note: "é" } });
    expect(recordOf(item)).toEqual({
      history_item_id: "i1",
      request_id: "r",
      voice_id: "v",
      model_id: "m",
      voice_name: "}",
      voice_category: "premade",
      text,
      date_unix: 1000,
      character_count_change_from: 0,
      character_count_change_to: 5,
      content_type: "audio/mpeg",
      state: "created",
      settings: { stability: 0.5, note: "é" },
      feedback: null,
      share_link_id: null,
      source: "TTS",
      dialogue: null,
      output_format: "mp3_44100_128",
    });
  });

  it("pages in both directions without a hole or a repetition, several of one second", async () => {
    const ids: string[] = [];
    for (let index = 0; index < 25; index += 1)
      ids.push((await add({ dateUnix: 1000 + Math.floor(index / 4) })).id);
    for (const direction of ["asc", "desc"] as const) {
      const seen: string[] = [];
      let startAfterId: string | null = null;
      for (;;) {
        const page = store.history.list({ ...EVERYTHING, direction, startAfterId, pageSize: 4 });
        seen.push(...page.items.map((item) => item.id));
        startAfterId = page.items.at(-1)?.id ?? null;
        if (!page.hasMore) break;
      }
      expect(seen).toEqual(direction === "asc" ? ids : ids.toReversed());
    }
  });

  it("filters by voice, model, source and dates: `after` inclusive, `before` exclusive", async () => {
    const a = await add({ voiceId: "a", dateUnix: 10 });
    const b = await add({ modelId: "other", source: "STS", dateUnix: 20 });
    const found = (query: Partial<HistoryQuery>) =>
      store.history.list({ ...EVERYTHING, ...query }).items.map((item) => item.id);
    expect(found({ voiceId: "a" })).toEqual([a.id]);
    expect(found({ modelId: "other" })).toEqual([b.id]);
    expect(found({ source: "STS" })).toEqual([b.id]);
    expect(found({ afterUnix: 20 })).toEqual([b.id]);
    expect(found({ beforeUnix: 20 })).toEqual([a.id]);
  });

  it("finds text anywhere, whatever its case or width, and takes signs of LIKE for themselves", async () => {
    const straße = await add({ text: "Die STRASSE ist 100% frei_" });
    const wide = await add({ text: "ＡＢＣ カフェ" });
    const dialogue = await add({
      text: null,
      dialogue: [{ text: "Où est Émile?", voice_id: "v", voice_name: "n" }],
    });
    const found = (search: string) =>
      store.history.list({ ...EVERYTHING, search }).items.map((item) => item.id);
    expect(found("strasse")).toEqual([straße.id]);
    expect(found("abc")).toEqual([wide.id]);
    expect(found("émile")).toEqual([dialogue.id]);
    expect(found("100%")).toEqual([straße.id]);
    expect(found("%")).toEqual([straße.id]);
    expect(found("i_t")).toEqual([]);
    expect(found("\\")).toEqual([]);
  });

  it("a deleted item's place: is remembered for the last 10,000", async () => {
    const kept = await add({ dateUnix: 5 });
    const gone = await add({ dateUnix: 6 });
    store.history.delete(gone.id);
    expect(store.history.isPlace(gone.id)).toBe(true);
    expect(store.history.list({ ...EVERYTHING, startAfterId: gone.id }).items).toEqual([kept]);
    const database = new StoreDatabase(join(folder, "voicewire.db"));
    database.transaction(() => {
      for (let index = 0; index < 10_000; index += 1) {
        database.run("INSERT INTO history_gone (id, date_unix, seq) VALUES (?, 1, 1)", `old-${index}`);
      }
    });
    database.close();
    store.history.delete(kept.id);
    expect(store.history.isPlace(kept.id)).toBe(true);
    expect(store.history.isPlace(gone.id)).toBe(false);
  });

  it("a transaction that SQLite has rolled back by itself: fails with what it failed with", () => {
    const database = new StoreDatabase(join(folder, "voicewire.db"));
    const full = new Error("database or disk is full");
    const attempt = (): void =>
      database.transaction(() => {
        database.run("ROLLBACK");
        throw full;
      });
    expect(attempt).toThrow(full);
    expect(attempt).toThrow(full);
    database.close();
  });

  it("a dialogue of an older store: is found by its voices", async () => {
    const dialogue = ["a", "b", "a"].map((voice_id) => ({ text: "Hi", voice_id, voice_name: "n" }));
    const { id } = await add({ text: null, voiceId: null, dialogue });
    await store.close();
    const database = new StoreDatabase(join(folder, "voicewire.db"));
    // As the version before left it.
    for (const sql of [
      "DROP INDEX history_by_request",
      "DROP TRIGGER history_speaks",
      "DROP TRIGGER history_goes",
      "DROP TABLE history_speaker",
      "DROP TABLE history_gone",
      "ALTER TABLE voice_sample DROP COLUMN removes_noise",
      "DROP TABLE dictionary_version",
      "DROP TABLE dictionary",
      "PRAGMA user_version = 1",
    ]) {
      database.run(sql);
    }
    database.close();
    store = await openStore({ folder, limits });
    for (const [voiceId, ids] of [
      ["a", [id]],
      ["b", [id]],
      ["c", []],
    ] as const) {
      expect(store.history.list({ ...EVERYTHING, voiceId }).items.map((item) => item.id)).toEqual(ids);
    }
  });

  it("delete() takes row and file, but leaves a file that another item has", async () => {
    const first = await add({}, "same");
    const second = await add({}, "same");
    expect(mediaFiles()).toEqual([first.media.hash]);
    expect(store.history.has(first.id)).toBe(true);
    expect(store.history.delete(first.id)).toBe(true);
    expect(store.history.has(first.id)).toBe(false);
    expect(store.history.delete(first.id)).toBe(false);
    expect(store.history.get(first.id)).toBeUndefined();
    expect(mediaFiles()).toEqual([second.media.hash]);
    store.history.delete(second.id);
    expect(mediaFiles()).toEqual([]);
  });
});

describe("media", () => {
  it("a file that was not named by any row goes when it is let go of; an unfinished one when it is given up", async () => {
    const pinned = await store.media.put(Buffer.from("x"));
    expect(mediaFiles()).toEqual([pinned.hash]);
    pinned.release();
    pinned.release();
    expect(mediaFiles()).toEqual([]);
    const writer = await store.media.writer();
    await writer.write(Buffer.from("half"));
    await writer.abort();
    await writer.abort();
    expect(mediaFiles()).toEqual([]);
  });

  it("a file that somebody is about to name survives the deletion of the item that had it", async () => {
    const item = await add({}, "same");
    const pinned = await store.media.put(Buffer.from("same"));
    store.history.delete(item.id);
    store.history.add(itemOf(), pinned);
    expect((await store.media.read(pinned.hash)).toString()).toBe("same");
  });

  it("what a crash left over is removed on opening, once it is old enough to be nobody's", async () => {
    const item = await add();
    const old = new Date(Date.now() - 2 * 3_600_000);
    const orphan = "ab".repeat(32);
    await store.media.put(Buffer.from("makes the folder")).then((pinned) => pinned.release());
    const shelf = join(folder, "media", item.media.hash.slice(0, 2));
    for (const path of [join(shelf, orphan), join(folder, "media", "tmp", "unfinished")]) {
      await writeFile(path, "left over");
      await utimes(path, old, old);
    }
    await writeFile(join(folder, "media", "tmp", "fresh"), "somebody's");
    await store.close();
    store = await openStore({ folder, limits });
    expect(mediaFiles().toSorted()).toEqual([item.media.hash, "fresh"].toSorted());
  });
});

describe("retention", () => {
  const add = async (target: Store, dateUnix: number, audio: string) =>
    target.history.add(itemOf({ dateUnix }), await target.media.put(Buffer.from(audio)));

  it("drops what is too old, then the oldest while it is too much, with their files", async () => {
    const nowUnix = Math.floor(Date.now() / 1000);
    const ids = [];
    for (const [index, ageDays] of [40, 20, 3, 2, 1].entries()) {
      ids.push((await add(store, nowUnix - ageDays * 86_400, `${index}`.repeat(100))).id);
    }
    const media = await store.media.put(Buffer.from("i".repeat(100)));
    const isolation = store.isolations.add(
      {
        title: null,
        createdAtUnix: nowUnix - 10 * 86_400,
        format: "wav",
        durationSeconds: 1,
        previewBase64: null,
      },
      media,
    );
    await store.close();
    store = await openStore({ folder, limits: { keepDays: 30, keepBytes: 250 } });
    expect(ids.filter((id) => store.history.get(id) !== undefined)).toEqual(ids.slice(3));
    expect(store.isolations.get(isolation.id)).toBeUndefined();
    expect(mediaFiles()).toHaveLength(2);
  });
});

describe("voices and isolations", () => {
  it("keep samples with their voice and delete them with it", async () => {
    const sample = { fileName: "a.wav", mimeType: "audio/wav", durationSeconds: 1.5, removesNoise: true };
    const voice = store.voices.add(
      {
        name: "Ann",
        description: null,
        labels: { accent: "x" },
        sound: { pitch: 40 },
        createdAtUnix: 5,
      },
      [
        { sample, media: await store.media.put(Buffer.from("one")) },
        { sample, media: await store.media.put(Buffer.from("two")) },
      ],
    );
    expect(store.voices.get(voice.id)).toEqual(voice);
    expect(store.voices.list()).toEqual([voice]);
    const [first, second] = voice.samples;
    expect(store.voices.deleteSample(voice.id, first?.id ?? "")).toBe(true);
    expect(store.voices.deleteSample(voice.id, first?.id ?? "")).toBe(false);
    expect(store.voices.sample("another", second?.id ?? "")).toBeUndefined();
    expect(mediaFiles()).toEqual([second?.media.hash]);
    expect(store.voices.delete(voice.id)).toBe(true);
    expect(store.voices.delete(voice.id)).toBe(false);
    expect(mediaFiles()).toEqual([]);
  });

  it("isolations are found by title, newest first, page by page", async () => {
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      const media = await store.media.put(Buffer.from(`audio ${index}`));
      const facts = { format: "wav", durationSeconds: 2, previewBase64: null, createdAtUnix: index };
      ids.unshift(store.isolations.add({ title: `Street ${index}.WAV`, ...facts }, media).id);
    }
    const page = (number: number, search: string | null) =>
      store.isolations.list({ pageSize: 2, page: number, search });
    expect(page(1, null).items.map((item) => item.id)).toEqual(ids.slice(0, 2));
    expect(page(3, "street").items.map((item) => item.id)).toEqual(ids.slice(4));
    expect(page(3, "street").hasMore).toBe(false);
    expect(page(1, "3.wav").items.map((item) => item.title)).toEqual(["Street 3.WAV"]);
    expect(store.isolations.delete(ids[0] ?? "")).toBe(true);
    expect(store.isolations.delete(ids[0] ?? "")).toBe(false);
    expect(mediaFiles()).toHaveLength(4);
  });
});

describe("the database", () => {
  it("undoes a transaction that throws", () => {
    expect(() =>
      store.database.transaction(() => {
        store.history.charge(5);
        throw new Error("in the middle");
      }),
    ).toThrow("in the middle");
    expect(store.history.charactersUsed).toBe(0);
  });

  it("says that it is of a newer version instead of spoiling it", async () => {
    await store.close();
    const path = join(folder, "voicewire.db");
    const database = new StoreDatabase(path);
    database.run(`PRAGMA user_version = ${MIGRATIONS.length + 1}`);
    database.close();
    expect(() => new StoreDatabase(path)).toThrow(/version/);
    store = await openStore({ folder: null });
  });

  it("a store without a folder is gone when it is closed", async () => {
    const place = join(folder, "tmp");
    await mkdir(place);
    // Of its own: other tests make theirs at the same time.
    vi.stubEnv("TMPDIR", place);
    const temporary = await openStore({ folder: null });
    vi.unstubAllEnvs();
    const [name = ""] = readdirSync(place);
    expect(existsSync(join(place, name, "voicewire.db"))).toBe(true);
    await Promise.all([temporary.close(), temporary.close()]);
    expect(readdirSync(place)).toEqual([]);
  });

  it("a folder that can't be made is an error that names it", async () => {
    await writeFile(join(folder, "file"), "");
    await expect(openStore({ folder: join(folder, "file", "below") })).rejects.toThrow(
      /Cannot use the folder/,
    );
  });
});
