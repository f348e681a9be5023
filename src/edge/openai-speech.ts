/** `POST /v1/audio/speech`: OpenAI's shape, spoken by the upstream, streamed as it comes. */
import type { HttpResponse, TemplatedApp } from "uWebSockets.js";
import { FlacEncoder } from "../audio/flac.ts";
import { PcmAligner } from "../audio/pcm.ts";
import { toGatewayError } from "../errors.ts";
import {
  audioDelta,
  audioDone,
  audioFailed,
  estimateUsage,
  openAiError,
  parseOpenAiSpeech,
  type SpeechFormat,
} from "../protocol/openai.ts";
import { bytesPerMs } from "../session/source.ts";
import { Reply, readBody } from "./http.ts";
import { VoiceNames, type VoiceNamesOptions } from "./openai-voices.ts";
import { type Encoder, PLAIN, SpokenBody, type SpokenBodyOptions, wavEncoder } from "./spoken-body.ts";

export interface OpenAiSpeechOptions
  extends VoiceNamesOptions,
    Pick<SpokenBodyOptions, "upstream" | "counters" | "log" | "idleSeconds" | "firstAudioMs"> {
  /** Where OpenAI's own models are asked for; "" = the upstream's default. */
  readonly defaultModel: string;
}

/** Four times the longest input in UTF-8, and the rest. */
const MAX_BODY_BYTES = 65_536;
const PCM_RATE = 24_000;
export function routeOpenAiSpeech(app: TemplatedApp, options: OpenAiSpeechOptions): void {
  const voices = new VoiceNames(options);
  app.post("/v1/audio/speech", (res) => {
    new SpeechAnswer(res, options, voices).answer();
  });
}

class SpeechAnswer {
  readonly #res: HttpResponse;
  readonly #options: OpenAiSpeechOptions;
  readonly #voices: VoiceNames;
  #isAborted = false;
  #body: SpokenBody | null = null;

  constructor(res: HttpResponse, options: OpenAiSpeechOptions, voices: VoiceNames) {
    this.#res = res;
    this.#options = options;
    this.#voices = voices;
    res.onAborted(() => {
      this.#isAborted = true;
      this.#body?.markAborted();
    });
  }

  answer(): void {
    this.#start().catch((thrown: unknown) => this.#refuse(thrown));
  }

  async #start(): Promise<void> {
    const request = parseOpenAiSpeech(await readBody(this.#res, MAX_BODY_BYTES));
    const voiceId = await this.#voices.idOf(request.voice);
    if (this.#isAborted) return;
    const { input, speed, format, isSse } = request;
    const modelId = request.modelId || this.#options.defaultModel;
    const { upstream: outputFormat, contentType } = FORMATS[format];
    const usage = (audioBytes: number) => estimateUsage(input.length, audioBytes / bytesPerMs(outputFormat));
    this.#body = new SpokenBody({
      ...this.#options,
      res: this.#res,
      contentType: isSse ? "text/event-stream" : contentType,
      encoder: createEncoder(format),
      events: isSse
        ? {
            audio: (bytes) => Buffer.from(audioDelta(bytes)),
            done: (audioBytes) => Buffer.from(audioDone(usage(audioBytes))),
            failed: (error) => Buffer.from(audioFailed(error)),
          }
        : null,
      request: {
        kind: "speech",
        voiceId,
        text: input,
        wantsTiming: false,
        outputFormat,
        ...(modelId === "" ? {} : { modelId }),
        ...(speed === 1 ? {} : { voiceSettings: { speed } }),
      },
      onRefused: (error) => this.#refuse(error),
    });
  }

  /** Nothing was sent yet. */
  #refuse(thrown: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    const error = toGatewayError(thrown);
    if (error.code === "internal")
      this.#options.log.error({ err: error.cause ?? error }, "Fault in /v1/audio/speech");
    const { status, body } = openAiError(error);
    new Reply(this.#res).send({ status, contentType: "application/json", body });
  }
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
