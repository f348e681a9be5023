/** What `voicewire doctor` says of several regions. */
import { describe, expect, it } from "vitest";
import { CHECKS, type CheckResult } from "../../../src/cli/doctor/doctor-checks.ts";
import { type Config, SETTINGS } from "../../../src/config.ts";
import { jsonAnswer, refusal, startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { memoryIo } from "../cli/memory-io.ts";

const DEFAULTS = Object.fromEntries(SETTINGS.map((row) => [row.key, row.default])) as unknown as Config;

async function check(upstreamUrl: string): Promise<CheckResult> {
  const upstream = CHECKS.find(({ name }) => name === "upstream");
  if (upstream === undefined) throw new Error("There is no such check, expected one");
  return await upstream.run({ io: memoryIo([]), config: { ...DEFAULTS, upstreamUrl, upstreamKey: "sk_k" } });
}

describe("doctor's check of the upstream, with several regions", () => {
  it("asks each with the key", async () => {
    await using first = await startFakeUpstream();
    await using second = await startFakeUpstream();
    const { status, detail } = await check(`${first.url},${second.url}/v1`);
    expect(status).toBe("ok");
    expect(detail).toMatch(
      new RegExp(`^${first.url}: 2 voices in \\d+ ms, key accepted; ${second.url}: 2 voices in`),
    );
    expect(second.requests[0]?.headers["xi-api-key"]).toBe("sk_k");
  });

  it("warns of one that refuses or is gone, and fails where all do", async () => {
    await using first = await startFakeUpstream();
    await using second = await startFakeUpstream(() => refusal(401, "invalid_api_key"));
    expect(await check(`${first.url},${second.url}`)).toMatchObject({
      status: "warn",
      detail: expect.stringMatching(/2 voices.*; .*status 401/),
      fix: expect.stringContaining("the regions that work"),
    });
    await first.close();
    expect(await check(`${first.url},${second.url}`)).toMatchObject({ status: "fail" });
  });

  it("warns where they do not have the same voices", async () => {
    await using first = await startFakeUpstream();
    await using second = await startFakeUpstream(() =>
      jsonAnswer(200, { voices: [{ voice_id: "another", name: "Another" }] }),
    );
    expect(await check(`${first.url},${second.url}`)).toMatchObject({
      status: "warn",
      fix: expect.stringContaining("share an account"),
    });
  });

  it("says what is wrong with a list", async () => {
    expect(await check("http://127.0.0.1:1,http://127.0.0.1:1/v1")).toMatchObject({
      status: "fail",
      detail: expect.stringContaining("listed twice"),
    });
  });
});
