/** One record: what is read and refused, and that the fast way never differs from JSON.parse. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { readPlainRecord, readRecord } from "../../../src/upstream/parse/record.ts";
import { readFastRecord } from "../../../src/upstream/parse/record-fast.ts";
import type { SynthesisChunk } from "../../../src/upstream/types.ts";

const ALIGNMENT = {
  characters: ["H", "i", "🙂"],
  character_start_times_seconds: [0, 0.1, 0.25],
  character_end_times_seconds: [0.1, 0.25, 1.3929999999999998],
};
const SEGMENT = {
  voice_id: "v",
  start_time_seconds: 0,
  end_time_seconds: 0.5,
  character_start_index: 0,
  character_end_index: 2,
  dialogue_input_index: 0,
};

type Outcome = { readonly chunk: SynthesisChunk } | { readonly code: string };

function outcome(read: () => SynthesisChunk): Outcome {
  try {
    return { chunk: read() };
  } catch (thrown) {
    if (thrown instanceof GatewayError) return { code: thrown.code };
    throw thrown;
  }
}

/** The line stands inside a larger buffer, between bytes that would complete it if they were read. */
function within(line: Buffer, before = "", after = ""): [Buffer, { start: number; end: number }] {
  const start = Buffer.byteLength(before);
  return [
    Buffer.concat([Buffer.from(before), line, Buffer.from(after)]),
    { start, end: start + line.length },
  ];
}

function read(line: string): SynthesisChunk {
  return readRecord(...within(Buffer.from(line)));
}

function expectSame(line: Buffer, before = "", after = ""): void {
  const [bytes, range] = within(line, before, after);
  const fast = outcome(() => readRecord(bytes, range));
  const plain = outcome(() => readPlainRecord(bytes, range));
  expect(fast).toEqual(plain);
}

describe("readRecord()", () => {
  it("reads audio, both alignments and voice segments", () => {
    const audio = Buffer.from([0, 1, 2, 254, 255]);
    const chunk = read(
      JSON.stringify({
        audio_base64: audio.toString("base64"),
        alignment: ALIGNMENT,
        normalized_alignment: { ...ALIGNMENT, characters: ["H", "y", "!"] },
        voice_segments: [SEGMENT],
      }),
    );
    expect(Buffer.from(chunk.audio)).toEqual(audio);
    expect(chunk.alignment).toEqual(ALIGNMENT);
    expect(chunk.normalizedAlignment?.characters).toEqual(["H", "y", "!"]);
    expect(chunk.voiceSegments).toEqual([SEGMENT]);
  });

  it("takes null or nothing for what may be absent", () => {
    const nothing = { alignment: null, normalizedAlignment: null, voiceSegments: [] };
    expect(read('{"audio_base64":"AQI="}')).toEqual({ audio: Buffer.from([1, 2]), ...nothing });
    expect(
      read('{"audio_base64":"","alignment":null,"normalized_alignment":null,"voice_segments":null}'),
    ).toEqual({
      audio: Buffer.alloc(0),
      ...nothing,
    });
    expect(read(`{"audio_base64":null,"alignment":${JSON.stringify(ALIGNMENT)}}`)).toMatchObject({
      audio: Buffer.alloc(0),
      alignment: ALIGNMENT,
    });
  });

  it("hands on lists of unequal length and times that are none: the timing mends them", () => {
    const ragged =
      '{"characters":["a","b"],"character_start_times_seconds":[0],"character_end_times_seconds":[null,"1"]}';
    const chunk = read(`{"audio_base64":"AQI=","alignment":${ragged}}`);
    expect(Buffer.from(chunk.audio)).toEqual(Buffer.from([1, 2]));
    expect(chunk.alignment).toEqual(JSON.parse(ragged));
  });

  it.each([
    ["no JSON", "nonsense"],
    ["no object", "[]"],
    ["no audio and no timing", "{}"],
    ["an error in place of a record", '{"detail":{"status":"quota_exceeded"}}'],
    ["audio that is no string", '{"audio_base64":7}'],
    ["audio that is not base64", '{"audio_base64":"AQ!="}'],
    ["audio with a digit too many", '{"audio_base64":"AAAAA"}'],
    ["audio with padding inside", '{"audio_base64":"AQ==AQ=="}'],
    ["an alignment that is no object", '{"audio_base64":"","alignment":[]}'],
    [
      "a character that is no string",
      '{"audio_base64":"","alignment":{"characters":[1],"character_start_times_seconds":[0],"character_end_times_seconds":[1]}}',
    ],
    ["a segment without a voice", '{"audio_base64":"","voice_segments":[{"start_time_seconds":0}]}'],
    ["a comma too many", '{"audio_base64":"",}'],
    ["two records", '{"audio_base64":""}{"audio_base64":""}'],
  ])("refuses %s", (_name, line) => {
    expect(outcome(() => read(line))).toEqual({ code: "upstream_protocol" });
    expectSame(Buffer.from(line));
  });

  it("never quotes the line in its error, nor keeps one that does", () => {
    for (const line of [
      '{"audio_base64":"","alignment":"SecretWords"}',
      "SecretWords",
      '{"audio_base64":"SecretWords?',
    ]) {
      try {
        read(line);
        expect.unreachable();
      } catch (thrown) {
        expect(`${thrown} ${(thrown as Error).cause}`).not.toContain("SecretWords");
      }
    }
  });
});

describe("readFastRecord()", () => {
  const keys = { audio_base64: "AQID", alignment: ALIGNMENT, normalized_alignment: ALIGNMENT };
  const fast = (line: string) => readFastRecord(...within(Buffer.from(line)));

  it("reads the usual shapes by itself", () => {
    const line = JSON.stringify(keys);
    expect(fast(line)).toMatchObject({ alignment: ALIGNMENT, normalizedAlignment: ALIGNMENT, restStart: -1 });
    // As Python's json.dumps writes it.
    expect(fast(line.replace(/([,:])/g, "$1 "))).toMatchObject({ alignment: ALIGNMENT, restStart: -1 });
    expect(fast('{"audio_base64":"AQID"}')).toMatchObject({ audio: Buffer.from([1, 2, 3]), restStart: -1 });
  });

  it("leaves to JSON.parse only what follows", () => {
    const line = JSON.stringify({ ...keys, voice_segments: [SEGMENT] });
    expect(fast(line)).toMatchObject({
      alignment: ALIGNMENT,
      restStart: Buffer.from(line).indexOf('"voice_segments"'),
    });
  });

  it("leaves the unusual alone", () => {
    expect(fast(JSON.stringify({ alignment: ALIGNMENT, audio_base64: "AQID" }))).toBeNull();
    expect(fast('{"audio_base64":"AQI\\u003d"}')).toBeNull();
    expect(fast('{"audio_base64":"AQID","alignment":{"characters":["\\n"]}}')).toMatchObject({
      alignment: undefined,
    });
  });
});

/** JSON text for values that are nearly alignments: other numbers, escapes, orders and blanks. */
const jsonNumber = fc.oneof(
  fc.integer({ min: 0, max: 100_000 }).map((ms) => String(ms / 1000)),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom(
    "-0",
    "0.0",
    "1.50",
    "-1.5",
    "1e3",
    "1E-2",
    "0.1234567890123456789",
    "123456789012345678",
    "01",
    "1.",
    ".5",
    "-",
    "+1",
  ),
);
const jsonString = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: "grapheme", maxLength: 2 }).map((text) => JSON.stringify(text)) },
  { weight: 1, arbitrary: fc.constantFrom('"\\u0041"', '"\\/"', '"\u007f"', '"\t"', '"a', "a", '"\\"') },
);
const jsonAlignment = fc
  .record({
    count: fc.integer({ min: 0, max: 6 }),
    texts: fc.array(jsonString, { minLength: 6, maxLength: 6 }),
    starts: fc.array(jsonNumber, { minLength: 6, maxLength: 6 }),
    ends: fc.array(jsonNumber, { minLength: 6, maxLength: 6 }),
    unequal: fc.constantFrom("starts", "ends", ...Array<string>(8).fill("")),
    gap: fc.constantFrom("", "", " ", "  ", "\t"),
  })
  .map(({ count, texts, starts, ends, unequal, gap }) => {
    const list = (items: readonly string[], length: number) => `[${items.slice(0, length).join(`,${gap}`)}]`;
    return [
      `{"characters":${gap}${list(texts, count)}`,
      `${gap}"character_start_times_seconds":${list(starts, unequal === "starts" ? count + 1 : count)}`,
      `"character_end_times_seconds":${list(ends, unequal === "ends" ? count + 1 : count)}}`,
    ].join(",");
  });
const jsonBase64 = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .uint8Array({ maxLength: 40 })
      .map((bytes) => JSON.stringify(Buffer.from(bytes).toString("base64"))),
  },
  {
    weight: 1,
    arbitrary: fc
      .string({
        unit: fc.constantFrom("A", "b", "/", "+", "-", "_", "=", " ", "\\/", "\\u0041", "é"),
        maxLength: 9,
      })
      .map((text) => `"${text}"`),
  },
  { weight: 1, arbitrary: fc.constantFrom("null", "7", '"') },
);
const jsonField = fc.oneof(
  { weight: 3, arbitrary: jsonBase64.map((value) => `"audio_base64":${value}`) },
  { weight: 3, arbitrary: jsonAlignment.map((value) => `"alignment":${value}`) },
  { weight: 3, arbitrary: jsonAlignment.map((value) => `"normalized_alignment": ${value}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '"alignment":null',
      '"alignment": null ',
      '"normalized_alignment":null',
      '"alignment":nul',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      `"voice_segments":[${JSON.stringify(SEGMENT)}]`,
      '"voice_segments":[]',
      '"voice_segments":{}',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '"extra":{"audio_base64":"AAAA"}',
      '"__proto__":{"alignment":1}',
      '"x":"\\"audio_base64\\":"',
      "",
    ),
  },
);
const usualRecord = fc
  .tuple(jsonBase64, jsonAlignment, jsonAlignment, fc.boolean())
  .map(
    ([audio, first, second, isSame]) =>
      `{"audio_base64":${audio},"alignment":${first},"normalized_alignment":${isSame ? first : second}}`,
  );
const anyRecord = fc
  .tuple(fc.array(jsonField, { maxLength: 5 }), fc.constantFrom("", " ", "\r", "}", " \t"))
  .map(([fields, tail]) => `{${fields.join(",")}}${tail}`);

describe("readRecord() against readPlainRecord()", () => {
  it("gives the same for records of every shape", () => {
    fc.assert(
      fc.property(fc.oneof(usualRecord, anyRecord), fc.constantFrom("", "}", '"}', "]}}"), (line, after) => {
        expectSame(Buffer.from(line), '{"audio_base64":"AAAA"}\n', after);
      }),
      { numRuns: 3000 },
    );
  });

  it("gives the same for a usual record with any byte changed or cut", () => {
    const line = Buffer.from(
      JSON.stringify({ audio_base64: "AQIDBA==", alignment: ALIGNMENT, normalized_alignment: ALIGNMENT }),
    );
    fc.assert(
      fc.property(fc.nat({ max: line.length - 1 }), fc.nat({ max: 255 }), fc.boolean(), (at, byte, isCut) => {
        const changed = Buffer.from(isCut ? line.subarray(0, at) : line);
        if (!isCut) changed[at] = byte;
        expectSame(changed, "", "}}");
      }),
      { numRuns: 5000 },
    );
  });

  it("gives the same number as JSON.parse for every decimal", () => {
    const decimal = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }).map(String),
      fc
        .tuple(fc.nat({ max: 999_999 }), fc.integer({ min: 1, max: 18 }))
        .map(([value, digits]) => (value / 997).toFixed(digits)),
    );
    fc.assert(
      fc.property(decimal, (text) => {
        const list = `[${text}]`;
        const line = `{"audio_base64":"","alignment":{"characters":["a"],"character_start_times_seconds":${list},"character_end_times_seconds":${list}}}`;
        const [value] = read(line).alignment?.character_start_times_seconds ?? [];
        expect(Object.is(value, JSON.parse(text))).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });
});
