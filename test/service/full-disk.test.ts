/** The service with its store on a disk that is full: it speaks on, refuses what it can't keep, and nothing is broken afterwards. */
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { until } from "../helpers/until.ts";
import { canMount, OnSmallDisk } from "../kit/small-disk.ts";
import { VOICE } from "./client.ts";

vi.setConfig({ testTimeout: 120_000 });

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const STORE = pathToFileURL(
  fileURLToPath(new URL("../../dist/service/store/store.js", import.meta.url)),
).href;
const PATIENT = { deadlineMs: 60_000 };
const STORAGE_FULL = { type: "service_unavailable", code: "storage_full" };

interface Answer {
  readonly status: number;
  readonly body: Buffer;
  readonly json: Readonly<Record<string, unknown>>;
}

class Asked {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async ask(method: string, path: string, given?: object): Promise<Answer> {
    const body = given instanceof FormData ? given : given === undefined ? null : JSON.stringify(given);
    const headers: Record<string, string> =
      typeof body === "string" ? { "content-type": "application/json" } : {};
    const answer = await fetch(`${this.#url}${path}`, { method, headers, body });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
    return { status: answer.status, body: bytes, json: isJson ? JSON.parse(bytes.toString()) : {} };
  }

  speak(text: string, format = "mp3_44100_128"): Promise<Answer> {
    return this.ask("POST", `/v1/text-to-speech/${VOICE}?output_format=${format}`, { text });
  }

  /** Text and audio of each item of the history, the newest first. */
  async history(): Promise<{ readonly id: string; readonly text: string; readonly audio: Buffer }[]> {
    const { json } = await this.ask("GET", "/v1/history");
    const items = json.history as { readonly history_item_id: string; readonly text: string }[];
    return await Promise.all(
      items.map(async ({ history_item_id: id, text }) => {
        const { status, body } = await this.ask("GET", `/v1/history/${id}/audio`);
        expect(status, text).toBe(200);
        return { id, text, audio: body };
      }),
    );
  }
}

function sampleForm(wav: Buffer): FormData {
  const form = new FormData();
  form.append("name", "mine");
  form.append("files", new Blob([new Uint8Array(wav)]), "a.wav");
  return form;
}

describe.skipIf(!canMount())(`a full disk${canMount() ? "" : " (skipped: no tmpfs can be mounted)"}`, () => {
  it("speech goes on, writes are refused as storage_full, and all is whole when there is room again", async () => {
    await using disk = new OnSmallDisk((folder) => [MAIN, "service", "--port", "0", "--data", folder], {
      megabytes: 2,
    });
    await until("the service listens", () => /http:\/\/[\d.:]+/.test(disk.printed), PATIENT);
    const service = new Asked(/http:\/\/[\d.:]+/.exec(disk.printed)?.[0] ?? "");
    const before = await service.speak("Said before.");
    const { body: wav } = await service.speak(
      "This is a sample that is long enough for a voice.",
      "wav_22050",
    );
    const [sample] = await service.history();
    disk.fill();

    const during = await service.speak("Said while it is full.");
    expect([during.status, during.body.length > 5000]).toEqual([200, true]);
    // More than what is left in the database's log.
    const rules = Array.from({ length: 2000 }, (_, at) => ({
      type: "alias",
      string_to_replace: `word-${at}`,
      alias: "b".repeat(200),
    }));
    const refused = [
      await service.ask("POST", "/v1/voices/add", sampleForm(wav)),
      await service.ask("POST", "/v1/pronunciation-dictionaries/add-from-rules", { name: "d", rules }),
    ];
    for (const { status, json } of refused) {
      expect(status).toBe(503);
      expect(json.detail).toMatchObject(STORAGE_FULL);
    }
    const kept = await service.history();
    expect(kept.map(({ text }) => text)).toEqual([sample?.text, "Said before."]);

    disk.free();
    await service.speak("Said behind it.");
    const after = await service.history();
    expect(after.map(({ text }) => text)).toEqual(["Said behind it.", sample?.text, "Said before."]);
    expect(after.slice(1).map(({ audio: own }) => own)).toEqual(kept.map(({ audio: own }) => own));
    expect(after[2]?.audio.equals(before.body)).toBe(true);
    // Nothing is there of what was refused, and it can be done now.
    expect(
      (await service.ask("GET", "/v1/pronunciation-dictionaries")).json.pronunciation_dictionaries,
    ).toEqual([]);
    expect((await service.ask("POST", "/v1/voices/add", sampleForm(wav))).status).toBe(200);
    expect((await service.ask("DELETE", `/v1/history/${sample?.id}`)).status).toBe(200);
    expect((await service.history()).map(({ text }) => text)).toEqual(["Said behind it.", "Said before."]);
    expect(disk.isAlive).toBe(true);
  });

  it("a store that can't delete what is too old warns and goes on, and deletes it when there is room again", async () => {
    // It fills the disk itself, in the turn in which it adds what is too old: nothing is deleted in between.
    const script = `
      import { appendFileSync } from "node:fs";
      const { openStore } = await import(${JSON.stringify(STORE)});
      const folder = process.argv[1];
      const limits = { keepDays: 30, keepBytes: 1_000_000 };
      const log = { debug() {}, info() {}, warn: (facts, message) => console.log("WARN", message), error: console.log };
      const store = await openStore({ folder, limits, log, retentionEveryMs: 50 });
      const media = await store.media.put(new Uint8Array(200_000));
      const item = { requestId: null, voiceId: "v", voiceName: "n", voiceCategory: null, modelId: "m", text: "t", dateUnix: 1,
        characters: 1, contentType: "audio/mpeg", outputFormat: "mp3_44100_128", source: "TTS", settings: null, alignmentsJson: null,
        dialogue: null };
      store.history.add(item, media);
      for (const bytes of [65_536, 4096, 1]) {
        for (let hasRoom = true; hasRoom; ) {
          try {
            appendFileSync(folder + "/filler", Buffer.alloc(bytes));
          } catch (thrown) {
            if (thrown.code !== "ENOSPC") throw thrown;
            hasRoom = false;
          }
        }
      }
      setInterval(() => {
        if (store.database.get("SELECT COUNT(*) AS n FROM history").n === 0) console.log("EMPTY");
      }, 50);
    `;
    await using disk = new OnSmallDisk((folder) => ["--input-type=module", "-e", script, folder], {
      megabytes: 3,
    });
    await until("it warns", () => disk.printed.includes("WARN The disk of the store is full"), PATIENT);
    expect(disk.printed).not.toContain("EMPTY");
    const seen = disk.printed.length;
    disk.free();
    await until("the item is gone", () => disk.printed.slice(seen).includes("EMPTY"), PATIENT);
    expect(disk.isAlive).toBe(true);
  });
});
