/** What `doctor` says of a folder of voice models, without the package that speaks them. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkVoiceModels } from "../../../src/cli/doctor/voice-models-check.ts";
import { settingsFrom } from "../../../src/cli/settings.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "voicewire-models-"));
  mkdirSync(join(folder, "amy"));
  writeFileSync(join(folder, "amy", "model.onnx"), "<!doctype html>");
});
afterAll(() => rmSync(folder, { recursive: true }));

const { config } = settingsFrom({});
const check = (voiceModels: string) => checkVoiceModels({ ...config, voiceModels });

describe("doctor of voice models", () => {
  it("is content without any, and says where to read on", async () => {
    expect(await check("")).toMatchObject({
      status: "ok",
      detail: expect.stringContaining("docs/service.md"),
    });
  });

  it("names each model that is not in order, and what to do", async () => {
    const result = await check(folder);
    expect(result).toMatchObject({
      status: "fail",
      detail: expect.stringContaining('folder "amy" has no tokens.txt'),
      fix: expect.stringContaining("mend the folder amy"),
    });
  });

  it("says of the folder of one model which folder is meant", async () => {
    expect(await check(join(folder, "amy"))).toMatchObject({
      status: "fail",
      detail: expect.stringContaining(`expected the folder that it is in: ${folder}`),
    });
  });

  it.each(["/nowhere", tmpdir()])("says where models are had: %s has none", async (empty) => {
    const result = await check(empty === "/nowhere" ? empty : mkdtempSync(join(folder, ".empty-")));
    expect(result).toMatchObject({ status: "fail", fix: expect.stringContaining("releases/tag/tts-models") });
  });
});
