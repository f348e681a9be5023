/** What `voicewire doctor` says of other services. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { CHECKS } from "../../../src/cli/doctor/doctor-checks.ts";
import { startFakeUpstream } from "../../helpers/fake-upstream.ts";
import { DEFAULTS } from "../../helpers/start-gateway.ts";
import { CARTESIA_KEY, cartesia } from "../../kit/vendors/cartesia.ts";
import { PIPER_VOICE, piper } from "../../kit/vendors/piper.ts";
import { htmlPage, jsonError } from "../../kit/vendors/timed-steps.ts";
import { memoryIo } from "../../unit/cli/memory-io.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-upstreams-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function check(entries: unknown) {
  const found = CHECKS.find(({ name }) => name === "upstreams");
  if (found === undefined) throw new Error("There is no such check, expected one");
  const [path, keyFile] = [join(folder, "upstreams.json"), join(folder, "key")];
  writeFileSync(path, JSON.stringify(entries));
  writeFileSync(keyFile, CARTESIA_KEY);
  return found.run({ io: memoryIo([]), config: { ...DEFAULTS, upstreams: path } });
}

describe("doctor's check of other services", () => {
  it("names each, and whether it answers", async () => {
    await using cloud = await startFakeUpstream(cartesia());
    await using local = await startFakeUpstream(piper());
    const entries = [
      { name: "cartesia", url: cloud.url, "key-file": join(folder, "key") },
      { name: "piper", url: local.url },
    ];
    const { status, detail } = await check(entries);
    expect(status).toBe("ok");
    expect(detail).toMatch(
      /^cartesia \(.* answers in \d+ ms; piper \(.* answers in \d+ ms, with \d+ voices?$/,
    );
    expect(detail).not.toContain(CARTESIA_KEY);
    const gone = { name: "gone", service: "piper", url: "http://127.0.0.1:1" };
    expect(await check([...entries, gone])).toMatchObject({
      status: "warn",
      detail: expect.stringContaining("does not answer: upstream_unreachable"),
    });
    expect(await check([gone])).toMatchObject({ status: "fail" });
  });

  it("lists one's own voices, each with who speaks it", async () => {
    await using local = await startFakeUpstream(piper());
    const voices = { anna: [`piper:${PIPER_VOICE}`, `piper:${PIPER_VOICE}#3`, "21m00Tcm4TlvDq8ikWAM"] };
    const { status, detail } = await check({ upstreams: [{ name: "piper", url: local.url }], voices });
    expect(status).toBe("ok");
    expect(detail).toContain(`; own voices: anna (${voices.anna.join(", ")})`);
  });

  it("names a voice that an engine does not list, and one that it has", async () => {
    await using local = await startFakeUpstream(piper());
    const voices = { anna: ["piper:en_US-lessack"] };
    expect(await check({ upstreams: [{ name: "piper", url: local.url }], voices })).toMatchObject({
      status: "warn",
      detail: expect.stringContaining("voice anna names piper:en_US-lessack, which piper does not list"),
      fix: expect.stringContaining(`such as piper:${PIPER_VOICE}`),
    });
  });

  it("a url that leads to something else, as its list of voices shows", async () => {
    await using page = await startFakeUpstream(() => htmlPage());
    const entries = [{ name: "kokoro", url: page.url }];
    expect(await check(entries)).toMatchObject({
      status: "warn",
      detail: expect.stringContaining("kokoro does not list its voices: upstream_protocol"),
      fix: expect.stringContaining("check the url of kokoro"),
    });
  });

  it("a key that is refused, and a service that fails", async () => {
    await using locked = await startFakeUpstream(() => ({ status: 401 }));
    await using broken = await startFakeUpstream(() => ({ status: 503 }));
    const entries = [
      { name: "locked", service: "openai", url: locked.url },
      { name: "broken", service: "openai", url: broken.url },
    ];
    expect(await check(entries)).toMatchObject({
      status: "fail",
      detail: expect.stringMatching(/refuses its key \(401\).*answers 503/),
    });
  });

  it.each([
    [401, "unauthorized", "fail", "refuses its key", "set another key for cartesia"],
    [402, "quota_exceeded", "warn", "upstream_forbidden", "see the account of cartesia"],
  ])("a key that only the list of voices is refused to: %i %s", async (status, code, is, detail, fix) => {
    await using cloud = await startFakeUpstream(({ path }) =>
      path === "/voices" ? jsonError(status, { error_code: code }) : jsonError(200, { ok: true }),
    );
    const found = await check([{ name: "cartesia", url: cloud.url, "key-file": join(folder, "key") }]);
    expect(found).toMatchObject({
      status: is,
      detail: expect.stringContaining(detail),
      fix: expect.stringContaining(fix),
    });
  });

  it("a file that is wrong", async () => {
    await expect(check([{ name: "piper" }])).rejects.toMatchObject({ code: "invalid_config" });
  });
});
