import { describe, expect, it } from "vitest";
import type { SynthesisChunk, SynthesisRequest } from "../../../src/upstream/types.ts";
import { TextProgress } from "../../../src/upstream/vendors/text-progress.ts";
import { SPEECH } from "./rig.ts";

const CHARACTER_SECONDS = 0.1;
const BYTES_PER_SECOND = 8000;

/** Records of ten characters at most, each with its audio. */
function recordsOf(text: string, more: Partial<SynthesisChunk> = {}): SynthesisChunk[] {
  const characters = [...text];
  const records: SynthesisChunk[] = [];
  for (let from = 0; from < characters.length; from += 10) {
    const part = characters.slice(from, from + 10);
    const at = (index: number): number => (from + index) * CHARACTER_SECONDS;
    records.push({
      audio: new Uint8Array(part.length * CHARACTER_SECONDS * BYTES_PER_SECOND),
      alignment: {
        characters: part,
        character_start_times_seconds: part.map((_, index) => at(index)),
        character_end_times_seconds: part.map((_, index) => at(index + 1)),
      },
      normalizedAlignment: null,
      voiceSegments: [],
      ...more,
    });
  }
  return records;
}

function endOf(records: readonly SynthesisChunk[], request: SynthesisRequest): () => void {
  const timed = new TextProgress(request);
  for (const record of records) timed.push(record);
  return () => timed.checkEnd();
}

const asking = (text: string, outputFormat = "ulaw_8000"): SynthesisRequest => ({
  ...SPEECH,
  text,
  outputFormat,
});
const silence = (seconds: number): SynthesisChunk => ({
  audio: new Uint8Array(seconds * BYTES_PER_SECOND),
  alignment: null,
  normalizedAlignment: null,
  voiceSegments: [],
});
const TEXT = "One two three four, five six.";
const TRUNCATED = expect.objectContaining({ code: "upstream_truncated", isRetryable: true });

describe("an answer that ends as if it were whole", () => {
  it.each(["ulaw_8000", "opus_48000_32"])(
    "is truncated where words and their audio are missing (%s)",
    (format) => {
      expect(endOf(recordsOf(TEXT.slice(0, 20)), asking(TEXT, format))).toThrow(TRUNCATED);
    },
  );

  it("is whole with all of its text", () => {
    expect(endOf(recordsOf(TEXT), asking(TEXT))).not.toThrow();
  });

  it.each(["...", ' <break time="1s"/>', " [laughs]"])(
    "is whole where %s is left, which is no word",
    (rest) => {
      expect(endOf(recordsOf(TEXT), asking(`${TEXT}${rest}`))).not.toThrow();
    },
  );

  it("is whole where audio is left whose times did not come", () => {
    const records = [...recordsOf(TEXT.slice(0, 20)), silence(0.9)];
    expect(endOf(records, asking(TEXT))).not.toThrow();
    expect(endOf(records, asking(TEXT, "opus_48000_32"))).not.toThrow();
  });

  it("is not judged by times of another text", () => {
    expect(endOf(recordsOf("eins zwei"), asking(TEXT))).not.toThrow();
  });

  it("is not judged without times", () => {
    expect(endOf([silence(1)], asking(TEXT))).not.toThrow();
  });

  it("is truncated where an input of a dialogue is missing", () => {
    const dialogue: SynthesisRequest = {
      kind: "dialogue",
      inputs: [
        { text: "Are you there? ", voiceId: "a" },
        { text: "Yes.", voiceId: "b" },
      ],
      outputFormat: "ulaw_8000",
      wantsTiming: true,
    };
    expect(endOf(recordsOf("Are you there? "), dialogue)).toThrow(TRUNCATED);
    expect(endOf(recordsOf("Are you there? Yes."), dialogue)).not.toThrow();
  });
});
