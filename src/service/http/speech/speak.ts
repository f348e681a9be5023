/** From an accepted request to its answer: admission, headers, delivery. Shared by speech and dialogue. */
import { randomBytes } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { delayOrRefuse, withFaults } from "../../faults/apply.ts";
import { nextFaults } from "../../faults/board.ts";
import { FAULT_HEADER } from "../../faults/fault.ts";
import { type NewHistoryItem, newHistoryId } from "../../store/history.ts";
import type { ServiceContext } from "../context.ts";
import { findKnownVoice, type KnownVoice } from "../known-voice.ts";
import { commonHeaders } from "../origins.ts";
import { audioTypeOf } from "../output-format.ts";
import { type Admission, concurrencyHeaders } from "../tiers.ts";
import { type Delivery, deliverStream, deliverWhole } from "./delivery.ts";
import { MAX_STITCHED_AGE_S } from "./neighbours.ts";
import { recordingOpener } from "./recorder.ts";
import { acceptSpeech, type EndpointKind, type SpeechShape } from "./speech-request.ts";

/** Asks for `voicewire_words` in timed responses (timing-json.ts). */
const TRUTH_HEADER = "x-voicewire-truth";
/** See JobSpec.aheadMs; what is no such number is not heeded. */
const AHEAD_HEADER = "x-voicewire-ahead-ms";
/** See JobChunk.behindMs. */
const BEHIND_HEADER = "x-voicewire-behind-ms";
/** Times that were found in the audio: those of voices of models. */
const ESTIMATED_TIMING = { "x-voicewire-timing": "estimated" } as const;
/** Tags that nothing was done of, with their brackets; what is not ASCII is percent-encoded. */
const LEFT_OUT_HEADER = "x-left-out-tags";
const MAX_HEADER = 1000;
/** Characters of one tag. */
const MAX_TAG_SHOWN = 80;

export async function speak(
  context: ServiceContext,
  exchange: { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly beganMs: number },
  options: { readonly shape: SpeechShape; readonly kind: EndpointKind },
): Promise<void> {
  const { request, reply } = exchange;
  const { shape, kind } = options;
  const { faults, ...asked } = nextFaults(context.faults, request.headers[FAULT_HEADER]);
  const wantsTruth = asked.wantsTruth || request.headers[TRUTH_HEADER] === "1";
  const findVoice = (id: string): KnownVoice | undefined => findKnownVoice(context, id);
  const { tier, store } = context;
  const sinceUnix = Math.floor(Date.now() / 1000) - MAX_STITCHED_AGE_S;
  const findText = (id: string): string | undefined => store.history.textOf(id, sinceUnix);
  const findRules = store.dictionaries.rules.bind(store.dictionaries);
  const rules = { kind, tier, wantsTruth, findVoice, findText, findRules };
  const { spec, model, cost, leftOutTags } = acceptSpeech(shape, rules);
  if (faults.length > 0) await delayOrRefuse(faults, reply);
  const admission = context.gate.enter(model.concurrencyGroup);
  const requestId = randomBytes(10).toString("hex");
  const historyItemId = shape.isLogged ? newHistoryId() : null;
  const item =
    historyItemId === null
      ? null
      : historyItemOf(shape, { kind, cost, requestId, historyItemId, findVoice, leftOutTags });
  const voices =
    item === null
      ? context.voices
      : recordingOpener(context.voices, { store: context.store, log: context.log, item });
  const delivery: Delivery = {
    ...withFaults(faults, { voices, response: reply.raw }),
    temporaryFiles: context.temporaryFiles,
    spec: {
      ...spec,
      // What is kept is kept with its timing.
      wantsTiming: spec.wantsTiming || item !== null,
      aheadMs: aheadMsOf(request.headers[AHEAD_HEADER]),
    },
    isDialogue: kind.isDialogue,
    wantsTiming: kind.wantsTiming,
    outputFormat: shape.outputFormat,
    headers: (first) => ({
      ...commonHeaders(reply),
      "content-type": kind.wantsTiming ? "application/json" : audioTypeOf(shape.outputFormat),
      ...speechHeaders({ admission, cost, beganMs: exchange.beganMs, requestId, historyItemId }),
      ...leftOutHeader(leftOutTags),
      ...(first?.behindMs === undefined ? {} : { [BEHIND_HEADER]: String(first.behindMs) }),
      ...(kind.wantsTiming && spec.inputs.some(({ neural }) => neural !== undefined) ? ESTIMATED_TIMING : {}),
    }),
  };
  const endStitching = item === null ? () => undefined : store.history.begin(item);
  try {
    await (kind.isStream ? deliverStream(delivery) : deliverWhole(delivery));
  } finally {
    endStitching();
    admission.release();
  }
  // The raw response was written: only a fault before the first byte is left to Fastify.
  if (reply.raw.headersSent || reply.raw.destroyed) reply.hijack();
}

function aheadMsOf(header: string | readonly string[] | undefined): number | undefined {
  return typeof header === "string" && /^\d{1,6}$/.test(header) ? Number(header) : undefined;
}

/** A dialogue's item has its lines instead of a text and a voice. */
function historyItemOf(
  shape: SpeechShape,
  facts: {
    readonly kind: EndpointKind;
    readonly cost: number;
    readonly requestId: string;
    readonly historyItemId: string;
    readonly findVoice: (id: string) => KnownVoice | undefined;
    readonly leftOutTags: readonly string[];
  },
): Omit<NewHistoryItem, "alignmentsJson"> {
  const { kind, findVoice } = facts;
  const [input] = shape.inputs;
  const voice = kind.isDialogue || input === undefined ? undefined : findVoice(input.voiceId);
  return {
    id: facts.historyItemId,
    requestId: facts.requestId,
    voiceId: voice?.id ?? null,
    voiceName: voice?.name ?? null,
    voiceCategory: voice?.category ?? null,
    modelId: shape.modelId,
    text: kind.isDialogue ? null : (input?.text ?? null),
    dateUnix: Math.floor(Date.now() / 1000),
    characters: facts.cost,
    contentType: audioTypeOf(shape.outputFormat),
    outputFormat: shape.outputFormat,
    source: "TTS",
    settings: withoutUndefined({
      stability: shape.stability,
      style: shape.style,
      speed: shape.speed,
      similarity_boost: shape.similarity,
      use_speaker_boost: shape.speakerBoost,
      seed: shape.seed,
      optimize_streaming_latency: shape.latencyLevel,
      previous_request_ids: notEmpty(shape.previousRequestIds),
      next_request_ids: notEmpty(shape.nextRequestIds),
      language_code: shape.languageCode,
      apply_text_normalization: shape.normalization === "auto" ? undefined : shape.normalization,
      apply_language_text_normalization: shape.readsJapanese ? true : undefined,
      pronunciation_dictionary_locators: keptLocators(shape.dictionaries),
      left_out_tags: notEmpty(facts.leftOutTags),
    }),
    dialogue: kind.isDialogue
      ? shape.inputs.map(({ text, voiceId }) => ({
          text,
          voice_id: voiceId,
          voice_name: findVoice(voiceId)?.name ?? "",
        }))
      : null,
  };
}

function keptLocators(locators: SpeechShape["dictionaries"]): object[] | undefined {
  if (locators.length === 0) return undefined;
  return locators.map(({ id, versionId = null }) => ({
    pronunciation_dictionary_id: id,
    version_id: versionId,
  }));
}

function notEmpty(texts: readonly string[]): readonly string[] | undefined {
  return texts.length === 0 ? undefined : texts;
}

function withoutUndefined(settings: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}

/** As many tags as fit into a header of 1000 characters, the beginnings of long ones; the history has all. */
function leftOutHeader(tags: readonly string[]): Readonly<Record<string, string>> {
  let value = "";
  for (const tag of tags.map(shown)) {
    if (value.length + tag.length > MAX_HEADER) break;
    value += value === "" ? tag : `, ${tag}`;
  }
  return value === "" ? {} : { [LEFT_OUT_HEADER]: value };
}

function shown(tag: string): string {
  return [...tag]
    .slice(0, MAX_TAG_SHOWN)
    .join("")
    .replace(/[^ -~]/gu, encodeURIComponent);
}

/** Seen on live answers. */
function speechHeaders(facts: {
  readonly admission: Admission;
  readonly cost: number;
  readonly beganMs: number;
  readonly requestId: string;
  readonly historyItemId: string | null;
}): Readonly<Record<string, string>> {
  return {
    "request-id": facts.requestId,
    ...(facts.historyItemId === null ? {} : { "history-item-id": facts.historyItemId }),
    "character-cost": String(facts.cost),
    ...concurrencyHeaders(facts.admission),
    "tts-latency-ms": String(Math.round(performance.now() - facts.beganMs)),
    "x-region": "local",
  };
}
