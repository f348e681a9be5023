/** The voice of texts that name none: what an upstream's list may be. */
import { describe, expect, it } from "vitest";
import { defaultVoice } from "../../../src/upstream/default-voice.ts";

function voiceOf(body: string): Promise<string> {
  const get = async () => ({ status: 200, contentType: "application/json", body: Buffer.from(body) });
  return defaultVoice({ get }, "")();
}

describe("the default voice", () => {
  it("is the first of the list", async () => {
    expect(await voiceOf('{"voices":[{"voice_id":"a","name":"Ann"},{"voice_id":"b"}]}')).toBe("a");
  });

  it.each([
    ["<html>", "upstream_protocol"],
    ["null", "upstream_protocol"],
    ['{"voices":[{"name":"Ann"}]}', "upstream_protocol"],
    ['{"voices":[]}', "unknown_voice"],
  ])("is refused for %s: %s", async (body, code) => {
    await expect(voiceOf(body)).rejects.toMatchObject({ code });
  });
});
