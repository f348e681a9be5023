import { describe, expect, it } from "vitest";
import { EventBytes } from "../../../src/delivery/event-bytes.ts";

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

describe("the bytes of events", () => {
  it("are the text in UTF-8, and stay as they are", () => {
    const store = new EventBytes();
    const texts = Array.from({ length: 200 }, (_, index) => `${index} é😀 ${"字".repeat(index)}`);
    const written = texts.map((text) => store.write(text));
    expect(written.map(textOf)).toEqual(texts);
  });

  it("share slabs: kept events take little more than their texts, whatever is written between them", () => {
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

  it("the bytes of a long event are its own: it keeps nothing else alive, and nothing else keeps it", () => {
    const store = new EventBytes();
    const short = store.write("short");
    const long = store.write("long ".repeat(1000));
    expect(long.buffer.byteLength).toBe(5000);
    expect(store.write("short again").buffer).toBe(short.buffer);
  });
});
