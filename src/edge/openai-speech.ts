/** `POST /v1/audio/speech`: OpenAI's shape, spoken by the upstream, streamed as it comes. */
import type { HttpResponse, TemplatedApp } from "uWebSockets.js";
import { FlacEncoder } from "../audio/flac.ts";
import type { LiveContainer } from "../audio/live-container.ts";
import { PcmAligner } from "../audio/pcm.ts";
import { UNKNOWN_DATA_BYTES, wavHeader } from "../audio/wav.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Logger } from "../kit/log.ts";
import type { Counters } from "../metrics/counters.ts";
import {
  audioDelta,
  audioDone,
  audioFailed,
  estimateUsage,
  type OpenAiSpeechRequest,
  openAiError,
  parseOpenAiSpeech,
  type SpeechFormat,
} from "../protocol/openai.ts";
import { SegmentRun, type SegmentRunOptions } from "../session/segment-run.ts";
import { newTimes } from "../session/segment-times.ts";
import { bytesPerMs } from "../session/source.ts";
import { Reply, readBody } from "./http.ts";
import { HttpAudioSink } from "./http-sink.ts";
import { VoiceNames, type VoiceNamesOptions } from "./openai-voices.ts";

export interface OpenAiSpeechOptions extends VoiceNamesOptions {
  readonly upstream: SegmentRunOptions["upstream"];
  readonly counters: Counters;
  readonly log: Logger;
  /** A client that takes nothing for so long is gone. */
  readonly idleSeconds: number;
  /** Where OpenAI's own models are asked for; "" = the upstream's default. */
  readonly defaultModel: string;
  /** See SegmentRunOptions. */
  readonly firstAudioMs: number;
}

/** Four times the longest input in UTF-8, and the rest. */
const MAX_BODY_BYTES = 65_536;
const ORDINARY_CLOSE = 1000;
const FAILED_CLOSE = 1011;
/** Audio that waits for the client before the upstream is held, and what it is read on at, bytes. */
const HOLD_BYTES = 262_144;
const READ_ON_BYTES = 65_536;
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
  #run: SegmentRun | null = null;
  #sink: HttpAudioSink | null = null;
  #isOpen = false;
  #isPumping = false;
  #encoder: Encoder = PLAIN;
  #request: OpenAiSpeechRequest | null = null;
  #audioBytes = 0;

  constructor(res: HttpResponse, options: OpenAiSpeechOptions, voices: VoiceNames) {
    this.#res = res;
    this.#options = options;
    this.#voices = voices;
    res.onAborted(() => {
      this.#isAborted = true;
      this.#run?.abort();
      this.#sink?.markAborted();
    });
  }

  answer(): void {
    this.#start().catch((thrown: unknown) => this.#fail(thrown));
  }

  async #start(): Promise<void> {
    const request = parseOpenAiSpeech(await readBody(this.#res, MAX_BODY_BYTES));
    const voiceId = await this.#voices.idOf(request.voice);
    if (this.#isAborted) return;
    const { upstream, clock, counters, firstAudioMs, defaultModel, idleSeconds } = this.#options;
    const { input, speed } = request;
    const modelId = request.modelId || defaultModel;
    const range = { start: 0, end: input.length };
    const nowMs = clock.nowMs();
    this.#request = request;
    this.#encoder = createEncoder(request.format);
    this.#sink = new HttpAudioSink({
      res: this.#res,
      container: this.#container(request),
      clock,
      idleSeconds,
      isFilled: true,
      onFrames: () => undefined,
      onDrained: () => this.#pump(),
      onClosed: () => this.#run?.abort(),
    });
    this.#run = new SegmentRun({
      upstream,
      clock,
      counters,
      firstAudioMs,
      segment: { ...range, text: input, times: newTimes(range, { arrivedMs: nowMs, cutMs: nowMs }) },
      request: {
        kind: "speech",
        voiceId,
        text: input,
        wantsTiming: false,
        outputFormat: FORMATS[request.format].upstream,
        ...(modelId === "" ? {} : { modelId }),
        ...(speed === 1 ? {} : { voiceSettings: { speed } }),
      },
      onProgress: () => this.#pump(),
    });
  }

  /** Moves what has come to the client, as far as it takes it. */
  #pump(): void {
    const run = this.#run;
    const sink = this.#sink;
    if (run === null || sink === null || sink.isClosed || this.#isPumping) return;
    this.#isPumping = true;
    try {
      this.#move(run, sink);
    } catch (thrown) {
      this.#fail(thrown);
    } finally {
      this.#isPumping = false;
    }
    if (run.waitingBytes > HOLD_BYTES) run.hold();
    else if (run.waitingBytes <= READ_ON_BYTES) run.readOn();
  }

  #move(run: SegmentRun, sink: HttpAudioSink): void {
    while (!sink.isClosed && !sink.isBlocked) {
      const chunk = run.take();
      if (chunk === undefined) {
        if (run.error !== null) throw run.error;
        if (run.isComplete) this.#finish(sink);
        return;
      }
      this.#audioBytes += chunk.audio.length;
      this.#send(sink, this.#encoder.push(chunk.audio));
    }
  }

  #send(sink: HttpAudioSink, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const isSse = this.#request?.isSse === true;
    sink.sendAll([{ bytes: isSse ? Buffer.from(audioDelta(bytes)) : bytes, isFrame: true }]);
    if (!this.#isOpen) this.#open(sink);
  }

  #open(sink: HttpAudioSink): void {
    this.#isOpen = true;
    const type = this.#request?.isSse === true ? "text/event-stream" : FORMATS[this.#format].contentType;
    sink.open({ "content-type": type, "cache-control": "no-store", "access-control-allow-origin": "*" });
  }

  get #format(): SpeechFormat {
    return this.#request?.format ?? "mp3";
  }

  #finish(sink: HttpAudioSink): void {
    this.#send(sink, this.#encoder.end());
    if (!this.#isOpen) {
      throw new GatewayError("upstream_protocol", "The upstream's answer has no audio");
    }
    sink.end(ORDINARY_CLOSE);
  }

  /** Before the first audio as a status; then in an event, or by a body that is cut. */
  #fail(thrown: unknown): void {
    if (this.#isAborted) return;
    const error = toGatewayError(thrown);
    if (error.code === "internal")
      this.#options.log.error({ err: error.cause ?? error }, "Fault in /v1/audio/speech");
    this.#run?.abort();
    if (this.#isOpen) {
      if (this.#request?.isSse === true)
        this.#sink?.sendAll([{ bytes: Buffer.from(audioFailed(error)), isFrame: true }]);
      this.#sink?.end(FAILED_CLOSE);
      return;
    }
    this.#sink?.end(FAILED_CLOSE);
    this.#isAborted = true;
    const { status, body } = openAiError(error);
    new Reply(this.#res).send({ status, contentType: "application/json", body });
  }

  /** The body as the sink knows it: frames in, bytes out. */
  #container({ isSse, input, format }: OpenAiSpeechRequest): LiveContainer {
    const none = (): Uint8Array => new Uint8Array(0);
    const audioMs = () => this.#audioBytes / bytesPerMs(FORMATS[format].upstream);
    return {
      isHoldingBack: false,
      start: none,
      frames: (frames) => Buffer.concat(frames),
      silence: none,
      missing: none,
      settle: none,
      finish: isSse ? () => Buffer.from(audioDone(estimateUsage(input.length, audioMs()))) : none,
    };
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

/** The upstream's bytes as the format wants them. */
interface Encoder {
  push(bytes: Uint8Array): Uint8Array;
  end(): Uint8Array;
}

const PLAIN: Encoder = { push: (bytes) => bytes, end: () => new Uint8Array(0) };

function createEncoder(format: SpeechFormat): Encoder {
  if (format === "wav") return wavEncoder();
  if (format !== "flac") return PLAIN;
  const aligner = new PcmAligner();
  const flac = new FlacEncoder({ sampleRate: PCM_RATE });
  return { push: (bytes) => flac.push(aligner.push(bytes)), end: () => flac.flush() };
}

function wavEncoder(): Encoder {
  let header: Uint8Array | null = wavHeader({ sampleRate: PCM_RATE, dataBytes: UNKNOWN_DATA_BYTES });
  return {
    push: (bytes) => {
      if (header === null || bytes.length === 0) return bytes;
      const first = Buffer.concat([header, bytes]);
      header = null;
      return first;
    },
    end: () => new Uint8Array(0),
  };
}
