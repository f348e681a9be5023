/**
 * The request of a speech endpoint in two passes, in the interface's order: the shape of query and body (422, before
 * the key is looked at), then what it asks for (400, 403, 404, after).
 */

import { ApiError } from "../../api-error.ts";
import type { DictionaryStore } from "../../store/dictionaries.ts";
import type { Normalization } from "../../text/normalizer.ts";
import { findPhonemeTags } from "../../text/phoneme-tags.ts";
import { Lexicon, type PronunciationRule, type Respelling } from "../../text/pronunciation.ts";
import { findLanguage, type SpokenLanguage } from "../../voice/engine/languages.ts";
import type { JobInput, JobSpec, NeuralSpeaker } from "../../voice/messages.ts";
import { endsPiece, findMarkup, leftOutTags } from "../../voice/plan/markup.ts";
import { isAudible } from "../../voice/plan/spoken.ts";
import type { ListedNeuralVoice } from "../context.ts";
import type { KnownVoice } from "../known-voice.ts";
import { requireFormat } from "../output-format.ts";
import { enterpriseOnly, requireLoggable, type Tier } from "../tiers.ts";
import { type AudioEffects, requireNoEffects } from "./audio-effects.ts";
import { findModel, languagesOf, type Model } from "./models-catalogue.ts";
import { type AskedNeighbours, acceptNeighbours, type NeighbourRules } from "./neighbours.ts";
import { type DictionaryLocator, MAX_LIST, requireSeed, SPEED, STYLE } from "./speech-fields.ts";

/** What every speech endpoint has, read but not yet judged. */
export interface SpeechShape extends AskedNeighbours {
  readonly outputFormat: string;
  /** `optimize_streaming_latency`; a dialogue has none. */
  readonly latencyLevel: number | undefined;
  readonly modelId: string;
  readonly languageCode: string | undefined;
  readonly seed: number | undefined;
  readonly normalization: Normalization;
  /** apply_language_text_normalization. */
  readonly readsJapanese: boolean;
  readonly dictionaries: readonly DictionaryLocator[];
  readonly inputs: readonly { readonly text: string; readonly voiceId: string }[];
  readonly stability: number | undefined;
  readonly style: number | undefined;
  readonly speed: number | undefined;
  readonly similarity: number | undefined;
  readonly speakerBoost: boolean | undefined;
  readonly effects: AudioEffects;
}

export interface EndpointKind {
  readonly isDialogue: boolean;
  readonly isStream: boolean;
  readonly wantsTiming: boolean;
}

const MAX_DIALOGUE_VOICES = 10;

/** What is left to do when everything is in order. */
interface AcceptedSpeech {
  readonly spec: JobSpec;
  readonly model: Model;
  /** Characters billed. */
  readonly cost: number;
  /** Tags that the voice does nothing of. */
  readonly leftOutTags: readonly string[];
}

/** Throws the ApiError of the first thing that is not in order. */
export function acceptSpeech(
  shape: SpeechShape,
  options: {
    readonly kind: EndpointKind;
    readonly tier: Tier;
    readonly wantsTruth: boolean;
    readonly findVoice: (id: string) => KnownVoice | undefined;
    readonly findText: NeighbourRules["findText"];
    readonly findRules: DictionaryStore["rules"];
  },
): AcceptedSpeech {
  const { kind, tier, findText } = options;
  requireFormat(shape.outputFormat, { isStream: kind.isStream, tier });
  const model = requireModel(shape.modelId, kind);
  requirePlan(shape, model, tier);
  const voices = shape.inputs.map(({ voiceId }) => requireVoice(options.findVoice(voiceId), voiceId));
  if (kind.isDialogue) requireDialogue(shape.inputs);
  requireText(shape.inputs, model);
  requireSettings(shape);
  requireNoEffects(shape.effects);
  requireLists(shape);
  const neighbours = acceptNeighbours(shape, { isDialogue: kind.isDialogue, model, findText });
  const asked = requireLanguage(shape, model);
  for (const voice of voices) requireOfModel(voice, { asked, seed: shape.seed });
  const lexicon = requireLexicon(shape.dictionaries, options.findRules);
  const inputs = shape.inputs.map((input, index): JobInput => {
    const { sound, neural, language: own = null } = voices[index] ?? {};
    const language = neural === undefined ? (asked ?? languageWith(model, own)) : own;
    return {
      ...input,
      languageCode: language?.code ?? null,
      respellings: respellingsOf(input.text, lexicon),
      ...(sound === undefined ? {} : { sound }),
      ...(neural === undefined ? {} : { neural: speakerOf(neural) }),
      ...(typeof language?.accent === "string" ? { accent: language.accent } : {}),
    };
  });
  const spec = { ...specOf(shape, inputs, { model, ...options }), neighbours };
  return {
    spec,
    leftOutTags: [...new Set(inputs.flatMap(({ text }) => leftOutTags(text, spec)))],
    model,
    cost: Math.ceil(billedLength(inputs, spec) * model.costFactor),
  };
}

function specOf(
  shape: SpeechShape,
  inputs: readonly JobInput[],
  options: { readonly kind: EndpointKind; readonly model: Model; readonly wantsTruth: boolean },
): JobSpec {
  return {
    inputs,
    // A WAV file is PCM behind a header, which is written when the length is known.
    format: shape.outputFormat.replace(/^wav_/, "pcm_"),
    wantsTiming: options.kind.wantsTiming,
    wantsTruth: options.kind.wantsTiming && options.wantsTruth,
    normalization: shape.normalization,
    readsJapanese: shape.readsJapanese,
    audioTags: options.kind.isDialogue || options.model.isExpressive,
    speed: shape.speed ?? 1,
    stability: shape.stability ?? 0.5,
    style: shape.style ?? 0,
    timbre: { similarity: shape.similarity, speakerBoost: shape.speakerBoost },
    seed: shape.seed,
    latencyLevel: shape.latencyLevel,
  };
}

function requireModel(id: string, kind: EndpointKind): Model {
  const model = findModel(id);
  if (model === undefined) {
    const message = `A model with model ID ${id.slice(0, 64)} does not exist.`;
    throw ApiError.unfit("unsupported_model", message, { status: "model_not_found", param: "model_id" });
  }
  if (!model.canSpeak) {
    const message = `Model '${id}' can not be used for text to speech.`;
    throw ApiError.unfit("unsupported_model", message, {
      status: "model_can_not_do_text_to_speech",
      param: "model_id",
    });
  }
  if (kind.isDialogue && !model.isExpressive) {
    throw ApiError.unfit("unsupported_model", `Model '${id}' can not be used for text to dialogue.`, {
      param: "model_id",
    });
  }
  return model;
}

function requirePlan(shape: SpeechShape, model: Model, tier: Tier): void {
  if (tier === "enterprise") return;
  requireLoggable(shape.isLogged, tier);
  if (shape.normalization === "on" && /_v2_5$/.test(model.id)) {
    const message = `apply_text_normalization 'on' is only available to enterprise customers with ${model.id}.`;
    throw enterpriseOnly(message, "apply_text_normalization");
  }
}

function requireVoice(voice: KnownVoice | undefined, id: string): KnownVoice {
  if (voice === undefined) throw ApiError.notFound("voice", id);
  return voice;
}

function requireDialogue(inputs: SpeechShape["inputs"]): void {
  if (inputs.length === 0)
    throw ApiError.unfit("invalid_parameters", "At least one input is required.", { param: "inputs" });
  const voices = new Set(inputs.map((input) => input.voiceId)).size;
  if (voices > MAX_DIALOGUE_VOICES) {
    const message = `A dialogue can have at most ${MAX_DIALOGUE_VOICES} different voices, but ${voices} were given.`;
    throw ApiError.unfit("invalid_parameters", message, { param: "inputs" });
  }
}

/** The characters of the inputs that ask for something to be heard, be it a pause. */
function billedLength(inputs: readonly JobInput[], options: Pick<JobSpec, "audioTags">): number {
  return inputs.reduce((sum, input) => sum + (isHeard(input, options) ? charactersOf(input.text) : 0), 0);
}

function isHeard({ text, respellings = [] }: JobInput, options: Pick<JobSpec, "audioTags">): boolean {
  const markup = findMarkup(text, options);
  if (respellings.length > 0 || markup.some(endsPiece)) return true;
  const starts = [0, ...markup.map(({ end }) => end)];
  return starts.some((start, index) => isAudible(text.slice(start, markup[index]?.start)));
}

/** Code points. */
function charactersOf(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Throws the 400 of empty text, and of too much. A dialogue is held to its model's limit, not to the advised 2000. */
function requireText(inputs: SpeechShape["inputs"], model: Model): void {
  let length = 0;
  for (const { text } of inputs) {
    if (text.trim() === "")
      throw ApiError.unfit("empty_text", "The text is empty, expected something to say.", { param: "text" });
    length += charactersOf(text);
  }
  if (length > model.maxCharacters) {
    const message =
      `The text has ${length} characters, which exceeds the maximum of ${model.maxCharacters} ` +
      `characters per request for model '${model.id}'.`;
    throw ApiError.unfit("text_too_long", message, { status: "max_character_limit_exceeded", param: "text" });
  }
}

function requireSettings(shape: SpeechShape): void {
  requireBound("speed", shape.speed, SPEED);
  requireBound("style", shape.style, STYLE);
  requireSeed(shape.seed);
}

/** Throws the 400 of a voice setting out of its range. */
export function requireBound(
  name: string,
  value: number | undefined,
  { minimum, maximum }: { readonly minimum: number; readonly maximum: number },
): void {
  if (value === undefined || (value >= minimum && value <= maximum)) return;
  const [least, most] = [minimum.toFixed(1), maximum.toFixed(1)];
  const message = `Invalid setting for ${name} received, expected to be greater or equal to ${least} and less or equal to ${most}.`;
  throw ApiError.unfit("invalid_voice_settings", message, { param: `voice_settings.${name}` });
}

function requireLists(shape: SpeechShape): void {
  const lists = [
    ["previous_request_ids", shape.previousRequestIds],
    ["next_request_ids", shape.nextRequestIds],
    ["pronunciation_dictionary_locators", shape.dictionaries],
  ] as const;
  for (const [param, list] of lists) {
    if (list.length <= MAX_LIST) continue;
    throw ApiError.unfit(
      "invalid_parameters",
      `${param} can have at most ${MAX_LIST} items, but ${list.length} were given.`,
      { param },
    );
  }
}

/** Those of the text's own tags, and of the dictionaries elsewhere. */
function respellingsOf(text: string, lexicon: Lexicon | undefined): Respelling[] {
  const tagged = findPhonemeTags(text);
  const others = lexicon?.respell(text) ?? [];
  const isFree = ({ start, end }: Respelling) => tagged.every((tag) => end <= tag.start || start >= tag.end);
  return [...tagged, ...(tagged.length === 0 ? others : others.filter(isFree))].sort(
    (a, b) => a.start - b.start,
  );
}

/** The rules of all dictionaries in order; undefined where none is named. Throws the 404 of one that is not there. */
function requireLexicon(
  locators: readonly DictionaryLocator[],
  findRules: DictionaryStore["rules"],
): Lexicon | undefined {
  if (locators.length === 0) return undefined;
  const rules: PronunciationRule[] = [];
  for (const { id, versionId } of locators) {
    const found = findRules(id, versionId);
    if (found === undefined) {
      const version = versionId === undefined ? "" : ` and a version with id '${versionId.slice(0, 64)}'`;
      const message = `A pronunciation dictionary with id '${id.slice(0, 64)}'${version} was not found.`;
      const param = "pronunciation_dictionary_locators";
      throw ApiError.of({ type: "not_found", code: "pronunciation_dictionary_not_found", message, param });
    }
    rules.push(...found);
  }
  return new Lexicon(rules);
}

/** Throws the 400 of what the voice of a model can't do. */
function requireOfModel(
  { id, neural }: KnownVoice,
  { asked, seed }: { readonly asked: SpokenLanguage | null; readonly seed: number | undefined },
): void {
  if (neural === undefined) return;
  if (asked !== null && neural.language !== null && asked.code !== neural.language.code) {
    const message = `Voice '${id}' speaks '${neural.language.code}' only, expected no other language_code than that.`;
    throw ApiError.unfit("invalid_parameters", message, {
      status: "unsupported_language",
      param: "language_code",
    });
  }
  if (seed !== undefined && !neural.isRepeatable) {
    const message = `Voice '${id}' is of a model that varies each time, expected no seed.`;
    throw ApiError.unfit("invalid_parameters", message, { param: "seed" });
  }
}

function speakerOf({ model, speaker, language }: ListedNeuralVoice): NeuralSpeaker {
  return { model, speaker, language: language === null ? null : language.code };
}

const ENGLISH: SpokenLanguage = { code: "en", accent: null };

/** What the voice speaks with the model where the request names no language. */
function languageWith({ isEnglishOnly }: Model, own: SpokenLanguage | null): SpokenLanguage | null {
  return isEnglishOnly && own?.code !== ENGLISH.code ? ENGLISH : own;
}

function requireLanguage(
  { languageCode: code, readsJapanese }: SpeechShape,
  model: Model,
): SpokenLanguage | null {
  if (code === undefined || code === "") return null;
  const language = findLanguage(code);
  const isSpoken = languagesOf(model).some(({ language_id: spoken }) => spoken === language?.code);
  if (language !== undefined && isSpoken) {
    if (!readsJapanese || language.code === "ja") return { code: language.code, accent: language.accent };
    const message = `apply_language_text_normalization is for Japanese only, not for language '${language.code}'.`;
    throw ApiError.unfit("invalid_parameters", message, { param: "apply_language_text_normalization" });
  }
  const message =
    `Language '${code.slice(0, 16)}' is not supported by model '${model.id}', ` +
    "expected one of its languages in GET /v1/models, or one with a region whose accent there is.";
  throw ApiError.unfit("invalid_parameters", message, {
    status: "unsupported_language",
    param: "language_code",
  });
}
