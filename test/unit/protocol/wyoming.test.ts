import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { type WyomingFrame, WyomingReader, wyomingFrame } from "../../../src/protocol/wyoming.ts";

const LIMITS = { header: 200, data: 100, payload: 50 };

function reading() {
  const frames: WyomingFrame[] = [];
  const reader = new WyomingReader({
    limits: LIMITS,
    broken: (what) => new GatewayError("upstream_protocol", what),
    onFrame: ({ payload, ...frame }) => frames.push({ ...frame, payload: Buffer.from(payload) }),
  });
  return { frames, reader };
}

function read(bytes: Buffer | string, size = bytes.length): WyomingFrame[] {
  const { frames, reader } = reading();
  const all = Buffer.from(bytes as string);
  for (let at = 0; at < all.length; at += size) reader.push(Buffer.from(all.subarray(at, at + size)));
  return frames;
}

describe("Wyoming frames", () => {
  it.each([1, 2, 7, 64, 10_000])("are the same in pieces of %i bytes", (size) => {
    const bytes = Buffer.concat([
      wyomingFrame("describe"),
      wyomingFrame("audio-chunk", { rate: 16_000, text: "Grüße" }, Buffer.from("\n{}\n")),
      wyomingFrame("audio-stop", { timestamp: null }),
    ]);
    expect(read(bytes, size)).toEqual([
      { type: "describe", data: {}, payload: Buffer.alloc(0) },
      { type: "audio-chunk", data: { rate: 16_000, text: "Grüße" }, payload: Buffer.from("\n{}\n") },
      { type: "audio-stop", data: { timestamp: null }, payload: Buffer.alloc(0) },
    ]);
  });

  it("take their JSON in the line, behind it, and in both: what is behind counts more", () => {
    const bytes = '{"type":"a","data":{"x":1,"y":1},"data_length":7,"payload_length":null}\n{"x":2}';
    expect(read(`{"type":"b","data":{"x":1}}\n${bytes}`).map(({ data }) => data)).toEqual([
      { x: 1 },
      { x: 2, y: 1 },
    ]);
  });

  it.each([
    ["a line without end", "x".repeat(LIMITS.header + 1)],
    ["a long line", `{"type":"${"x".repeat(LIMITS.header)}"}\n`],
    ["long data", `{"type":"a","data_length":${LIMITS.data + 1}}\n`],
    ["a long payload", `{"type":"a","payload_length":${LIMITS.payload + 1}}\n`],
    ["a length below nothing", '{"type":"a","payload_length":-1}\n'],
    ["a length that is no number", '{"type":"a","payload_length":"4"}\n'],
    ["half a byte", '{"type":"a","data_length":1.5}\n'],
    ["no type", '{"data":{}}\n'],
    ["a list", "[]\n"],
    ["no JSON", "GET / HTTP/1.1\r\n"],
    ["data that is no object", '{"type":"a","data_length":2}\n[]'],
  ])("%s is refused, and not quoted", (_, bytes) => {
    const { reader } = reading();
    const push = () => reader.push(Buffer.from(bytes));
    expect(push).toThrow(GatewayError);
    expect(push).not.toThrow(/GET|x{9}/);
  });
});
