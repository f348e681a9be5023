import { describe, expect, it } from "vitest";
import { z } from "zod";
import { EventBytes } from "../../../src/delivery/event-bytes.ts";
import { EVENTS, type Event, type Word } from "../../../src/protocol/events.ts";
import { checkedEvent } from "../../helpers/checked-event.ts";
import { logged, MARK } from "../../helpers/logged.ts";

const read = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));
const TEXT = "😀 one 😀😀 two";
const base = { seq: 7, at_ms: 12.5, utterance_id: "u" };
const word: Word = { text: "one", start: 3, end: 6, start_ms: 3, end_ms: 6 };
const heard = { text: "😀 one", end: 6, ms: 6, source: "ack", bound_ms: 3 } as const;
const waterfall = {
  text_ms: 3,
  queued_ms: 3,
  connected_ms: 3,
  headers_ms: 3,
  first_byte_ms: 3,
  first_sound_ms: 3,
  first_frame_ms: 3,
  total_ms: 21,
  leading_silence_ms: null,
};

/** One of each type of event that has offsets. */
const WITH_OFFSETS: readonly Event[] = [
  {
    type: "characters",
    ...base,
    start: 3,
    end: 6,
    characters: ["o", "n", "e"],
    start_ms: [3, 4, 5],
    end_ms: [4, 5, 6],
    timing: "exact",
  },
  { type: "words", ...base, words: [word, { ...word, start: 11, end: 14 }], timing: "exact" },
  {
    type: "segment",
    ...base,
    voice_id: "v",
    dialogue_input_index: 3,
    start_ms: 3,
    end_ms: 6,
    start: 3,
    end: 14,
  },
  {
    type: "cue",
    ...base,
    start_ms: 3,
    end_ms: 6,
    start: 3,
    end: 6,
    lines: [{ text: "one", words: [word] }],
  },
  { type: "utterance.resumed", ...base, start: 3, start_ms: 3, kept_end: 6, timing: "exact" },
  {
    type: "utterance.done",
    ...base,
    outcome: "done",
    start_ms: 3,
    end_ms: 6,
    pad_ms: 3,
    characters_billed: 3,
    characters_spoken: 14,
    timing: "exact",
    latency: waterfall,
    segments: [{ ...waterfall, start: 3, end: 14 }],
  },
  {
    type: "interrupted",
    ...base,
    heard,
    unheard_text: " 😀😀 two",
    listeners: [{ listener_id: "l1", ...heard }],
    resumable: true,
    next_ms: 3,
  },
  { type: "warning", ...base, code: "speech_recovered", message: "", start: 6 },
];

/** The rule of the protocol: `start`, `end` and `kept_end` are offsets wherever they stand. */
function inCodePoints(event: Event): unknown {
  return JSON.parse(JSON.stringify(event), (key, value: unknown) =>
    ["start", "end", "kept_end"].includes(key) && typeof value === "number"
      ? [...TEXT.slice(0, value)].length
      : value,
  );
}

describe("LoggedEvent.json()", () => {
  it.each(WITH_OFFSETS)("$type: every offset in the unit asked for, and nothing else changed", (event) => {
    const entry = logged(event, { utterance: { id: "u", text: TEXT } });
    expect(read(entry.json("utf16"))).toEqual(event);
    expect(read(entry.json("cp"))).toEqual(inCodePoints(event));
    expect(new TextDecoder().decode(entry.json("cp"))).toBe(JSON.stringify(inCodePoints(event)));
  });

  it("has a case above for every event whose schema has offsets", () => {
    const withOffsets = Object.entries(EVENTS).filter(([, schema]) =>
      /"(start|end|kept_end)":/.test(JSON.stringify(z.toJSONSchema(schema))),
    );
    expect(WITH_OFFSETS.map(({ type }) => type).sort()).toEqual(withOffsets.map(([type]) => type).sort());
    for (const event of WITH_OFFSETS) checkedEvent(JSON.stringify(event));
  });

  it("is made once for all listeners that want one unit, and once for both where there is no difference", () => {
    for (const [text, isSame] of [
      ["plain é 字", true],
      ["😀", false],
    ] as const) {
      const entry = logged(MARK, { utterance: { id: "u", text } });
      const utf16 = entry.json("utf16");
      expect(entry.json("utf16")).toBe(utf16);
      expect(entry.json("cp") === utf16).toBe(isSame);
      expect(entry.json("cp")).toBe(entry.json("cp"));
    }
  });

  it("keeps its bytes where the session keeps those of its other events", () => {
    const store = new EventBytes();
    const [first, second] = [1, 2].map((seq) => logged({ ...MARK, seq }, {}, store).json("utf16"));
    expect(second?.buffer).toBe(first?.buffer);
  });
});

describe("LoggedEvent.event", () => {
  it("stays for listeners in the gateway where everybody gets it", () => {
    const entry = logged(MARK);
    entry.json("utf16");
    entry.json("cp");
    expect(entry.event).toBe(MARK);
  });

  it("is let go once its JSON is made in both units where only sockets choose it", () => {
    const place = { kind: "marks", utterance: { id: "u", text: "😀" } } as const;
    const entry = logged(MARK, place);
    entry.json("cp");
    expect(entry.event).toBe(MARK);
    entry.json("utf16");
    expect(entry.event).toBeNull();
    const plain = logged(MARK, { kind: "marks" });
    plain.json("utf16");
    expect(plain.event).toBeNull();
  });
});
