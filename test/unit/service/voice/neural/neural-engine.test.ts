/** The engine's process, with a scripted package in place of sherpa-onnx-node: crashes, hangs, bad models, and what it may not tell. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { NeuralEngine } from "../../../../../src/service/voice/neural/neural-engine.ts";
import { requireSherpa } from "../../../../../src/service/voice/neural/sherpa-package.ts";
import type { EngineAudio, EnginePiece } from "../../../../../src/service/voice/neural/speech-engine.ts";
import type { VoiceModel } from "../../../../../src/service/voice/neural/voice-models.ts";
import { watchedLog } from "../../../../helpers/watched-log.ts";

/** A model does what its file is called, a text what it says. */
const PACKAGE = `
exports.OfflineTts = class {
  constructor({ model }) {
    const { model: file, noiseScale } = model.vits;
    if (file === "abort") { console.error("terminate called\\n  what():  Bad node"); process.abort(); }
    if (file === "bytes") { console.error("Error: \\u0007\\ufffd\\u001b[2Jtoken\\u0000"); process.exit(255); }
    if (file === "exit") { console.error("/src/lexicon.cc:Load:12 Bad lexicon"); process.exit(255); }
    if (file === "refuse") throw new Error("Please check your config!");
    this.sampleRate = 16000;
    this.numSpeakers = 2;
    this.noise = noiseScale ?? 1;
  }
  generate({ text, sid, generationConfig: { speed } }) {
    console.error("Unknown word: " + text);
    if (text === "abort") process.abort();
    if (text === "hang") for (;;);
    if (text === "nothing") throw new Error("TTS generation failed");
    return { samples: new Float32Array([sid, speed / 2, this.noise, 2]), sampleRate: 16000 };
  }
};
`;

const modelOf = (name: string): VoiceModel => ({
  name,
  files: { kind: "vits", model: name, tokens: "tokens.txt" },
  family: "VITS",
  sampleRate: 16_000,
  isRepeatable: true,
  voices: [],
});

let folder = "";
let packageFile = "";
const engines: NeuralEngine[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "voicewire-engine-"));
  mkdirSync(join(folder, "node_modules", "sherpa-onnx-node"), { recursive: true });
  packageFile = join(folder, "node_modules", "sherpa-onnx-node", "index.js");
  writeFileSync(packageFile, PACKAGE);
});
afterEach(() => Promise.all(engines.splice(0).map((engine) => engine.close())));
afterAll(() => rmSync(folder, { recursive: true }));

function openEngine({ file = packageFile, speakMs = 60_000 } = {}) {
  const logged: unknown[] = [];
  const models = ["good", "abort", "bytes", "exit", "refuse"].map(modelOf);
  const log = { ...watchedLog, error: (...line: unknown[]) => logged.push(line) };
  const deadlines = { loadMs: 60_000, speakMs };
  const engine = new NeuralEngine({ models, packageFile: file, log, deadlines });
  engines.push(engine);
  const speak = (text: string, piece: Partial<EnginePiece> = {}) =>
    new Promise<EngineAudio>((resolve, reject) => {
      const asked = { model: "good", speaker: 0, text, speed: 1, isRepeatable: false, ...piece };
      engine.speak(asked, { spoken: resolve, failed: reject });
    });
  return { engine, speak, logged };
}

describe("the neural engine", () => {
  it("is found in the folder of the models, and asked for where it is not", () => {
    expect(requireSherpa(folder)).toBe(packageFile);
    expect(() => requireSherpa(tmpdir())).toThrowError(
      expect.objectContaining({
        code: "voice_engine_missing",
        field: "voice-models",
        message: expect.stringContaining('"npm install sherpa-onnx-node@'),
      }),
    );
  });

  it("speaks pieces in their order: speaker, speed, noise, and no sample beyond full scale", async () => {
    const { speak } = openEngine();
    const spoken = await Promise.all([
      speak("a"),
      speak("b", { speaker: 1, speed: 0.8, isRepeatable: true }),
    ]);
    expect(spoken.map(({ samples }) => [...samples])).toEqual([
      [0, 16_384, 32_767, 32_767],
      [32_767, 13_107, 0, 32_767],
    ]);
  });

  it("is silent where it can say nothing of a text", async () => {
    expect((await openEngine().speak("nothing")).samples).toHaveLength(0);
  });

  it.each([
    ["abort", /"abort" can't be loaded \(Bad node\)/],
    ["exit", /"exit" can't be loaded \(Bad lexicon\)/],
    // Bytes that a terminal would act on are not shown.
    ["bytes", /"bytes" can't be loaded \(Error: {2}\[2Jtoken\)/],
    ["refuse", /"refuse" can't be loaded \(Please check your config!\)/],
  ])("says why it can't load a model, %s, and goes on with others", async (model, message) => {
    const { engine, speak } = openEngine();
    const failure = {
      code: "voice_model_broken",
      field: "voice-models",
      message: expect.stringMatching(message),
    };
    await expect(engine.load(modelOf(model))).rejects.toMatchObject(failure);
    await expect(speak("a", { model })).rejects.toMatchObject(failure);
    expect((await speak("a")).samples).toHaveLength(4);
  });

  it("fails the piece in which it ended, is started again, and never tells its text", async () => {
    const { engine, speak, logged } = openEngine();
    const [first, second] = await Promise.allSettled([speak("abort"), speak("a secret")]);
    expect(first).toMatchObject({
      reason: { code: "internal", message: expect.stringContaining("SIGABRT") },
    });
    expect(second.status).toBe("fulfilled");
    expect(engine.restarts).toBe(1);
    expect(JSON.stringify(logged)).toContain("SIGABRT");
    expect(JSON.stringify([logged, first])).not.toMatch(/Unknown word|secret/);
  });

  it("is killed where it hangs in a piece", async () => {
    const { speak } = openEngine({ speakMs: 300 });
    await expect(speak("hang")).rejects.toMatchObject({ message: expect.stringContaining("SIGKILL") });
  });

  it("says that its package does not load", async () => {
    const broken = join(folder, "broken.js");
    writeFileSync(broken, 'throw new Error("Could not find libonnxruntime.so\\nTried ...");');
    const { engine, speak } = openEngine({ file: broken });
    const failure = {
      code: "voice_engine_missing",
      message: expect.stringContaining("Could not find libonnxruntime.so;"),
    };
    await expect(engine.load(modelOf("good"))).rejects.toMatchObject(failure);
    await expect(speak("a")).rejects.toMatchObject(failure);
  });

  it("fails what waits when it is closed, and ends its process", async () => {
    const { engine, speak } = openEngine();
    await speak("a");
    const waiting = Promise.allSettled([speak("hang"), speak("b")]);
    await new Promise((resolve) => setImmediate(resolve));
    await engine.close();
    expect((await waiting).map((one) => one.status === "rejected" && one.reason.code)).toEqual([
      "draining",
      "draining",
    ]);
  });
});
