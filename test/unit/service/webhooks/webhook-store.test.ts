import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { StoreDatabase } from "../../../../src/service/store/database.ts";
import { type WebhookChanges, WebhookStore } from "../../../../src/service/store/webhooks.ts";

let folder: string;
let database: StoreDatabase;
let store: WebhookStore;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-test-"));
  database = new StoreDatabase(join(folder, "voicewire.db"));
  store = new WebhookStore(database);
});
afterEach(async () => {
  database.close();
  await rm(folder, { recursive: true, force: true });
});

const WEBHOOK = {
  name: "Mine",
  url: "https://example.com/",
  secret: "wsec_a",
  requestHeaders: { "X-A": "1" },
  createdAtUnix: 1000,
};
const NO_CHANGE: WebhookChanges = {
  name: "Mine",
  isDisabled: false,
  retryEnabled: undefined,
  requestHeaders: undefined,
  events: undefined,
};

function add(changes: Partial<WebhookChanges> = {}) {
  const { id } = store.create(WEBHOOK);
  store.update(id, { ...NO_CHANGE, events: ["flows"], ...changes });
  return id;
}

describe("webhooks", () => {
  it("are given back as they were made, also after the store was opened again; the newest first", () => {
    const first = store.create(WEBHOOK);
    const second = store.create({ ...WEBHOOK, name: "Other", requestHeaders: null });
    database.close();
    database = new StoreDatabase(join(folder, "voicewire.db"));
    store = new WebhookStore(database);
    expect(store.get(first.id)).toEqual(first);
    expect(store.list()).toEqual([second, first]);
    expect(store.count).toBe(2);
    expect(store.get("nobody")).toBe(undefined);
    expect(first).toMatchObject({ isDisabled: false, retryEnabled: false, events: [] });
  });

  it("keep what a change leaves out, and take over what it names", () => {
    const id = add({
      retryEnabled: true,
      requestHeaders: { b: "2" },
      events: ["flows", "agent_qa", "flows"],
    });
    const before = store.get(id);
    expect(before).toMatchObject({ retryEnabled: true, requestHeaders: { b: "2" } });
    expect(before?.events).toEqual(["flows", "agent_qa"]);
    expect(store.update(id, { ...NO_CHANGE, name: "New" })).toBe(true);
    expect(store.get(id)).toEqual({ ...before, name: "New" });
    store.update(id, { ...NO_CHANGE, retryEnabled: false, requestHeaders: {}, events: [] });
    expect(store.get(id)).toMatchObject({ retryEnabled: false, requestHeaders: {}, events: [] });
    expect(store.update("nobody", NO_CHANGE)).toBe(false);
  });
});

describe("deliveries", () => {
  it("are due at their time, one of each webhook, the oldest", () => {
    const [a, b] = [add(), add()];
    store.enqueue("flows", "1", 1000);
    store.enqueue("flows", "2", 1000);
    expect(store.due(999, 9000)).toEqual([]);
    expect(store.nextDueMs(999)).toBe(1000);
    const due = store.due(1000, 9000);
    expect(due.map(({ webhookId }) => webhookId)).toEqual([a, b]);
    expect(due.map(({ seq }) => store.delivery(seq)?.body)).toEqual(["1", "1"]);
    expect(store.nextDueMs(1000)).toBe(null);
  });

  it("wait for their next try, and are gone after the last", () => {
    const id = add();
    store.enqueue("flows", "1", 1000);
    const [due] = store.due(1000, 9000);
    if (due === undefined) throw new Error("Nothing is due");
    const failure = { isSuccess: false, failureCode: 500, nowMs: 1000 };
    store.record(due, { ...failure, nextTryMs: 5000 });
    expect(store.due(4999, 9000)).toEqual([]);
    expect(store.nextDueMs(1000)).toBe(5000);
    expect(store.delivery(due.seq)?.tries).toBe(1);
    store.record(due, { ...failure, nextTryMs: null });
    expect(store.delivery(due.seq)).toBe(undefined);
    expect(store.pending(id)).toBe(0);
  });

  it("are recorded whole or not at all", () => {
    const id = add();
    store.enqueue("flows", "1", 1000);
    const [due] = store.due(1000, 9000);
    if (due === undefined) throw new Error("Nothing is due");
    database.run(
      "CREATE TRIGGER broken BEFORE UPDATE ON webhook BEGIN SELECT RAISE(ABORT, 'disk is full'); END",
    );
    const outcome = { isSuccess: true, failureCode: null, nextTryMs: null, nowMs: 1000 };
    expect(() => store.record(due, outcome)).toThrow(/disk is full/);
    expect(store.pending(id)).toBe(1);
  });

  it("go with their webhook; what is recorded of them later does nothing", () => {
    const id = add();
    store.enqueue("flows", "1", 1000);
    const [due] = store.due(1000, 9000);
    if (due === undefined) throw new Error("Nothing is due");
    expect(store.delete(id)).toBe(true);
    expect(store.pending(id)).toBe(0);
    const outcome = { isSuccess: false, failureCode: 500, nextTryMs: 2000, nowMs: 1000 };
    expect(store.record(due, outcome)).toBe(false);
    expect(store.delete(id)).toBe(false);
  });
});
