/** Voices of one's own in the file of upstreams: what is taken, and what the start is refused for. */
import { describe, expect, it } from "vitest";
import { readUpstreamsFile } from "../../../src/upstream/services/upstreams-file.ts";

const UPSTREAMS = [
  { name: "cartesia", "key-env": "CARTESIA_API_KEY", voices: ["a0e9*"] },
  { name: "piper", url: "http://127.0.0.1:5000" },
];

function read(file: unknown) {
  return readUpstreamsFile(JSON.stringify(file), { env: () => "a-key-0123456789", file: () => "" });
}

describe("voices in the file of upstreams", () => {
  it("are read in their order", () => {
    const voices = { anna: ["cartesia:a0e99841", "piper:en_US", "21m00Tcm4TlvDq8ikWAM"], b: ["x"] };
    expect(read({ upstreams: UPSTREAMS, voices }).voices).toEqual([
      { name: "anna", upstreamVoices: voices.anna },
      { name: "b", upstreamVoices: ["x"] },
    ]);
  });

  it("need not be there: a list of upstreams is a file, too", () => {
    const { services, voices } = read(UPSTREAMS);
    expect(services.map(({ name }) => name)).toEqual(["cartesia", "piper"]);
    expect(voices).toEqual([]);
    expect(read({ upstreams: UPSTREAMS }).services).toEqual(services);
  });

  it.each<[string, unknown, string]>([
    ["no upstreams", { voices: {} }, "no list of upstreams"],
    ["another field", { upstreams: [], voice: {} }, '"voice", expected upstreams, voices'],
    ["a list", { upstreams: [], voices: [] }, "voices: expected an object"],
    ["a colon in a name", { upstreams: [], voices: { "a:b": ["x"] } }, 'voice "a:b": expected letters'],
    ["no voices of upstreams", { upstreams: [], voices: { a: [] } }, "a list of 1 to 8"],
    ["too many", { upstreams: [], voices: { a: [..."123456789"] } }, "a list of 1 to 8"],
    ["no text", { upstreams: [], voices: { a: [4] } }, "without a colon"],
    ["one twice", { upstreams: [], voices: { a: ["x", "x"] } }, "listed twice"],
    [
      "an upstream that there is not",
      { upstreams: UPSTREAMS, voices: { a: ["acme:x"] } },
      "no upstream is called acme, expected voices that begin with cartesia:, piper:",
    ],
    ["a wrong prefix", { upstreams: UPSTREAMS, voices: { a: ["Piper:x"] } }, "without a colon"],
    [
      "a voice that may not be asked for",
      { upstreams: UPSTREAMS, voices: { a: ["cartesia:b1"] } },
      "lists for cartesia",
    ],
    ["a prefix alone", { upstreams: UPSTREAMS, voices: { a: ["piper:"] } }, "lists for piper"],
    [
      "too many voices",
      { upstreams: [], voices: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`v${n}`, ["x"]])) },
      "101 entries, expected at most 100",
    ],
  ])("%s stops the start", (_name, file, message) => {
    expect(() => read(file)).toThrow(expect.objectContaining({ code: "invalid_config", field: "upstreams" }));
    expect(() => read(file)).toThrow(message);
  });
});
