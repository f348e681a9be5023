import { describe, expect, it } from "vitest";
import { decodeSamples, encodeSamples, type SampleCodec } from "../../../src/audio/codecs/samples.ts";
import { noise } from "./helpers.ts";

const CODECS: readonly SampleCodec[] = ["ulaw", "alaw", "pcm"];

describe("decodeSamples()", () => {
  it.each(CODECS)("%s: gives memory of its own, from any address", (codec) => {
    const bytes = encodeSamples(codec, noise(50));
    const shifted = new Uint8Array(bytes.length + 1);
    shifted.set(bytes, 1);
    const view = shifted.subarray(1);
    const pcm = decodeSamples(codec, view);
    expect(encodeSamples(codec, pcm)).toEqual(bytes);
    pcm.fill(1);
    expect(view).toEqual(bytes);
  });
});
