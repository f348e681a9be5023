/** The store after kill -9 in the middle of its writes: every row has its whole file, and nothing half made is taken for whole. */
import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../../src/service/store/store.ts";

const BUILT = pathToFileURL(join(import.meta.dirname, "../../dist/service/store/store.js")).href;

/** Adds and deletes as fast as it can, and reports each item that is done. */
const WRITER = `
import { randomBytes } from "node:crypto";
const { openStore } = await import(${JSON.stringify(BUILT)});
const store = await openStore({ folder: process.argv[2] });
const item = { requestId: null, voiceId: "v", voiceName: "n", voiceCategory: null, modelId: "m", text: "t", dateUnix: Math.floor(Date.now() / 1000),
  characters: 1, contentType: "audio/mpeg", outputFormat: "mp3_44100_128", source: "TTS", settings: null, alignmentsJson: null, dialogue: null };
process.send("ready");
for (;;) {
  const media = await store.media.put(randomBytes(1 + Math.floor(Math.random() * 200_000)));
  const { id } = store.history.add(item, media);
  process.send({ added: id });
  if (Math.random() < 0.4) {
    // Reported before it is done, and waited for: killed between both, the item would be missed.
    await new Promise((resolve) => process.send({ deleted: id }, resolve));
    store.history.delete(id);
  }
}
`;

let folder: string;
let child: ChildProcess | null = null;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
});
afterEach(async () => {
  child?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

describe("the store", () => {
  it("is whole after its process was killed in the middle, again and again", async () => {
    const script = join(folder, "writer.mjs");
    await writeFile(script, WRITER);
    const data = join(folder, "data");
    const added = new Set<string>();
    for (const afterMs of [40, 90, 150, 260]) {
      await runAndKill(script, data, { afterMs, added });
      const store = await openStore({ folder: data });
      try {
        expect(store.database.get("PRAGMA integrity_check")?.integrity_check).toBe("ok");
        const { items } = store.history.list({
          pageSize: 100_000,
          startAfterId: null,
          voiceId: null,
          modelId: null,
          beforeUnix: null,
          afterUnix: null,
          direction: "desc",
          search: null,
          source: null,
        });
        const kept = new Set(items.map((item) => item.id));
        // What was reported as done is there; the one in hand may be, too.
        for (const id of added) expect(kept.has(id)).toBe(true);
        for (const { media } of items) {
          const bytes = await store.media.read(media.hash);
          expect(bytes.byteLength).toBe(media.bytes);
          expect(createHash("sha256").update(bytes).digest("hex")).toBe(media.hash);
        }
        expect(store.history.charactersUsed).toBeGreaterThanOrEqual(items.length);
      } finally {
        await store.close();
      }
    }
    expect(added.size).toBeGreaterThan(0);
  });
});

function runAndKill(
  script: string,
  data: string,
  { afterMs, added }: { readonly afterMs: number; readonly added: Set<string> },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const started = fork(script, [data], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    child = started;
    started.on("message", (message: "ready" | { added?: string; deleted?: string }) => {
      if (message === "ready") setTimeout(() => started.kill("SIGKILL"), afterMs);
      else if (message.added !== undefined) added.add(message.added);
      else if (message.deleted !== undefined) added.delete(message.deleted);
    });
    started.once("error", reject);
    started.once("exit", () => resolve());
  });
}
