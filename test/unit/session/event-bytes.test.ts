import { describe, expect, it } from "vitest";
import type { LogEntry } from "../../../src/fanout/event-log.ts";
import { EventBytes } from "../../../src/session/event-bytes.ts";
import { EventWriter } from "../../../src/session/event-writer.ts";

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

describe("the bytes of events", () => {
  it("are the text in UTF-8, and stay as they are", () => {
    const store = new EventBytes();
    const texts = Array.from({ length: 200 }, (_, index) => `${index} é😀 ${"字".repeat(index)}`);
    const written = texts.map((text) => store.write(text));
    expect(written.map(textOf)).toEqual(texts);
  });

  it("share slabs: what is kept takes little more than its texts, whatever else is written meanwhile", () => {
    const store = new EventBytes();
    const kept = Array.from({ length: 80 }, (_, index) => {
      // What lives for a moment between them, out of the slabs that everybody shares.
      Buffer.from("x".repeat(900));
      return store.write(`${index} ${"event ".repeat(45)}`);
    });
    const textBytes = kept.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const slabs = new Set(kept.map(({ buffer }) => buffer));
    const slabBytes = [...slabs].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(slabBytes).toBeLessThan(textBytes * 1.25);
  });

  it("of a long event are its own: it keeps nothing else alive, and nothing else keeps it", () => {
    const store = new EventBytes();
    const short = store.write("short");
    const long = store.write("long ".repeat(1000));
    expect(long.buffer.byteLength).toBe(5000);
    expect(store.write("short again").buffer).toBe(short.buffer);
  });

  it("are those of the log's entries, in either unit of offsets", () => {
    const entries: LogEntry[] = [];
    const writer = new EventWriter((entry) => entries.push(entry));
    for (let index = 0; index < 2; index += 1) {
      writer.write({ positionTicks: 0, kind: null, utterance: { id: "u1", text: "😀 mark" } }, (base) => ({
        type: "mark",
        ...base,
        name: "é",
        source: "estimate",
      }));
    }
    const [first, second] = entries.map((entry) => entry.bytes("utf16"));
    expect(JSON.parse(textOf(first ?? new Uint8Array(0)))).toMatchObject({ seq: 1, name: "é" });
    expect(second?.buffer).toBe(first?.buffer);
    expect(entries[0]?.bytes("cp").buffer).toBe(first?.buffer);
  });
});
