/** A voice with a loudness at two services that are not equally loud: each has its own gain, so that a switch is not heard as one. */
import { expect, it, vi } from "vitest";
import { wavHeader } from "../../../src/audio/containers/wav.ts";
import type { FakeScript } from "../../helpers/fake-answer.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../../helpers/start-gateway.ts";
import { measureLoudness } from "../../kit/loudness-meter.ts";
import { dyingAt } from "../../kit/vendors/dying.ts";
import { KOKORO_VOICE, kokoro } from "../../kit/vendors/kokoro.ts";
import { OPENAI_VOICE } from "../../kit/vendors/openai.ts";
import { bytesOf, speak } from "../../kit/vendors/spoken.ts";
import { jsonError } from "../../kit/vendors/timed-steps.ts";
import { configOf } from "../services/rig.ts";

vi.setConfig({ testTimeout: 120_000 });

const TEXT = "The quick brown fox jumps over the lazy dog, and nobody dares to wake it before the evening.";
const RATE = 24_000;
const TARGET_LUFS = -20;
/** The stand-in is 16 dB softer. */
const SOFTER = 0.16;

const soft: FakeScript = ({ path, json }) => {
  if (path !== "/v1/audio/speech") return jsonError(404, { error: { code: "not_found" } });
  const { pcm } = speak((json as { readonly input: string }).input, { sampleRate: RATE });
  const audio = bytesOf(pcm.map((sample) => Math.round(sample * SOFTER)));
  const header = wavHeader({ sampleRate: RATE, dataBytes: audio.length });
  return { headers: { "content-type": "audio/wav" }, body: [header, audio] };
};

it("a stand-in that goes on in the middle is as loud as the voice before it, and so is what either says next", async () => {
  await using first = await startFakeUpstream();
  await using preferred = await startFakeUpstream(kokoro());
  await using standIn = await startFakeUpstream(soft);
  const services = [configOf("kokoro", preferred.url), { ...configOf("openai", standIn.url), name: "local" }];
  const voices = [{ name: "anna", upstreamVoices: [`kokoro:${KOKORO_VOICE}`, `local:${OPENAI_VOICE}`] }];
  await using gateway = await gatewayAt(first.url, { loudnessLufs: TARGET_LUFS }, { services, voices });

  async function say(voice: string) {
    const path = `/live/${crypto.randomUUID()}?format=pcm_${RATE}&pace=burst`;
    await using client = await TestClient.connect(gateway, path);
    client.send({ type: "speak", text: TEXT, voice_id: voice });
    const done = await client.next("utterance.done");
    expect(done).toMatchObject({ outcome: "done" });
    const samples = new Int16Array(Uint8Array.from(client.audio).buffer);
    const atMs = client.eventsOf("warning").find(({ code }) => code === "speech_recovered")?.at_ms;
    return { samples, at: atMs === undefined ? null : Math.round((atMs * RATE) / 1000) };
  }
  function expectLoud(samples: Int16Array, what: string): void {
    expect(Math.abs(measureLoudness(samples, RATE).lufs - TARGET_LUFS), what).toBeLessThan(0.75);
  }

  expectLoud((await say("anna")).samples, "the voice, new");
  for (const round of ["new", "known"]) {
    preferred.use(dyingAt(kokoro(), 20, 40));
    const { samples, at } = await say("anna");
    expect(at).not.toBeNull();
    expectLoud(samples.subarray(0, at ?? 0), `before the switch, stand-in ${round}`);
    expectLoud(samples.subarray(at ?? 0), `behind the switch, stand-in ${round}`);
    // It comes back when it is asked by its own name.
    preferred.use(kokoro());
    await say(`kokoro:${KOKORO_VOICE}`);
    expectLoud((await say("anna")).samples, `the voice, after a stand-in that was ${round}`);
  }
  preferred.use(() => jsonError(503, { error: "down" }));
  expectLoud((await say("anna")).samples, "the stand-in from the beginning");
});
