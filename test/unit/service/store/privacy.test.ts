/** Who may read a store: real files and modes. */
import { chmodSync, chownSync, cpSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore, type Store } from "../../../../src/service/store/store.ts";
import { watchedLog } from "../../../helpers/watched-log.ts";

const isPosix = process.getuid !== undefined;
const isRoot = process.getuid?.() === 0;

let folder: string;
let store: Store | undefined;
const warnings: string[] = [];
const log = { ...watchedLog, warn: (_: object, message: string) => warnings.push(message) };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  warnings.length = 0;
});
afterEach(async () => {
  await store?.close();
  store = undefined;
  await rm(folder, { recursive: true, force: true });
});

/** Path below the store's folder -> its mode, octal; everything there is but the folder itself. */
function modes(root: string): Record<string, string> {
  const names = readdirSync(root, { recursive: true }).map(String).sort();
  return Object.fromEntries(
    names.map((name) => [name, (statSync(join(root, name)).mode & 0o777).toString(8)]),
  );
}

async function open(path = folder): Promise<Store> {
  store = await openStore({ folder: path, log });
  return store;
}

const onWindows = isPosix ? "" : " (skipped: this system has no modes)";

describe.skipIf(!isPosix)(`a store in a folder that is there already${onWindows}`, () => {
  it("makes files that its owner alone may read, whatever the folder's mode", async () => {
    chmodSync(folder, 0o755);
    const { media, database } = await open();
    const { hash } = await media.put(Buffer.from("audio"));
    database.run("CREATE TABLE kept (row INTEGER)");
    expect(modes(folder)).toEqual({
      "voicewire.db": "600",
      "voicewire.db-wal": "600",
      "voicewire.db-shm": "600",
      media: "700",
      "media/tmp": "700",
      [join("media", hash.slice(0, 2))]: "700",
      [join("media", hash.slice(0, 2), hash)]: "600",
    });
  });

  it("takes what was readable to others away from them", async () => {
    const { media, database } = await open();
    await media.put(Buffer.from("audio"));
    database.run("CREATE TABLE kept (row INTEGER)");
    // As a crash leaves it, with the files beside the database, and as a copy of a backup may.
    const copy = join(folder, "copy");
    const names = Object.keys(modes(folder));
    expect(names).toEqual(expect.arrayContaining(["voicewire.db-wal", "voicewire.db-shm"]));
    for (const name of names) cpSync(join(folder, name), join(copy, name), { recursive: true });
    writeFileSync(join(copy, "media", "tmp", "half"), "audio");
    for (const name of [...names, join("media", "tmp", "half")]) {
      chmodSync(join(copy, name), statSync(join(copy, name)).isDirectory() ? 0o755 : 0o664);
    }
    const copied = await openStore({ folder: copy });
    const found = modes(copy);
    await copied.close();
    expect(Object.keys(found)).toEqual([...names, join("media", "tmp", "half")].sort());
    for (const [name, mode] of Object.entries(found)) {
      expect([name, mode]).toEqual([name, statSync(join(copy, name)).isDirectory() ? "700" : "600"]);
    }
  });

  it.each([
    ["700", 0],
    ["750", 1],
    ["755", 1],
    ["707", 1],
  ])("a folder of mode %s: %i warning, which names what to do", async (mode, count) => {
    chmodSync(folder, mode);
    await open();
    const advice = `Other users may look into the store's folder: run chmod 700 ${folder}`;
    expect(warnings).toEqual(Array.from({ length: count }, () => advice));
  });

  it("makes a folder that is not there yet for its owner alone", async () => {
    await open(join(folder, "new", "data"));
    expect(warnings).toEqual([]);
    expect(modes(folder)).toMatchObject({ new: "700", "new/data": "700" });
  });
});

describe.skipIf(!isRoot)(
  `a folder of another user${isRoot ? "" : " (skipped: only root can give a folder away)"}`,
  () => {
    it("is refused before anything is written into it", async () => {
      chownSync(folder, 12_345, 12_345);
      await expect(open()).rejects.toMatchObject({
        code: "invalid_config",
        message: expect.stringContaining(`${folder}: it belongs to another user (uid 12345), expected uid 0`),
      });
      expect(readdirSync(folder)).toEqual([]);
    });

    it("a folder of ours inside it is taken", async () => {
      chownSync(folder, 12_345, 12_345);
      mkdirSync(join(folder, "ours"), { mode: 0o700 });
      await open(join(folder, "ours"));
      expect(warnings).toEqual([]);
    });
  },
);
