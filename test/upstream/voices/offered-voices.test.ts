/** `GET /voices` of a gateway with other services and a voice of one's own: what clients may name, and what it leaves alone. */
import { describe, expect, it } from "vitest";
import type { OfferedVoices } from "../../../src/protocol/voice-list.ts";
import { readUpstreamsFile } from "../../../src/upstream/services/upstreams-file.ts";
import { FAKE_VOICES, refusal, startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { TestKeys, tokenFor } from "../../helpers/key-file.ts";
import { gatewayAt } from "../../helpers/start-gateway.ts";
import { KOKORO_VOICE, kokoro } from "../../kit/vendors/kokoro.ts";
import { PIPER_VOICE, piper } from "../../kit/vendors/piper.ts";

const ANNA = [`kokoro:${KOKORO_VOICE}`, `piper:${PIPER_VOICE}`, "tone-a"];

async function rig(settings: Parameters<typeof gatewayAt>[1] = {}) {
  const first = await startFakeUpstream();
  const engines = { kokoro: await startFakeUpstream(kokoro()), piper: await startFakeUpstream(piper()) };
  const upstreams = Object.entries(engines).map(([name, { url }]) => ({ name, url }));
  const voices = { anna: ANNA, "tone-b": ["kokoro:af_heart", "tone-b"] };
  const read = readUpstreamsFile(JSON.stringify({ upstreams, voices }), { env: () => "", file: () => "" });
  const gateway = await gatewayAt(first.url, settings, read);
  const list = async (key = ""): Promise<OfferedVoices> => {
    const headers = key === "" ? {} : { authorization: `Bearer ${key}` };
    const answer = await fetch(`${gateway.url}/voices`, { headers });
    expect(answer.status).toBe(200);
    return (await answer.json()) as OfferedVoices;
  };
  const close = async (): Promise<void> => {
    for (const each of [gateway, first, engines.kokoro, engines.piper]) await each[Symbol.asyncDispose]();
  };
  return { first, ...engines, gateway, list, [Symbol.asyncDispose]: close };
}

function idsOf({ voices }: OfferedVoices): string[] {
  return voices.map(({ voice_id }) => voice_id);
}

describe("GET /voices", () => {
  it("lists one's own voices, the first upstream's and each service's, as they are named", async () => {
    await using all = await rig();
    const list = await all.list();
    // One's own voice stands for the first upstream's of the same id.
    const firsts = FAKE_VOICES.map(({ voice_id }) => voice_id).filter((id) => id !== "tone-b");
    expect(idsOf(list)).toEqual([
      ...["anna", "tone-b"],
      ...firsts,
      ...[`kokoro:${KOKORO_VOICE}`, `piper:${PIPER_VOICE}`],
    ]);
    expect(list.voices[0]).toEqual({
      ...{ voice_id: "anna", name: "anna", labels: {}, upstream: null, spoken_by: ANNA },
    });
    expect(list.voices.at(-1)).toEqual({
      voice_id: `piper:${PIPER_VOICE}`,
      name: PIPER_VOICE,
      labels: { language: "en" },
      upstream: "piper",
    });
    expect(list.unlisted).toEqual([]);
  });

  it("asks everybody once for many", async () => {
    await using all = await rig();
    await Promise.all(Array.from({ length: 10 }, () => all.list()));
    await all.list();
    for (const { requests } of [all.first, all.kokoro, all.piper])
      expect(requests.filter(({ path }) => path.includes("voices"))).toHaveLength(1);
  });

  it("one that fails costs its own part", async () => {
    await using all = await rig();
    await all.kokoro.close();
    all.first.use(() => refusal(401, "invalid_api_key"));
    const list = await all.list();
    expect(idsOf(list)).toEqual(["anna", "tone-b", `piper:${PIPER_VOICE}`]);
    expect(list.unlisted).toMatchObject([
      { upstream: null, code: "upstream_unauthorized" },
      { upstream: "kokoro", code: "upstream_unreachable" },
    ]);
  });

  it("a first upstream that does not answer costs its own part, too", async () => {
    await using all = await rig();
    all.first.use(() => ({ headers: {}, body: ["{", "stall"] }));
    const list = await all.list();
    expect(list.unlisted).toMatchObject([{ upstream: null, code: "upstream_timeout" }]);
    expect(idsOf(list)).toContain(`kokoro:${KOKORO_VOICE}`);
  });

  it("leaves the vendor's own list as it is", async () => {
    await using all = await rig();
    const { voices } = (await (await fetch(`${all.gateway.url}/v1/voices`)).json()) as { voices: unknown[] };
    expect(voices).toEqual(FAKE_VOICES);
  });

  it("with keys: those that may read voices, and what they may speak with", async () => {
    using keys = new TestKeys();
    const grants = { sessions: ["*"], voices: ["anna", "piper:*"], proxy: ["voices.read"] };
    const reader = tokenFor({ ...grants, allow: ["speak", "proxy"] });
    const speaker = tokenFor({ sessions: ["*"], allow: ["speak", "listen"] });
    await using all = await rig({ keysFile: keys.path });
    expect(idsOf(await all.list(reader))).toEqual(["anna", `piper:${PIPER_VOICE}`]);
    const status = async (key?: string): Promise<number> => {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
      return (await fetch(`${all.gateway.url}/voices`, { headers })).status;
    };
    expect([await status(speaker), await status("nobody"), await status()]).toEqual([403, 401, 401]);
  });
});
