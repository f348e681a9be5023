import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GatewayError } from "../../../src/errors.ts";
import { MODELS } from "../../../src/service/http/speech/models-catalogue.ts";
import { type StitchFacts, stitch, stitchInstead } from "../../../src/upstream/stitching.ts";
import type { SpeechRequest } from "../../../src/upstream/types.ts";

const FACTS: StitchFacts = {
  modelId: "eleven_multilingual_v2",
  isLogged: true,
  before: "What was said. ",
  behind: " What comes.",
  requestIds: [],
};

describe("stitch", () => {
  it.each([
    "eleven_v3",
    "eleven_v3_alpha",
    "eleven_v3-preview",
    "my_v3_model",
    "eleven_v4",
    "eleven_v4_turbo",
  ])("%s takes none of it", (modelId) => {
    expect(stitch({ ...FACTS, modelId, requestIds: ["a"] })).toEqual({});
  });

  it.each(MODELS.map(({ id, isExpressive }) => [id, isExpressive] as const))(
    "the embedded service's %s is sent what it takes (expressive: %j)",
    (modelId, isExpressive) => {
      expect(Object.keys(stitch({ ...FACTS, modelId }))).toHaveLength(isExpressive ? 0 : 2);
    },
  );

  it.each(["", "eleven_multilingual_v2", "eleven_flash_v2_5", "eleven_v30", "eleven_v40", "eleven_turbo_v2"])(
    "model %j takes the text around",
    (modelId) => {
      expect(stitch({ ...FACTS, modelId })).toEqual({
        previousText: "What was said.",
        nextText: "What comes.",
      });
    },
  );

  it("request ids stand for the text before, the latest three, oldest first", () => {
    expect(stitch({ ...FACTS, requestIds: ["a", "b", "c", "d"] })).toEqual({
      previousRequestIds: ["b", "c", "d"],
      nextText: "What comes.",
    });
  });

  it("zero retention has no request ids: the text before goes instead", () => {
    expect(stitch({ ...FACTS, isLogged: false, requestIds: ["a"] })).toEqual({
      previousText: "What was said.",
      nextText: "What comes.",
    });
  });

  it("nothing before and nothing behind gives nothing", () => {
    expect(stitch({ ...FACTS, before: "", behind: " \n" })).toEqual({});
  });

  it("cuts long neighbours between words", () => {
    const long = "word ".repeat(100);
    const { previousText = "", nextText = "" } = stitch({ ...FACTS, before: long, behind: long });
    expect(previousText).toMatch(/^word( word)*$/);
    expect(nextText).toMatch(/^word( word)*$/);
    expect(previousText.length).toBeGreaterThan(150);
    expect(nextText.length).toBeGreaterThan(75);
  });

  it.each([
    ["a space at the near end", "長い文章です。".repeat(60), "\n"],
    ["a space at the far end only", ` x${"長い文章です。".repeat(60)}`, ""],
  ])("text without spaces keeps its length with %s", (_name, long, edge) => {
    const { previousText = "" } = stitch({ ...FACTS, before: long + edge });
    expect(previousText.length).toBeGreaterThan(150);
    const { nextText = "" } = stitch({ ...FACTS, behind: `${edge}私 ${long}` });
    expect(nextText.length).toBeGreaterThan(75);
  });

  it("is bounded, never has half a surrogate pair, and comes from the right end", () => {
    const text = fc.string({ unit: fc.constantFrom("a", " ", "😀", "\n", "漢", "é", "."), maxLength: 600 });
    fc.assert(
      fc.property(text, text, (before, behind) => {
        const { previousText = "", nextText = "" } = stitch({ ...FACTS, before, behind });
        expect(previousText.length).toBeLessThanOrEqual(200);
        expect(nextText.length).toBeLessThanOrEqual(100);
        expect(`${previousText}|${nextText}`).not.toMatch(/\p{Cs}/u);
        expect(before.trimEnd().endsWith(previousText)).toBe(true);
        expect(behind.trimStart().startsWith(nextText)).toBe(true);
        expect(previousText === "").toBe(before.trim() === "");
        expect(nextText === "").toBe(behind.trim() === "");
      }),
    );
  });
});

describe("what was refused for its neighbours", () => {
  const FACTS_WITH_IDS = { ...FACTS, requestIds: ["a"] };

  it("is sent as text instead of ids, then not at all", () => {
    expect(stitch(FACTS_WITH_IDS, "text")).toEqual({
      previousText: "What was said.",
      nextText: "What comes.",
    });
    expect(stitch(FACTS_WITH_IDS, "nothing")).toEqual({});
  });

  const plain: SpeechRequest = {
    kind: "speech",
    outputFormat: "pcm_24000",
    wantsTiming: true,
    voiceId: "v",
    text: "x",
  };
  it.each([
    ["ids: 400, 422", { previousRequestIds: ["a"] }, new GatewayError("upstream_invalid", ""), "text"],
    ["ids: 404", { previousRequestIds: ["a"] }, new GatewayError("upstream_not_found", ""), "text"],
    ["ids: 500", { previousRequestIds: ["a"] }, new GatewayError("upstream_failed", ""), "text"],
    ["ids: the key", { previousRequestIds: ["a"] }, new GatewayError("upstream_unauthorized", ""), null],
    ["ids: the line", { previousRequestIds: ["a"] }, new GatewayError("upstream_unreachable", ""), null],
    [
      "ids and text: the text",
      { previousRequestIds: ["a"], nextText: "y" },
      new GatewayError("upstream_invalid", "", { field: "next_text" }),
      "nothing",
    ],
    [
      "text: the text",
      { previousText: "y" },
      new GatewayError("upstream_invalid", "", { field: "previous_text" }),
      "nothing",
    ],
    [
      "text: another field",
      { previousText: "y" },
      new GatewayError("upstream_invalid", "", { field: "seed" }),
      null,
    ],
    ["nothing", {}, new GatewayError("upstream_invalid", "", { field: "previous_text" }), null],
  ] as const)("is asked for once more: %s", (_name, stitched, error, expected) => {
    expect(stitchInstead({ ...plain, ...stitched }, error)).toBe(expected);
  });
});
