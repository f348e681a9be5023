import { expect, it } from "vitest";
import type { HistoryItem } from "../../../../src/service/store/history.ts";
import { historyItemJson, historyPageJson } from "../../../../src/service/store/history-json.ts";

function itemOf(changes: Partial<HistoryItem> = {}): HistoryItem {
  const id = changes.id ?? "i1";
  return {
    id,
    voiceName: "Nora",
    dateUnix: 1000,
    contentType: "audio/mpeg",
    outputFormat: "mp3_44100_128",
    media: { hash: "h", bytes: 5 },
    recordJson: Buffer.from(`{"history_item_id":"${id}","text":"É }"}`),
    alignmentsJson: Buffer.from('{"alignment":{"characters":["É"]}}'),
    ...changes,
  };
}

it("gives an item's record and its alignments, both byte for byte", () => {
  expect(historyItemJson(itemOf()).toString()).toBe(
    '{"history_item_id":"i1","text":"É }","alignments":{"alignment":{"characters":["É"]}}}',
  );
  expect(JSON.parse(historyItemJson(itemOf({ alignmentsJson: null })).toString())).toEqual({
    history_item_id: "i1",
    text: "É }",
    alignments: null,
  });
});

it("gives pages of none, one and two items, and where the next one begins", () => {
  const page = (items: HistoryItem[], hasMore: boolean) =>
    JSON.parse(historyPageJson({ items, hasMore }).toString());
  const last = { last_history_item_id: "i2", has_more: true, scanned_until: 7 };
  const second = itemOf({ id: "i2", dateUnix: 7, alignmentsJson: null });
  expect(page([], false)).toEqual({
    history: [],
    last_history_item_id: null,
    has_more: false,
    scanned_until: null,
  });
  expect(page([second], true)).toMatchObject({
    history: [{ history_item_id: "i2", alignments: null }],
    ...last,
  });
  expect(page([itemOf(), second], true)).toMatchObject({
    history: [{ history_item_id: "i1" }, { history_item_id: "i2" }],
    ...last,
  });
});
