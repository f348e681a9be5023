/** Requests to a service: how many, how they are held, given up and ended. */
import { describe, expect, it } from "vitest";
import { wavHeader } from "../../../src/audio/containers/wav.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { until } from "../../helpers/until.ts";
import { Recorder, turns } from "../../unit/upstream/rig.ts";
import { configOf, serviceAt, speech } from "./rig.ts";

const HEADER = wavHeader({ sampleRate: 24_000, dataBytes: 0xffff_ffff });
const endless = () => ({
  headers: { "content-type": "audio/wav" },
  body: [HEADER, { endless: Buffer.alloc(4096) }],
});

describe("requests to a service", () => {
  it("paused, nothing more is read: the service can't send on; resumed, it goes on", async () => {
    await using vendor = await startFakeUpstream(endless);
    await using upstream = serviceAt(configOf("openai", vendor.url));
    const recorder = new Recorder();
    const synthesis = upstream.open(speech("v"), recorder);
    await until("audio", () => recorder.bytes > 0);
    synthesis.pause();
    await until("a full socket", () => vendor.requests[0]?.isBlocked === true);
    await turns();
    const { bytes } = recorder;
    await turns();
    expect(recorder.bytes).toBe(bytes);
    synthesis.resume();
    await until("more", () => recorder.bytes > bytes);
    synthesis.abort();
  });

  it("given up, the request ends, and nobody hears of it", async () => {
    await using vendor = await startFakeUpstream(endless);
    await using upstream = serviceAt(configOf("openai", vendor.url));
    const recorder = new Recorder();
    const synthesis = upstream.open(speech("v"), recorder);
    await until("audio", () => recorder.bytes > 0);
    synthesis.abort();
    const { calls } = recorder;
    await until("the end of the request", () => vendor.requests[0]?.abortedAtMs !== null);
    expect(recorder.calls).toEqual(calls);
    expect(recorder.isOver).toBe(false);
    await until("its place", () => upstream.stats().open === 0);
  });

  it.each(["mp3_44100_128", "opus_48000_64"])(
    "%s given up at once: its encoder goes, too",
    async (outputFormat) => {
      await using vendor = await startFakeUpstream(endless);
      await using upstream = serviceAt(configOf("openai", vendor.url));
      const recorder = new Recorder();
      // More than may be open in a thread.
      for (let count = 0; count < 80; count += 1)
        upstream.open(speech("v", { outputFormat }), recorder).abort();
      await turns();
      expect(recorder.calls).toEqual([]);
      const last = new Recorder();
      const synthesis = upstream.open(speech("v", { outputFormat }), last);
      await until("audio", () => last.bytes > 0);
      synthesis.abort();
    },
  );

  it("max-open requests are open, the others wait", async () => {
    await using vendor = await startFakeUpstream(endless);
    await using upstream = serviceAt(configOf("openai", vendor.url, { maxOpen: 3 }));
    const all = Array.from({ length: 5 }, () => upstream.open(speech("v"), new Recorder()));
    expect(upstream.stats()).toMatchObject({ open: 3, queued: 2 });
    for (const synthesis of all) synthesis.abort();
    await until("nobody", () => upstream.stats().open === 0);
  });

  it("closed, what is open fails with draining", async () => {
    await using vendor = await startFakeUpstream(endless);
    await using upstream = serviceAt(configOf("openai", vendor.url));
    const recorder = new Recorder();
    upstream.open(speech("v"), recorder);
    await until("audio", () => recorder.bytes > 0);
    await upstream.close();
    expect(recorder.failure).toMatchObject({ code: "draining" });
    const late = new Recorder();
    upstream.open(speech("v"), late);
    expect(await late.failed()).toMatchObject({ code: "draining" });
  });
});
