import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  MAX_DICTIONARIES,
  MAX_RULE_BYTES,
  MAX_VERSIONS,
} from "../../../../src/service/store/dictionaries.ts";
import { openStore, type Store } from "../../../../src/service/store/store.ts";
import type { PronunciationRule } from "../../../../src/service/text/pronunciation.ts";

let folder: string;
let store: Store;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  store = await openStore({ folder });
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const NEW = { name: "x", description: null, createdAtUnix: 1 };
const PAGE = { sort: "creation_time_unix", isDescending: true, includesArchived: false, count: 1 } as const;
const RULE: PronunciationRule = {
  type: "alias",
  stringToReplace: "a",
  caseSensitive: true,
  wordBoundaries: true,
  alias: "b",
};

it("dictionaries: are there after a restart, with all versions", async () => {
  const made = store.dictionaries.add({ ...NEW, description: "d" }, [RULE]);
  if (made === undefined) throw new Error("Expected a dictionary");
  const latest = store.dictionaries.addVersion(made.id, []);
  store.dictionaries.update(made.id, { name: "y", archivedAtUnix: 7 });
  await store.close();
  store = await openStore({ folder });
  expect(store.dictionaries.get(made.id)).toEqual({ ...made, name: "y", archivedAtUnix: 7, latest });
  expect(store.dictionaries.rules(made.id, made.latest.id)).toEqual([RULE]);
  expect(store.dictionaries.rules(made.id, undefined)).toEqual([]);
});

it("versions: the oldest go, and another dictionary's version is unknown", () => {
  const made = store.dictionaries.add(NEW, []);
  const other = store.dictionaries.add(NEW, []);
  if (made === undefined || other === undefined) throw new Error("Expected two dictionaries");
  const ids = [made.latest.id];
  for (let count = 0; count < MAX_VERSIONS; count++) {
    ids.push(store.dictionaries.addVersion(made.id, [RULE])?.id ?? "");
  }
  expect(ids.map((id) => store.dictionaries.rules(made.id, id) === undefined)).toEqual([
    true,
    ...ids.slice(1).map(() => false),
  ]);
  expect(store.dictionaries.rules(made.id, other.latest.id)).toBeUndefined();
});

it("dictionaries: no more are kept than may be, and no more bytes of rules", () => {
  const large = { ...RULE, alias: "é".repeat(MAX_RULE_BYTES / 4) };
  const first = store.dictionaries.add(NEW, [large]);
  expect(store.dictionaries.add(NEW, [large])).toBeUndefined();
  expect(store.dictionaries.addVersion(first?.id ?? "", [large])).toBeUndefined();
  for (let count = 1; count < MAX_DICTIONARIES; count++) store.dictionaries.add(NEW, []);
  expect(store.dictionaries.count).toBe(MAX_DICTIONARIES);
  expect(store.dictionaries.add(NEW, [])).toBeUndefined();
  // What was archived first makes room.
  store.dictionaries.update(first?.id ?? "", { name: undefined, archivedAtUnix: 7 });
  const added = store.dictionaries.add(NEW, [large]);
  expect(added).toBeDefined();
  expect(store.dictionaries.get(first?.id ?? "")).toBeUndefined();
  expect(store.dictionaries.count).toBe(MAX_DICTIONARIES);
  // None goes where that would not do.
  const other = store.dictionaries.list({ ...PAGE, after: added?.id })?.[0];
  store.dictionaries.update(other?.id ?? "", { name: undefined, archivedAtUnix: 8 });
  expect(store.dictionaries.addVersion(added?.id ?? "", [large])).toBeUndefined();
  expect(store.dictionaries.get(other?.id ?? "")).toBeDefined();
  // And not the one that a version is for.
  store.dictionaries.update(added?.id ?? "", { name: undefined, archivedAtUnix: 8 });
  expect(store.dictionaries.addVersion(added?.id ?? "", [large])).toBeUndefined();
});
