import { expect, it } from "vitest";
import type { HistoryItem } from "../../../../src/service/store/history.ts";
import { historyItemJson, historyPageJson } from "../../../../src/service/store/history-json.ts";

function itemOf(changes: Partial<HistoryItem> = {}): HistoryItem {
  return {
    id: "i1",
    requestId: "r",
    voiceId: "v",
    voiceName: "Nora",
    voiceCategory: "premade",
    modelId: "m",
    text: 'Él dijo: "¡hola!" 👋\n',
    dateUnix: 1000,
    charactersFrom: 3,
    charactersTo: 8,
    contentType: "audio/mpeg",
    outputFormat: "mp3_44100_128",
    source: "TTS",
    settings: { stability: 0.5 },
    alignmentsJson: Buffer.from('{"alignment":{"characters":["É"]}}'),
    dialogue: null,
    media: { hash: "h", bytes: 5 },
    ...changes,
  };
}

it("tells an item in the interface's words, with the alignments byte for byte", () => {
  const json = historyItemJson(itemOf()).toString();
  expect(json).toContain('"alignments":{"alignment":{"characters":["É"]}}}');
  expect(JSON.parse(json)).toEqual({
    history_item_id: "i1",
    request_id: "r",
    voice_id: "v",
    model_id: "m",
    voice_name: "Nora",
    voice_category: "premade",
    text: 'Él dijo: "¡hola!" 👋\n',
    date_unix: 1000,
    character_count_change_from: 3,
    character_count_change_to: 8,
    content_type: "audio/mpeg",
    state: "created",
    settings: { stability: 0.5 },
    feedback: null,
    share_link_id: null,
    source: "TTS",
    dialogue: null,
    output_format: "mp3_44100_128",
    alignments: { alignment: { characters: ["É"] } },
  });
});

it("tells pages of none, one and two items, and where the next one begins", () => {
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
