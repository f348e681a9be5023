/** The voice models of a folder: a folder each, as sherpa-onnx publishes them. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { SAMPLE_RATES } from "../../../audio/resample/resample.ts";
import { GatewayError } from "../../../errors.ts";
import { findLanguage, LISTED_LANGUAGES, type SpokenLanguage } from "../engine/languages.ts";
import type { ModelFiles, ModelKind } from "./engine-messages.ts";
import { type OnnxFacts, OnnxFault, readOnnxFile } from "./onnx-file.ts";

export interface VoiceModel {
  /** Its folder's. */
  readonly name: string;
  readonly files: ModelFiles;
  /** What it is called: Piper, Kokoro. */
  readonly family: string;
  /** Hz. */
  readonly sampleRate: number;
  /** Whether the same text gives the same samples, or can be made to. */
  readonly isRepeatable: boolean;
  /** At least one. */
  readonly voices: readonly NeuralVoice[];
}

export interface NeuralVoice {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  /** Which of the model's speakers, from 0. */
  readonly speaker: number;
  /** null: the model does not say what it speaks. */
  readonly language: SpokenLanguage | null;
  readonly gender: "female" | "male" | null;
}

const FIELD = { field: "voice-models" } as const;
const MAX_MODELS = 100;
const MAX_SPEAKERS = 1000;
/** It is a part of voice ids, and so of paths. */
const MODEL_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/;
const SPEAKER_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/;
/** Files of eSpeak NG's data that the engine would end its process for. */
const ESPEAK_FILES = ["phontab", "phonindex", "phondata", "intonations"];
const ESPEAK_FOLDER = "espeak-ng-data";
const ARCHIVE = "unpack its whole archive of sherpa-onnx there";

export function brokenModel({ name }: Pick<VoiceModel, "name">, reason: string): GatewayError {
  const message = `Setting voice-models: the model in folder "${name}" can't be loaded (${reason}), expected one for sherpa-onnx: ${ARCHIVE} again`;
  return new GatewayError("voice_model_broken", message, FIELD);
}

function incompleteModel(name: string, missing: string): GatewayError {
  const message = `Setting voice-models: folder "${name}" has no ${missing}, expected it beside the model: ${ARCHIVE}`;
  return new GatewayError("voice_model_incomplete", message, FIELD);
}

function invalidFolder(message: string, cause?: unknown): GatewayError {
  return new GatewayError("invalid_config", `Setting voice-models: ${message}`, { ...FIELD, cause });
}

/** Who names the folder of one model, or unpacks an archive without its folder, learns which one is meant. */
export function withoutModels(folder: string): GatewayError {
  return invalidFolder(
    isModelFolder(folder)
      ? `${folder} is the folder of one model, expected the folder that it is in: ${dirname(resolve(folder))}`
      : `there is no voice model in ${folder}, expected a folder for each, with its .onnx file`,
  );
}

/**
 * All models of the folder, by name. Throws GatewayError `invalid_config`, `voice_model_incomplete` or `voice_model_broken` of the
 * first thing that is not in order; that the engine can load them is not known yet.
 */
export function readVoiceModels(folder: string): VoiceModel[] {
  const names = modelFoldersOf(folder);
  if (names.length === 0) throw withoutModels(folder);
  if (names.length > MAX_MODELS) {
    throw invalidFolder(`there are ${names.length} models in ${folder}, expected at most ${MAX_MODELS}`);
  }
  const models = names.map((name) => readVoiceModel(folder, name));
  const ids = new Set<string>();
  for (const { id } of models.flatMap(({ voices }) => voices)) {
    if (ids.has(id))
      throw invalidFolder(`two models have a voice "${id}", expected one: rename one's folder`);
    ids.add(id);
  }
  return models;
}

/** Names of the folders that have something of a voice model, sorted. Throws GatewayError `invalid_config`. */
export function modelFoldersOf(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => isModelFolder(join(folder, name)))
      .sort();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw invalidFolder(`${folder} can't be read (${reason}), expected a folder of voice models`, cause);
  }
}

function isModelFolder(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return false;
  return readdirSync(path).some((name) => name.endsWith(".onnx") || name === "tokens.txt");
}

function hasContent(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Throws as readVoiceModels does. */
export function readVoiceModel(folder: string, name: string): VoiceModel {
  if (!MODEL_NAME.test(name)) {
    throw invalidFolder(
      `the folder "${name}" can't name voices, expected letters, digits, ".", "_" and "-": rename it`,
    );
  }
  const files = readdirSync(join(folder, name)).sort();
  const onnx = modelFileOf(files);
  if (onnx === undefined) throw incompleteModel(name, ".onnx file");
  // Without a token in it the engine starts, and says nothing of any text.
  if (!hasContent(join(folder, name, "tokens.txt"))) throw incompleteModel(name, "tokens.txt");
  const facts = readFacts(join(folder, name, onnx), name);
  const kind = kindOf(facts.metadata, name);
  const place = { folder, name, names: files };
  const sampleRate = numberOf(facts.metadata, "sample_rate");
  if (!SAMPLE_RATES.includes(sampleRate)) {
    throw brokenModel(
      { name },
      `its metadata have sample_rate ${facts.metadata.get("sample_rate") ?? "not at all"}`,
    );
  }
  return {
    name,
    family: familyOf(kind, facts.metadata),
    files: {
      kind,
      model: join(folder, name, onnx),
      tokens: join(folder, name, "tokens.txt"),
      ...partsOf(kind, facts, place),
    },
    sampleRate,
    isRepeatable: kind === "vits" || !facts.isRandom,
    voices: voicesOf(name, facts.metadata),
  };
}

/** The one of full precision, where there are several. */
function modelFileOf(files: readonly string[]): string | undefined {
  const models = files.filter((file) => file.endsWith(".onnx"));
  return models.find((file) => !/int8|fp16|\.q\d/.test(file)) ?? models[0];
}

function readFacts(path: string, name: string): OnnxFacts {
  try {
    return readOnnxFile(path);
  } catch (thrown) {
    if (thrown instanceof OnnxFault) throw brokenModel({ name }, `its .onnx file ${thrown.message}`);
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw brokenModel({ name }, `its .onnx file can't be read: ${reason}`);
  }
}

function kindOf(metadata: OnnxFacts["metadata"], name: string): ModelKind {
  const type = metadata.get("model_type") ?? "";
  if (type.startsWith("kokoro")) return "kokoro";
  if (type.startsWith("kitten")) return "kitten";
  if (type.includes("vits") || type.includes("melo")) return "vits";
  const reason =
    type === ""
      ? "its .onnx file has no metadata for sherpa-onnx"
      : `it is of the kind "${type.slice(0, 40)}"`;
  throw brokenModel({ name }, `${reason}; the kinds are vits, kokoro and kitten-tts`);
}

function familyOf(kind: ModelKind, metadata: OnnxFacts["metadata"]): string {
  if (kind !== "vits") return kind === "kokoro" ? "Kokoro" : "Kitten";
  return metadata.get("comment")?.includes("piper") ? "Piper" : "VITS";
}

interface ModelPlace {
  readonly folder: string;
  readonly name: string;
  /** What is in the model's folder. */
  readonly names: readonly string[];
}

/** The files beside the model and its tokens. */
function partsOf(kind: ModelKind, { metadata }: OnnxFacts, place: ModelPlace): Partial<ModelFiles> {
  const rules = listOf(place, /^[\w-]+\.fst$/);
  const ruleFsts = rules === undefined ? {} : { ruleFsts: rules };
  if (kind === "vits") return { ...vitsPartsOf(metadata, place), ...ruleFsts };
  if (!place.names.includes("voices.bin")) throw incompleteModel(place.name, "voices.bin");
  requireVoiceData(metadata, place);
  const dataDir = espeakDataOf(place);
  if (dataDir === undefined) throw incompleteModel(place.name, `folder ${ESPEAK_FOLDER} with all its files`);
  const lexicon = kind === "kokoro" ? listOf(place, /^lexicon[\w-]*\.txt$/) : undefined;
  return {
    voices: join(place.folder, place.name, "voices.bin"),
    dataDir,
    ...(lexicon === undefined ? {} : { lexicon }),
    ...(kind === "kokoro" ? ruleFsts : {}),
  };
}

function vitsPartsOf(metadata: OnnxFacts["metadata"], place: ModelPlace): Partial<ModelFiles> {
  if (metadata.get("frontend") === "characters") return {};
  const lexicon = listOf(place, /^lexicon\.txt$/);
  const isSpelled = /piper|coqui|icefall/.test(metadata.get("comment") ?? "");
  const dataDir = isSpelled ? espeakDataOf(place) : undefined;
  if (dataDir !== undefined) return { dataDir };
  if (lexicon !== undefined) return { lexicon };
  throw incompleteModel(place.name, isSpelled ? `folder ${ESPEAK_FOLDER} with all its files` : "lexicon.txt");
}

function listOf({ folder, name, names }: ModelPlace, pattern: RegExp): string | undefined {
  const found = names.filter((file) => pattern.test(file) && hasContent(join(folder, name, file)));
  return found.length === 0 ? undefined : found.map((file) => join(folder, name, file)).join(",");
}

/** Its own, or that of all models of the folder. */
function espeakDataOf({ folder, name }: ModelPlace): string | undefined {
  return [join(folder, name, ESPEAK_FOLDER), join(folder, ESPEAK_FOLDER)].find((path) =>
    ESPEAK_FILES.every((file) => existsSync(join(path, file))),
  );
}

/** The engine ends its process for a file of another length. */
function requireVoiceData(metadata: OnnxFacts["metadata"], { folder, name }: ModelPlace): void {
  const dimensions = (metadata.get("style_dim") ?? "").split(",").map(Number);
  const expected = dimensions.reduce((product, size) => product * size, 4 * numberOf(metadata, "n_speakers"));
  const { size } = statSync(join(folder, name, "voices.bin"));
  if (size !== expected) throw brokenModel({ name }, `its voices.bin has ${size} bytes, not ${expected}`);
}

function numberOf(metadata: OnnxFacts["metadata"], key: string): number {
  const value = Number(metadata.get(key));
  return Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

function voicesOf(model: string, metadata: OnnxFacts["metadata"]): NeuralVoice[] {
  const count = Math.min(MAX_SPEAKERS, Math.max(1, numberOf(metadata, "n_speakers")));
  const names = (metadata.get("speaker_names") ?? "").split(",");
  return Array.from({ length: count }, (_, speaker): NeuralVoice => {
    const given = names[speaker] ?? "";
    const name = SPEAKER_NAME.test(given) ? given : String(speaker);
    const alone = { id: model, name: model };
    return {
      ...(count === 1 ? alone : { id: `${model}.${name}`, name: `${name} (${model})` }),
      model,
      speaker,
      ...speakerOf(given, metadata),
    };
  });
}

/** Kokoro's speakers begin with their language and gender: bf_emma. */
const KOKORO_NAME = /^(?<language>[abefhijpz])(?<gender>[fm])(?:_|$)/;
const KOKORO_LANGUAGES: Readonly<Record<string, string>> = {
  a: "en-US",
  b: "en-GB",
  e: "es",
  f: "fr",
  h: "hi",
  i: "it",
  j: "ja",
  p: "pt-BR",
  z: "zh",
};

function speakerOf(name: string, metadata: OnnxFacts["metadata"]): Pick<NeuralVoice, "language" | "gender"> {
  const groups = metadata.get("model_type")?.startsWith("kokoro")
    ? KOKORO_NAME.exec(name)?.groups
    : undefined;
  if (groups === undefined) return { language: languageOf(metadata), gender: null };
  return {
    language: languageNamed(KOKORO_LANGUAGES[groups.language ?? ""] ?? ""),
    gender: groups.gender === "f" ? "female" : "male",
  };
}

/** By eSpeak's name of its voice, else by the language's English name or code. */
function languageOf(metadata: OnnxFacts["metadata"]): SpokenLanguage | null {
  const [voice = "", language = ""] = [metadata.get("voice"), metadata.get("language")];
  const named = LISTED_LANGUAGES.find(({ name }) => language.toLowerCase().startsWith(name.toLowerCase()));
  return languageNamed(voice) ?? languageNamed(named?.language_id ?? "") ?? languageNamed(language);
}

function languageNamed(code: string): SpokenLanguage | null {
  for (const one of [code, code.replace(/[-_].*/, ""), shortCodeOf(code)]) {
    const found = findLanguage(one);
    if (found !== undefined) return { code: found.code, accent: found.accent };
  }
  return null;
}

/** `de` of `deu`. */
function shortCodeOf(code: string): string {
  try {
    return Intl.getCanonicalLocales(code)[0] ?? "";
  } catch {
    // It is no language code. The caller looks for an empty text.
    return "";
  }
}
