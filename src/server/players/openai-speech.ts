/** `POST /v1/audio/speech`: OpenAI's shape, spoken by the upstream, streamed as it comes. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { Caller } from "../../access/caller.ts";
import { FlacEncoder } from "../../audio/codecs/flac.ts";
import { PcmAligner } from "../../audio/codecs/pcm.ts";
import { bytesPerMs } from "../../audio/formats.ts";
import { GatewayError } from "../../errors.ts";
import {
  audioDelta,
  audioDone,
  audioFailed,
  estimateUsage,
  type OpenAiSpeechRequest,
  openAiError,
  parseOpenAiSpeech,
  type SpeechFormat,
} from "../../protocol/openai.ts";
import { defaultModelFor } from "../../protocol/upstream-voice.ts";
import { sayable } from "../../vendor-sockets/sayable.ts";
import type { Reply } from "../http.ts";
import { beginHttpSpan } from "../http-span.ts";
import type { VoiceNames } from "../proxy/voice-names.ts";
import { requestAddress } from "../request-address.ts";
import { needs, type Routes } from "../routes.ts";
import { audited, modelFor, mustHaveSpeech, pinnedOptions } from "../speech-access.ts";
import { type AskedSpeech, SpeechAnswer, type SpeechAnswerDeps } from "./speech-answer.ts";
import { type Encoder, PLAIN, wavEncoder } from "./spoken-body.ts";

export interface OpenAiSpeechOptions extends SpeechAnswerDeps {
  readonly voices: VoiceNames;
  /** Where OpenAI's own models are asked for; "" = the upstream's default. */
  readonly defaultModel: string;
  /** Names of voices that several upstreams may speak, and whose models are not those of one; default: none. */
  readonly ownVoices?: ReadonlySet<string>;
}

const PATH = "/v1/audio/speech";
const PCM_RATE = 24_000;

export function routeOpenAiSpeech(app: Routes, options: OpenAiSpeechOptions): void {
  const { voices, defaultModel, ownVoices, door } = options;
  const handle = (res: HttpResponse, req: HttpRequest, caller: Caller): void => {
    const address = requestAddress(res, req, door.proxyTrust);
    const asking = { door, caller, surface: PATH, address };
    const span = beginHttpSpan(req, options);
    const answer = new SpeechAnswer(res, { deps: options, name: PATH, span, answerError });
    answer.start(async (body) => {
      const request = parseOpenAiSpeech(body);
      const voiceId = caller.speechSettings.voice_id ?? (await voices.idOf(request.voice));
      const asked = audited(asking, () => askedOf(request, { voiceId, caller, defaultModel, ownVoices }));
      const budget = door.limits.speechBudget(() => caller);
      const charged = audited(asking, () => budget.begin(asked.speech.text.length));
      const subject = door.limits.upstreamSubject(caller, address);
      return { ...asked, charged, speech: { ...asked.speech, subject } };
    });
  };
  app.post(PATH, needs("speak"), handle, { answer: openAiError });
}

function answerError(reply: Reply, error: GatewayError): void {
  const { status, body } = openAiError(error);
  const wait = error.retryAfterMs;
  const headers = wait === undefined ? {} : { "retry-after": String(Math.ceil(wait / 1000)) };
  reply.send({ status, contentType: "application/json", body, headers });
}

interface Speaking {
  readonly voiceId: string;
  readonly caller: Caller;
  readonly defaultModel: string;
  readonly ownVoices: ReadonlySet<string> | undefined;
}

/** Throws invalid_field, forbidden. */
function askedOf(
  request: OpenAiSpeechRequest,
  { voiceId, caller, defaultModel, ownVoices }: Speaking,
): Omit<AskedSpeech, "charged"> {
  const { input, speed, format, isSse, ignored } = request;
  const { upstream: outputFormat, contentType } = FORMATS[format];
  const modelId = modelFor(caller, request.modelId || defaultModelFor(voiceId, defaultModel, ownVoices));
  const mustStay = (now: Caller): void => {
    now.must("speak");
    mustHaveSpeech(now, { voiceIds: [voiceId], modelId, outputFormat });
  };
  mustStay(caller);
  const text = sayable(input, modelId);
  if (text.trim() === "") {
    const message = "Field 'input' is not valid: it has audio tags only, expected something to say";
    throw new GatewayError("invalid_field", message, { field: "input" });
  }
  const usage = (audioBytes: number) => estimateUsage(input.length, audioBytes / bytesPerMs(outputFormat));
  return {
    caller,
    mustStay,
    contentType: isSse ? "text/event-stream" : contentType,
    ignored,
    encoder: createEncoder(format),
    events: isSse
      ? {
          audio: (bytes) => Buffer.from(audioDelta(bytes)),
          done: (audioBytes) => Buffer.from(audioDone(usage(audioBytes))),
          failed: (error) => Buffer.from(audioFailed(error)),
        }
      : null,
    speech: {
      voiceId,
      text,
      outputFormat,
      ...pinnedOptions(caller),
      modelId,
      ...(speed === 1 ? {} : { voiceSettings: { speed } }),
    },
  };
}

/** What is asked of the upstream for a format, and what it is called on the way out. */
const FORMATS: Readonly<Record<SpeechFormat, { readonly upstream: string; readonly contentType: string }>> = {
  mp3: { upstream: "mp3_44100_128", contentType: "audio/mpeg" },
  opus: { upstream: "opus_48000_64", contentType: "audio/opus" },
  flac: { upstream: "pcm_24000", contentType: "audio/flac" },
  wav: { upstream: "pcm_24000", contentType: "audio/wav" },
  pcm: { upstream: "pcm_24000", contentType: "audio/pcm" },
};

function createEncoder(format: SpeechFormat): Encoder {
  if (format === "wav") return wavEncoder(PCM_RATE);
  if (format !== "flac") return PLAIN;
  const aligner = new PcmAligner();
  const flac = new FlacEncoder({ sampleRate: PCM_RATE });
  return { push: (bytes) => flac.push(aligner.push(bytes)), end: () => flac.flush() };
}
