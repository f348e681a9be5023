import { describe, expect, it } from "vitest";
import { parseAudioRequest } from "../../../src/server/players/audio-request.ts";

const defaults = { leadMs: 300, maxLeadMs: 10_000 };
const parse = (name: "ogg" | "wav" | "pcm" | "ulaw" | "mp3", query = "") =>
  parseAudioRequest(name, new URLSearchParams(query), defaults);

describe("parseAudioRequest()", () => {
  it.each([
    ["ogg", "", "opus_48000", "audio/ogg; codecs=opus"],
    ["wav", "", "pcm_24000", "audio/wav"],
    ["wav", "rate=44100", "pcm_44100", "audio/wav"],
    ["pcm", "rate=8000", "pcm_8000", "audio/pcm; rate=8000; channels=1"],
    ["ulaw", "", "ulaw_8000", "audio/basic"],
    ["mp3", "rate=22050", "pcm_22050", "audio/mpeg"],
  ] as const)("%s?%s needs %s and is %s", (name, query, format, contentType) => {
    expect(parse(name, query)).toMatchObject({ name, format, contentType, frameMs: 20, wantsSilence: false });
  });

  it("joins as a listener without events, with the socket's words and nothing else of the query", () => {
    const request = parse(
      "ogg",
      "lead_ms=1500&pace=burst&policy=live&frame_ms=60&wait=true&silence=true&format=pcm_8000&role=speaker&t=1",
    );
    expect(request.wantsSilence).toBe(true);
    expect(request.joining.mayWait).toBe(true);
    expect(request.joining.settings).toMatchObject({
      role: "listener",
      format: "opus_48000",
      framing: "raw",
      band: "full",
      events: [],
      lead_ms: 1500,
      pace: "burst",
      policy: "live",
      frame_ms: 60,
    });
  });

  it.each([
    ["wav", "rate=11025", "rate"],
    ["mp3", "rate=48000", "rate"],
    ["ulaw", "rate=16000", "rate"],
    ["ogg", "frame_ms=100", "frame_ms"],
    ["wav", "lead_ms=-1", "lead_ms"],
    ["wav", "pace=fast", "pace"],
    ["wav", "policy=none", "policy"],
    ["wav", "wait=1", "wait"],
    ["wav", "silence=yes", "silence"],
  ] as const)("%s?%s is refused with the field %s", (name, query, field) => {
    expect(() => parse(name, query)).toThrow(expect.objectContaining({ code: "invalid_field", field }));
  });
});
