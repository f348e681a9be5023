/** What a plan allows at once: all that makes sound counts. Speech and dialogues: errors.test.ts. */
import { describe, expect, it, vi } from "vitest";
import { registerAudioIsolation } from "../../src/service/http/audio/audio-isolation.ts";
import { registerSoundGeneration } from "../../src/service/http/audio/sound-generation.ts";
import type { Admission, ConcurrencyGate } from "../../src/service/http/tiers.ts";
import { mount } from "./mounted.ts";

function isolate(url: string): Promise<Response> {
  const form = new FormData();
  form.append("audio", new Blob([new Uint8Array(32_000)]), "a.pcm");
  form.append("file_format", "pcm_s16le_16");
  return fetch(url, { method: "POST", body: form });
}

const makeSound = (url: string): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: "beep", duration_seconds: 0.5 }),
  });

describe.each([
  ["/v1/sound-generation", makeSound],
  ["/v1/audio-isolation", isolate],
  ["/v1/audio-isolation/stream", isolate],
])("POST %s", (path, send) => {
  it("counts while it is under way, and is refused over the plan", async () => {
    let gate: ConcurrencyGate | undefined;
    await using mounted = await mount({ tier: "free" }, (section, context) => {
      registerSoundGeneration(section, context);
      registerAudioIsolation(section, context);
      gate = context.gate;
    });
    const ask = async () => {
      const answer = await send(mounted.url + path);
      const text = await answer.text();
      const [current, maximum] = ["current", "maximum"].map((name) =>
        answer.headers.get(`${name}-concurrent-requests`),
      );
      return { status: answer.status, text, current, maximum };
    };
    expect(await ask()).toMatchObject({ status: 200, current: "1", maximum: "2" });
    // A request gives its place back soon after its client has the end.
    const hold = () => vi.waitFor(() => gate?.enter("standard") as Admission);
    const held = await hold();
    await vi.waitFor(async () => {
      expect(await ask()).toMatchObject({ status: 200, current: "2", maximum: "2" });
    });
    await hold();
    const refused = await ask();
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.text)).toMatchObject({
      detail: {
        type: "rate_limit_error",
        code: "concurrent_limit_exceeded",
        status: "too_many_concurrent_requests",
      },
    });
    held.release();
    expect((await ask()).status).toBe(200);
  });
});
