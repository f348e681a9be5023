import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { until } from "../../helpers/until.ts";
import { RIME_KEY, RIME_VOICE, rime } from "../../kit/vendors/rime.ts";
import { Recorder } from "../../unit/upstream/rig.ts";
import { configOf, serviceAt, speech } from "./rig.ts";
import { behavesAsSocket } from "./socket-services.ts";
import { behavesAsTimed, type TimedService, timedService } from "./timed-services.ts";

const RIME: TimedService = {
  service: "rime",
  socket: rime,
  key: RIME_KEY,
  voice: RIME_VOICE,
  nativeRate: 24_000,
  unknownVoice: { code: "upstream_failed", hint: /its log may say why/ },
};
const said = timedService(RIME);

describe("Rime", () => {
  behavesAsTimed(RIME);
  behavesAsSocket(RIME);

  it.each([
    ["ulaw_8000", "mulaw", "8000"],
    ["alaw_8000", "pcm", "8000"],
    ["pcm_48000", "pcm", "48000"],
  ])("%s is asked for as %s at %s", async (outputFormat, audioFormat, samplingRate) => {
    const { recorder, request } = await said({}, { outputFormat });
    expect(recorder.failure).toBeNull();
    expect(Object.fromEntries(request?.query ?? [])).toEqual({
      speaker: RIME_VOICE,
      modelId: "arcana",
      audioFormat,
      samplingRate,
    });
  });

  it.each(["an abort", "a silence"])("%s before the handshake was answered ends it, too", async (how) => {
    const server = createServer((socket) => socket.on("error", () => socket.destroy()));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await using upstream = serviceAt(configOf("rime", `ws://127.0.0.1:${port}`, { key: RIME_KEY }), 150);
    const recorder = new Recorder();
    const synthesis = upstream.open(speech(RIME_VOICE), recorder);
    await until("a place", () => upstream.stats().open === 1);
    if (how === "an abort") synthesis.abort();
    else expect((await recorder.failed()).code).toMatch(/^upstream_(?:timeout|unreachable)$/);
    await until("the place to be free", () => upstream.stats().open === 0);
    expect(upstream.stats().connected).toBe(0);
    expect(recorder.calls.filter((call) => !call.startsWith("error"))).toEqual([]);
    server.close();
  });

  it("gets a language in three letters; what it can't do is named", async () => {
    const { recorder, request } = await said({}, { languageCode: "es-MX", seed: 7, modelId: "coda" });
    expect(Object.fromEntries(request?.query ?? [])).toMatchObject({ lang: "spa", modelId: "coda" });
    expect(recorder.heads).toMatchObject([{ ignored: ["seed"] }]);
  });
});
