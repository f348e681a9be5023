/** `voicewire say` with voices of one's own and of other services: listed, found by name, spoken with, and what is missing. */
import { describe, expect, test, vi } from "vitest";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt } from "../helpers/start-gateway.ts";
import { KOKORO_VOICE, kokoro } from "../kit/vendors/kokoro.ts";
import { configOf } from "../upstream/services/rig.ts";
import { PATIENT, run } from "./program.ts";

vi.setConfig(PATIENT);

async function rig() {
  const first = await startFakeUpstream();
  const engine = await startFakeUpstream(kokoro());
  const gateway = await gatewayAt(
    first.url,
    {},
    {
      services: [configOf("kokoro", engine.url)],
      voices: [{ name: "anna", upstreamVoices: [`kokoro:${KOKORO_VOICE}`, "tone-a"] }],
    },
  );
  const say = (...args: string[]) => run(["say", "--url", gateway.url, ...args]);
  const close = async (): Promise<void> => {
    for (const each of [gateway, engine, first]) await each[Symbol.asyncDispose]();
  };
  return { first, engine, say, [Symbol.asyncDispose]: close };
}

describe("voicewire say with other upstreams", () => {
  test("--list-voices has them all, a voice of one's own with its stand-ins", async () => {
    await using all = await rig();
    const { stdout, stderr, code } = await all.say("--list-voices");
    const lines = stdout.toString().split("\n");
    expect(lines[0]).toMatch(/^anna +anna +kokoro:af_heart > tone-a$/);
    expect(lines.at(-2)).toMatch(/^af_heart +kokoro:af_heart +en, female$/);
    expect([stderr, code]).toEqual(["", 0]);
  });

  test.each(["anna", "Anna", KOKORO_VOICE, `kokoro:${KOKORO_VOICE}`])("--voice %s speaks", async (voice) => {
    await using all = await rig();
    const { stdout, stderr, code } = await all.say("--voice", voice, "--json", "Hello there.");
    expect([stderr, code]).toEqual(["", 0]);
    expect(stdout.toString()).toContain('"outcome":"done"');
    expect(all.engine.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
  });

  test("a service that can't list its voices is named, and the others' are there", async () => {
    await using all = await rig();
    await all.engine.close();
    const list = await all.say("--list-voices");
    expect(list.stderr).toMatch(/^Some voices that begin with kokoro: can't be listed: .*\n$/);
    expect(list.stdout.toString()).toContain("tone-a");
    expect(list.code).toBe(0);
    const wrong = await all.say("--voice", KOKORO_VOICE, "Hi.");
    expect(wrong.stderr).toContain("voices that begin with kokoro: can't be listed");
  });
});
