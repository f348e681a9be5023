/** A gateway with a voice of one's own, as its clients see it: sessions, vendor sockets, OpenAI's path, the phrase cache. */
import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { readUpstreamsFile } from "../../../src/upstream/services/upstreams-file.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../../helpers/start-gateway.ts";
import { CARTESIA_KEY, CARTESIA_VOICE, cartesia } from "../../kit/vendors/cartesia.ts";
import { KOKORO_VOICE, kokoro } from "../../kit/vendors/kokoro.ts";
import type { TimedOptions } from "../../kit/vendors/timed-steps.ts";
import { TEXT } from "../services/rig.ts";
import { posts } from "./rig.ts";

async function rig(settings: Parameters<typeof gatewayAt>[1] = {}, options: TimedOptions = {}) {
  const first = await startFakeUpstream();
  const vendors = {
    cartesia: await startFakeUpstream(cartesia(options)),
    kokoro: await startFakeUpstream(kokoro()),
  };
  const upstreams = [
    { name: "cartesia", url: vendors.cartesia.url, "key-env": "CARTESIA_API_KEY" },
    { name: "kokoro", url: vendors.kokoro.url },
  ];
  const anna = [`cartesia:${CARTESIA_VOICE}`, `kokoro:${KOKORO_VOICE}`];
  const file = JSON.stringify({ upstreams, voices: { anna } });
  const read = readUpstreamsFile(file, { env: () => CARTESIA_KEY, file: () => "" });
  // The model that is set is the first upstream's, which speaks none of it.
  const gateway = await gatewayAt(first.url, { model: "eleven_v3", ...settings }, { ...read });
  const close = async (): Promise<void> => {
    for (const each of [gateway, vendors.cartesia, vendors.kokoro, first]) await each[Symbol.asyncDispose]();
  };
  const speak = async (session: string, more: object = {}) => {
    await using client = await TestClient.connect(gateway, `/live/${session}?format=pcm_24000&pace=burst`);
    client.send({ type: "speak", text: TEXT, voice_id: "anna", ...more });
    return await client.next("utterance.done");
  };
  return { first, ...vendors, gateway, speak, [Symbol.asyncDispose]: close };
}

describe("a gateway with a voice of one's own", () => {
  it("speaks with it in a session; a model that is set for the first upstream is not asked for", async () => {
    await using all = await rig();
    expect(await all.speak("s")).toMatchObject({ outcome: "done", timing: "exact" });
    expect(all.cartesia.requests.find(({ method }) => method === "POST")?.json).toMatchObject({
      model_id: "sonic-3",
    });
    expect([posts(all.kokoro), posts(all.first)]).toEqual([0, 0]);
  });

  it("speaks with it as the default voice", async () => {
    await using all = await rig({ voice: "anna" });
    expect(await all.speak("s", { voice_id: undefined })).toMatchObject({ outcome: "done" });
    expect(posts(all.cartesia)).toBe(1);
  });

  it("speaks with it on OpenAI's path and on the vendor's sockets", async () => {
    await using all = await rig();
    const answer = await fetch(`${all.gateway.url}/v1/audio/speech`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "tts-1", voice: "anna", input: TEXT, response_format: "pcm" }),
    });
    expect(answer.status).toBe(200);
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(48_000);
    const socket = new WebSocket(
      `${all.gateway.wsUrl}/v1/text-to-speech/anna/stream-input?output_format=pcm_24000`,
    );
    socket.on("open", () => {
      for (const text of [" ", `${TEXT} `, ""]) socket.send(JSON.stringify({ text }));
    });
    const messages: { audio?: string | null; isFinal?: boolean | null }[] = [];
    await new Promise<void>((resolve) => {
      socket.on("message", (data: Buffer) => messages.push(JSON.parse(data.toString())));
      socket.on("close", () => resolve());
    });
    expect(messages.some(({ audio }) => typeof audio === "string" && audio.length > 1000)).toBe(true);
    expect(messages.at(-1)).toMatchObject({ isFinal: true });
    expect([posts(all.cartesia), posts(all.kokoro), posts(all.first)]).toEqual([2, 0, 0]);
  });

  it("audio at another rate than it says fails: it was heard whole, and no other voice goes on", async () => {
    await using all = await rig({}, { fault: "another rate" });
    expect(await all.speak("s")).toMatchObject({
      outcome: "failed",
      error: { code: "upstream_audio_rate", message: expect.stringMatching(/upstream cartesia/) },
    });
    expect(posts(all.kokoro)).toBe(0);
  });

  it("keeps phrases of the preferred upstream, and none of another in its place", async () => {
    await using all = await rig({ phraseCacheMb: 1 });
    all.cartesia.use(() => "reset");
    await all.speak("s1");
    all.cartesia.use(cartesia());
    await all.speak("s2", { voice_id: `cartesia:${CARTESIA_VOICE}`, text: "It is back." });
    expect(posts(all.kokoro)).toBe(1);
    await all.speak("s3");
    await all.speak("s4");
    // The one that failed, the one that brought it back, and one of two that are the same.
    expect([posts(all.cartesia), posts(all.kokoro)]).toEqual([3, 1]);
  });

  it("says in its metrics who spoke, and who went on for whom", async () => {
    await using all = await rig();
    await all.speak("s1");
    all.cartesia.use(cartesia({ fault: "reset" }));
    await all.speak("s2");
    const lines = (await all.gateway.metrics()).split("\n");
    expect(lines.filter((line) => line.startsWith("voicewire_voice_"))).toEqual([
      'voicewire_voice_served_total{voice="anna",region="cartesia"} 2',
      'voicewire_voice_served_total{voice="anna",region="kokoro"} 1',
      'voicewire_voice_switches_total{voice="anna",region="cartesia"} 1',
      'voicewire_voice_switches_total{voice="anna",region="kokoro"} 0',
    ]);
  });
});
