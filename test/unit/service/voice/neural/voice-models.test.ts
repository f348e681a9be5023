/** Folders of voice models: whose voices there are, and what is said of folders that are not in order. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readVoiceModels } from "../../../../../src/service/voice/neural/voice-models.ts";
import { onnxModel } from "../../../../kit/onnx-model.ts";

type Metadata = Readonly<Record<string, string | number>>;

const PIPER: Metadata = {
  model_type: "vits",
  comment: "piper",
  language: "German",
  voice: "de",
  n_speakers: 1,
  sample_rate: 22_050,
};
const KOKORO: Metadata = {
  model_type: "kokoro",
  language: "multi-lang, e.g., English, Chinese",
  voice: "en-us",
  n_speakers: 3,
  sample_rate: 24_000,
  speaker_names: "af_heart,bm_george,zf_xiaobei",
  style_dim: "2,1,4",
};
const ESPEAK = ["phontab", "phonindex", "phondata", "intonations"];
let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "voicewire-models-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, metadata: Metadata, files: readonly string[], { isNoisy = true } = {}): void {
  mkdirSync(join(folder, name), { recursive: true });
  const model = onnxModel({ metadata, sounds: [new Float32Array(10)], speakers: 1, isNoisy });
  writeFileSync(join(folder, name, "model.onnx"), model);
  for (const file of files) put(`${name}/${file}`, "a 1\n");
}

function put(path: string, content: string | Uint8Array): void {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), content);
}

function putEspeakData(place: string): void {
  for (const file of ESPEAK) put(join(place, "espeak-ng-data", file), "x");
}

describe("a folder of voice models", () => {
  it("has a voice for each model of one speaker, by its folder's name", () => {
    write("vits-piper-de_DE-thorsten-low", PIPER, ["tokens.txt"]);
    putEspeakData("vits-piper-de_DE-thorsten-low");
    const [model] = readVoiceModels(folder);
    expect(model).toMatchObject({ family: "Piper", sampleRate: 22_050, isRepeatable: true });
    expect(model?.files.dataDir).toBe(join(folder, "vits-piper-de_DE-thorsten-low", "espeak-ng-data"));
    expect(model?.voices).toEqual([
      expect.objectContaining({
        id: "vits-piper-de_DE-thorsten-low",
        speaker: 0,
        language: { code: "de", accent: null },
      }),
    ]);
  });

  it("has a voice for each speaker, with the language and gender that Kokoro's names say", () => {
    write("kokoro", KOKORO, ["tokens.txt", "lexicon-us-en.txt", "lexicon-zh.txt", "date-zh.fst"], {
      isNoisy: false,
    });
    put("kokoro/voices.bin", new Uint8Array(3 * 2 * 4 * 4));
    putEspeakData("kokoro");
    const [model] = readVoiceModels(folder);
    expect(model?.isRepeatable).toBe(true);
    expect(model?.files.lexicon).toBe(
      ["lexicon-us-en.txt", "lexicon-zh.txt"].map((file) => join(folder, "kokoro", file)).join(","),
    );
    expect(model?.voices.map(({ id, language, gender }) => [id, language?.code, gender])).toEqual([
      ["kokoro.af_heart", "en", "female"],
      ["kokoro.bm_george", "en", "male"],
      ["kokoro.zf_xiaobei", "zh", "female"],
    ]);
  });

  it("takes one folder of eSpeak's data for all of its models", () => {
    write("one", PIPER, ["tokens.txt"]);
    putEspeakData(".");
    expect(readVoiceModels(folder)[0]?.files.dataDir).toBe(join(folder, "espeak-ng-data"));
  });

  it("knows that a model varies, and can't be kept from it", () => {
    write("kokoro", KOKORO, ["tokens.txt"]);
    put("kokoro/voices.bin", new Uint8Array(3 * 2 * 4 * 4));
    putEspeakData("kokoro");
    expect(readVoiceModels(folder)[0]?.isRepeatable).toBe(false);
  });

  it.each([
    ["en-gb", "English", "en"],
    ["", "deu", "de"],
    ["cmn", "Chinese", "zh"],
    ["", "Klingon", null],
  ])("speaks the language of its metadata: voice %j, language %j", (voice, language, code) => {
    write("one", { ...PIPER, voice, language }, ["tokens.txt"]);
    putEspeakData(".");
    expect(readVoiceModels(folder)[0]?.voices[0]?.language?.code ?? null).toBe(code);
  });

  it("passes over other files and folders", () => {
    write("one", PIPER, ["tokens.txt"]);
    putEspeakData(".");
    put("node_modules/x/index.js", "");
    put("notes.txt", "");
    expect(readVoiceModels(folder)).toHaveLength(1);
  });
});

describe("a folder of voice models that is not in order", () => {
  const cases: readonly (readonly [string, string, () => void, RegExp])[] = [
    ["without any", "invalid_config", () => undefined, /no voice model/],
    [
      "that is the folder of one model",
      "invalid_config",
      () => write(".", PIPER, ["tokens.txt"]),
      /is the folder of one model, expected the folder that it is in/,
    ],
    [
      "with a model with an empty file of tokens",
      "voice_model_incomplete",
      () => {
        write("m", PIPER, []);
        put("m/tokens.txt", "");
      },
      /"m" has no tokens\.txt/,
    ],
    [
      "with a model of words with an empty lexicon",
      "voice_model_incomplete",
      () => {
        write("m", { ...PIPER, comment: "ljspeech" }, ["tokens.txt"]);
        put("m/lexicon.txt", "");
      },
      /no lexicon\.txt/,
    ],
    [
      "with a model without tokens",
      "voice_model_incomplete",
      () => write("m", PIPER, []),
      /"m" has no tokens\.txt/,
    ],
    [
      "with tokens without a model",
      "voice_model_incomplete",
      () => put("m/tokens.txt", "a 1\n"),
      /"m" has no \.onnx file/,
    ],
    [
      "with a Piper model without eSpeak's data",
      "voice_model_incomplete",
      () => write("m", PIPER, ["tokens.txt"]),
      /no folder espeak-ng-data/,
    ],
    [
      "with eSpeak's data of which a file is missing",
      "voice_model_incomplete",
      () => {
        write("m", PIPER, ["tokens.txt"]);
        put("m/espeak-ng-data/phontab", "x");
      },
      /no folder espeak-ng-data with all its files/,
    ],
    [
      "with a model of words without a lexicon",
      "voice_model_incomplete",
      () => write("m", { ...PIPER, comment: "ljspeech" }, ["tokens.txt"]),
      /no lexicon\.txt/,
    ],
    [
      "with a Kokoro model without its voices",
      "voice_model_incomplete",
      () => write("m", KOKORO, ["tokens.txt"]),
      /no voices\.bin/,
    ],
    [
      "with voices that are cut off",
      "voice_model_broken",
      () => {
        write("m", KOKORO, ["tokens.txt"]);
        put("m/voices.bin", new Uint8Array(90));
      },
      /voices\.bin has 90 bytes, not 96/,
    ],
    [
      "with a page in place of the model",
      "voice_model_broken",
      () => {
        put("m/model.onnx", "<!doctype html>");
        put("m/tokens.txt", "a 1\n");
      },
      /"m" can't be loaded \(its \.onnx file is/,
    ],
    [
      "with a model for another runtime",
      "voice_model_broken",
      () => write("m", {}, ["tokens.txt"]),
      /no metadata for sherpa-onnx/,
    ],
    [
      "with a model of another kind",
      "voice_model_broken",
      () => write("m", { ...PIPER, model_type: "matcha-tts" }, ["tokens.txt"]),
      /of the kind "matcha-tts"/,
    ],
    [
      "with a rate that is none",
      "voice_model_broken",
      () => write("m", { ...PIPER, sample_rate: 12 }, ["tokens.txt"]),
      /sample_rate 12/,
    ],
    [
      "with a name that can't be part of a path",
      "invalid_config",
      () => write("my voice", PIPER, ["tokens.txt"]),
      /"my voice" can't name voices/,
    ],
  ];

  it.each(cases)("%s: %s", (_, code, prepare, message) => {
    prepare();
    expect(() => readVoiceModels(folder)).toThrowError(
      expect.objectContaining({ code, field: "voice-models", message: expect.stringMatching(message) }),
    );
  });

  it("that is not there: invalid_config", () => {
    expect(() => readVoiceModels(join(folder, "nowhere"))).toThrowError(
      expect.objectContaining({ code: "invalid_config", field: "voice-models" }),
    );
  });
});
