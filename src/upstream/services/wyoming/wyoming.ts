/**
 * A Wyoming server, on a machine of one's own: TCP, mostly Piper behind it. It says what its samples are, and gives no times.
 * A server that takes text in pieces answers with one group of audio for each sentence.
 */
import { type WyomingFrame, WyomingReader } from "../../../protocol/wyoming.ts";
import { headerOf } from "../../headers.ts";
import type { BodyReader } from "../../transport/speech-stream.ts";
import type { SpeechRequest } from "../../types.ts";
import type { AnswerSink, Capabilities, RefusalTable, ServiceAdapter } from "../adapter.ts";
import { broken, numberOf, truncated } from "../json-values.ts";
import { languageOf, listedVoices, type VoiceListing } from "../listed-voices.ts";
import { allVoicesOf } from "./wyoming-info.ts";
import { END_HEADER, WYOMING_LIMITS, WYOMING_LINE, type WyomingAsked } from "./wyoming-line.ts";

const CAPABILITIES: Capabilities = {
  times: "none",
  // Whatever its voice has; its frames say it.
  formats: [{ codec: "pcm", sampleRates: [22_050] }],
  settings: [],
  isLocal: true,
  breaks: "ignored",
  startLimit: 1,
  // It makes one after the other.
  maxOpen: 1,
  firstAudioMs: 30_000,
};

const REFUSALS: RefusalTable = {
  codesOf: ({ code }) => [code],
  meanings: { unknown_voice: { code: "unknown_voice", field: "voice_id" } },
};

/** Its answer to a request without a message says what it can do. */
const VOICES: VoiceListing = {
  path: "/",
  read: (body) =>
    listedVoices(allVoicesOf(body), {
      id: ["name"],
      name: ["description"],
      labels: ({ languages }) => ({
        language: languageOf(Array.isArray(languages) ? languages[0] : undefined),
      }),
    }),
};

export function createWyoming(): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    line: WYOMING_LINE,
    headers: [],
    checkPath: "/",
    voices: VOICES,
    refusals: REFUSALS,
    request: (request) => ({ path: "/", body: [JSON.stringify(askedOf(request))], audio: null }),
    answer: (headers, sink) => new WyomingAnswer(sink, headerOf(headers, END_HEADER) ?? "audio-stop"),
  };
}

/** A voice of several speakers: `en_US-libritts-high#p123`. */
function askedOf({ voiceId, text }: SpeechRequest): WyomingAsked {
  const [name = "", speaker] = voiceId.split("#");
  return { text, voice: { name, speaker } };
}

class WyomingAnswer implements BodyReader {
  readonly #sink: AnswerSink;
  readonly #end: string;
  readonly #reader = new WyomingReader({
    limits: WYOMING_LIMITS,
    broken,
    onFrame: (frame) => this.#meet(frame),
  });
  /** What its samples are, as the first frame that says it has said; "": none has. */
  #sampled = "";
  isComplete = false;

  constructor(sink: AnswerSink, end: string) {
    this.#sink = sink;
    this.#end = end;
  }

  push(piece: Buffer): void {
    this.#reader.push(piece);
  }

  end(): void {
    if (!this.isComplete) throw truncated(`its last frame is missing (${this.#end})`);
  }

  #meet({ type, data, payload }: WyomingFrame): void {
    if (this.isComplete) return;
    if (type === this.#end) {
      this.isComplete = true;
      return;
    }
    switch (type) {
      case "audio-start":
        this.#sample(data);
        return;
      case "audio-chunk":
        this.#sample(data);
        if (payload.length > 0) this.#sink.piece({ audio: new Uint8Array(payload) });
        return;
      case "error":
        // Its text may hold what was to be said.
        this.#sink.fail({ body: { code: data.code } });
    }
  }

  /** Every group of audio says its format, and every piece of it. */
  #sample({ rate, width, channels }: WyomingFrame["data"]): void {
    const sampled = `${String(rate)} Hz, ${String(width)} bytes, ${String(channels)} channels`;
    if (sampled === this.#sampled) return;
    const sampleRate = numberOf(rate);
    const isReadable = width === 2 && sampleRate > 0 && numberOf(channels) >= 1 && numberOf(channels) <= 8;
    if (!isReadable || !Number.isInteger(channels)) throw broken("its samples are not of 16 bits");
    if (this.#sampled !== "") throw broken("its samples change from one frame to another");
    this.#sampled = sampled;
    this.#sink.plain({ codec: "pcm", sampleRate, channels: numberOf(channels) });
  }
}
