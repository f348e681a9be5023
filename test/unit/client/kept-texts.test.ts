/** Texts in tokens that are sent again on another socket. */
import { describe, expect, it } from "vitest";
import { KeptTexts } from "../../../src/client/kept-texts.ts";
import type { Command } from "../../../src/protocol/commands.ts";
import type { Event, HelloEvent } from "../../../src/protocol/events.ts";

type Text = NonNullable<HelloEvent["texts"]>[number];

function stage() {
  const sent: Command[] = [];
  const line = { isAway: false };
  let ids = 0;
  const texts = new KeptTexts({
    send: (command) => sent.push(command),
    isAway: () => line.isAway,
    newId: () => `own-${++ids}`,
  });
  const event = (type: string, fields: object = {}): void =>
    texts.take({ type, utterance_id: "u", ...fields } as unknown as Event);
  /** What goes over the next socket when the gateway has this. */
  const back = (known: readonly Partial<Text>[], { isSame = true, offsets = "utf16" } = {}): Command[] => {
    sent.length = 0;
    line.isAway = false;
    const all = known.map((text) => ({ utterance_id: "u", text_received: 0, ended: false, ...text }));
    texts.rejoined({ texts: all, settings: { offsets } } as unknown as HelloEvent, isSame);
    return [...sent];
  };
  const u = { utterance_id: "u" };
  return { texts, sent, line, event, back, u };
}

const token = (text: string, offset: number, more = {}) => ({
  type: "text",
  text,
  utterance_id: "u",
  offset,
  ...more,
});

describe("a text on its way", () => {
  it("says where its tokens stand once it is accepted, and one without an id from the beginning", () => {
    const { texts, sent, event, u } = stage();
    texts.text("One ", { ...u, voice_id: "v" });
    event("utterance.queued");
    texts.text("two ", u);
    texts.text("Own ", {});
    texts.text("too.", {});
    texts.close("end", undefined);
    expect(sent).toEqual([
      { type: "text", text: "One ", utterance_id: "u", voice_id: "v" },
      token("two ", 4),
      // Without an id it goes on with what this connection began last.
      token("Own ", 8),
      token("too.", 12),
      { type: "end", utterance_id: "u" },
    ]);
    texts.text("New.", {});
    expect(sent.at(-1)).toEqual({ type: "text", text: "New.", utterance_id: "own-1", offset: 0 });
  });

  it("of which nothing came goes from its beginning, with its options", () => {
    const { texts, back, u } = stage();
    texts.text("One ", { ...u, voice_id: "v" });
    texts.text("two.", u);
    texts.close("end", "u");
    expect(back([])).toEqual([token("One two.", 0, { voice_id: "v" }), { type: "end", utterance_id: "u" }]);
  });

  it("of which some came goes on behind that; flush and end are sent where they may not have come", () => {
    const { texts, back, u } = stage();
    texts.text("One two ", u);
    texts.close("flush", "u");
    texts.text("three.", u);
    expect(back([{ text_received: 4 }])).toEqual([
      token("two ", 4),
      { type: "flush", utterance_id: "u" },
      token("three.", 8),
    ]);
    expect(back([{ text_received: 8 }])).toEqual([{ type: "flush", utterance_id: "u" }, token("three.", 8)]);
    expect(back([{ text_received: 9 }])).toEqual([token("hree.", 9)]);
    texts.close("end", "u");
    expect(back([{ text_received: 14 }])).toEqual([{ type: "end", utterance_id: "u" }]);
    expect(back([{ text_received: 14, ended: true }])).toEqual([]);
  });

  it("counts in code points where the connection does", () => {
    const { texts, back, event, u } = stage();
    texts.text("a\u{1f600}b", u);
    event("utterance.queued");
    expect(back([{ text_received: 2 }], { offsets: "cp" })).toEqual([token("b", 2)]);
    texts.text("\ud83d", u);
    texts.text("\ude00c", u);
    expect(back([{ text_received: 3 }], { offsets: "cp" })).toEqual([token("\u{1f600}c", 3)]);
  });

  it("is kept while the socket is gone, and sent on the next one", () => {
    const { texts, sent, line, back, u } = stage();
    texts.text("One ", u);
    line.isAway = true;
    texts.text("two.", u);
    texts.close("end", "u");
    expect(sent.length).toBe(1);
    expect(back([{ text_received: 4 }])).toEqual([token("two.", 4), { type: "end", utterance_id: "u" }]);
  });
});

describe("a text that is not sent again", () => {
  it("is over", () => {
    const { texts, event, back, u } = stage();
    texts.text("One.", u);
    event("utterance.done", { outcome: "done" });
    expect(back([{}])).toEqual([]);
  });

  it("was accepted and is not there any more: its end was told, or its next token is refused", () => {
    const { texts, event, back, sent, u } = stage();
    texts.text("One.", u);
    event("utterance.queued");
    expect(back([])).toEqual([]);
    texts.text("Two.", u);
    expect(sent).toEqual([token("Two.", 4)]);
  });

  it("had a token refused, but not a command of another kind", () => {
    const { texts, event, back, u } = stage();
    texts.text("One.", u);
    event("error", { code: "nothing_to_cancel" });
    expect(back([{ text_received: 1 }])).toEqual([token("ne.", 1)]);
    event("error", { code: "invalid_text" });
    expect(back([{ text_received: 1 }])).toEqual([]);
  });

  it("was of a session that is gone: it throws connection_lost", () => {
    const { texts, back, u } = stage();
    texts.text("One.", u);
    expect(back([], { isSame: false })).toEqual([]);
    expect(() => texts.text("Two.", u)).toThrow("its session is gone");
    expect(() => texts.close("end", "u")).toThrow("its session is gone");
  });

  it("was begun by somebody else, who said more", () => {
    const { texts, back, u } = stage();
    texts.text("One.", u);
    expect(back([{ text_received: 40 }])).toEqual([]);
  });
});

describe("bounds", () => {
  it("keeps 64 texts, the latest", () => {
    const { texts, back } = stage();
    for (let index = 0; index < 65; index += 1) texts.text("One.", { utterance_id: `u${index}` });
    const ids = back([]).map((command) => (command.type === "text" ? command.utterance_id : ""));
    expect(ids).toEqual(Array.from({ length: 64 }, (_, index) => `u${index + 1}`));
  });

  it("takes no more than a million characters while the socket is gone", () => {
    const { texts, line, u } = stage();
    line.isAway = true;
    texts.text("a".repeat(1_000_000), u);
    expect(() => texts.text("b", u)).toThrow("no more text is kept");
  });
});
