/** What `doctor` says of a folder of voice models, without the package that speaks them. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkVoiceModels } from "../../../src/cli/doctor/voice-models-check.ts";
import { settingsFrom } from "../../../src/cli/settings.ts";
import { onnxModel } from "../../kit/onnx-model.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "voicewire-models-"));
  mkdirSync(join(folder, "amy"));
  writeFileSync(join(folder, "amy", "model.onnx"), "<!doctype html>");
});
afterAll(() => rmSync(folder, { recursive: true }));

const { config } = settingsFrom({});
const check = (voiceModels: string) => checkVoiceModels({ ...config, voiceModels });

/** A folder with one model, whose lexicon that is. */
function modelWith(lexicon: string): string {
  const parent = mkdtempSync(join(folder, ".lexicon-"));
  const model = join(parent, "ship");
  mkdirSync(model);
  const metadata = {
    model_type: "vits",
    comment: "words",
    language: "English",
    n_speakers: 1,
    sample_rate: 22_050,
  };
  const sounds = [new Float32Array(10)];
  writeFileSync(join(model, "model.onnx"), onnxModel({ metadata, sounds, speakers: 1, isNoisy: false }));
  writeFileSync(join(model, "tokens.txt"), "_ 0\nb 1\noa 2\nt 3\nuh 4\ns 5\n! 6\n");
  writeFileSync(join(model, "lexicon.txt"), lexicon);
  return parent;
}

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
      detail: expect.stringMatching(/folder "amy" has no tokens\.txt.* \(voice_model_incomplete\)/),
      fix: expect.stringContaining("mend the folder amy"),
    });
  });

  it("says of the folder of one model which folder is meant", async () => {
    expect(await check(join(folder, "amy"))).toMatchObject({
      status: "fail",
      detail: expect.stringContaining(`expected the folder that it is in: ${folder}`),
    });
  });

  it.each([
    ["no word", "<!doctype html>", /line 2 of its lexicon\.txt has "html>", which is not in tokens\.txt/],
    ["phonemes that the model has not", "ship S IH P", /line 2 of its lexicon\.txt has "S", which/],
    ["no phonemes", "ship", /line 2 of its lexicon\.txt has no phonemes behind its word/],
  ])("refuses a lexicon that has a line with %s, and names file and line", async (_, line, fault) => {
    const result = await check(modelWith(`boat b oa t\n${line}\nbus b uh s\n`));
    expect(result).toMatchObject({ status: "fail", fix: expect.stringContaining("mend the folder ship") });
    expect(result.detail).toMatch(fault);
    expect(result.detail).toMatch(/\(voice_model_broken\)/);
  });

  it("takes a lexicon with tones, blank lines and one wrong line among two hundred", async () => {
    const right = Array.from({ length: 200 }, (_, index) => `word${index} b oa t 0 1 0`);
    const lexicon = ["ship S IH P", "", ...right].join("\r\n");
    expect((await check(modelWith(`${lexicon}\n`))).detail).not.toMatch(/lexicon/);
  });

  it.each(["/nowhere", tmpdir()])("says where models are had: %s has none", async (empty) => {
    const result = await check(empty === "/nowhere" ? empty : mkdtempSync(join(folder, ".empty-")));
    expect(result).toMatchObject({ status: "fail", fix: expect.stringContaining("releases/tag/tts-models") });
  });
});
