/** The scripted upstream says what is wrong, so that a test that waits for speech does not wait in vain. */
import { expect, it } from "vitest";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";

it.each(["alaw_16000", "pcm_12000"])("refuses %s, which the vendor does not have", async (format) => {
  await using upstream = await startFakeUpstream();
  const answer = await fetch(`${upstream.url}/v1/text-to-speech/v/stream?output_format=${format}`, {
    method: "POST",
    body: JSON.stringify({ text: "Hello" }),
  });
  expect(answer.status).toBe(422);
  expect(await answer.json()).toMatchObject({
    detail: { code: "invalid_output_format", message: expect.stringContaining(format) },
  });
});
