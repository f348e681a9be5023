/** Reads a body that is audio and nothing else: WAV, or samples. What is neither would be heard as noise. */
import { GatewayError } from "../../errors.ts";
import { headerOf, type ResponseHeaders } from "../headers.ts";
import type { BodyReader } from "../transport/speech-stream.ts";
import type { AnswerSink } from "./adapter.ts";
import { isObject, parseOrUndefined } from "./json-values.ts";

/** As much of a body is looked at. */
const HEAD_BYTES = 16;
/** So much is read of a body that is JSON, and so an error. */
const MAX_ERROR_BYTES = 64 * 1024;

/** `sampleRate`: what the headers say of samples without a header; null: nothing. */
export function plainReader(
  sink: AnswerSink,
  headers: ResponseHeaders,
  sampleRate: number | null,
): BodyReader {
  if (sampleRate !== null) sink.plain({ codec: "pcm", sampleRate, channels: 1 });
  return new PlainReader(sink, headerOf(headers, "content-type") ?? "");
}

class PlainReader implements BodyReader {
  readonly #sink: AnswerSink;
  readonly #type: string;
  #reading: "head" | "audio" | "error" = "head";
  #kept: Buffer = Buffer.alloc(0);

  constructor(sink: AnswerSink, type: string) {
    this.#sink = sink;
    this.#type = type;
  }

  push(piece: Buffer): void {
    if (this.#reading === "audio") {
      this.#sink.piece({ audio: piece });
      return;
    }
    this.#kept = this.#kept.length === 0 ? piece : Buffer.concat([this.#kept, piece]);
    if (this.#reading === "head" && this.#kept.length >= HEAD_BYTES) this.#begin();
    else if (this.#kept.length > MAX_ERROR_BYTES) this.#fail();
  }

  end(): void {
    if (this.#reading === "head" && this.#kept.length > 0) this.#begin();
    if (this.#reading === "error") this.#fail();
  }

  #begin(): void {
    const head = this.#kept.toString("latin1", 0, HEAD_BYTES);
    const isFrame = MPEG_FRAME.test(head) && MPEG_TYPE.test(this.#type);
    const other = isFrame ? MP3 : OTHERS.find(({ pattern }) => pattern.test(head));
    if (other !== undefined) throw notWanted(other);
    // Some call a WAV file by a wrong type. Samples look like nothing: of them the type decides.
    const isWav = head.startsWith("RIFF");
    if (!isWav && TEXT_TYPE.test(this.#type)) throw notWanted(TEXT);
    // Samples may begin with a brace, but not with one and a quote.
    const isJson = !isWav && (JSON_TYPE.test(this.#type) || /^\s*\{\s*"/.test(head));
    this.#reading = isJson ? "error" : "audio";
    if (this.#reading === "audio") this.#sink.piece({ audio: this.#takeKept(), isChunk: true });
  }

  /** JSON under a status of 200 says what went wrong. */
  #fail(): never {
    const body = parseOrUndefined(this.#takeKept().toString("utf8"));
    if (isObject(body)) this.#sink.fail({ body });
    throw notSpeech("it is JSON, expected WAV or samples: check its url, its log may say why");
  }

  #takeKept(): Buffer {
    const kept = this.#kept;
    this.#kept = Buffer.alloc(0);
    return kept;
  }
}

function notSpeech(what: string): GatewayError {
  return new GatewayError("upstream_not_speech", `The upstream's audio can't be used: ${what}`);
}

function notWanted({ name, advice }: { readonly name: string; readonly advice: string }): GatewayError {
  return notSpeech(`it is ${name}, expected WAV or samples: ${advice}`);
}

const SET_IT = "set the server to one of these";
const CHECK_URL = "check its url";
const MP3 = { name: "MP3", pattern: /^ID3/, advice: SET_IT };
const TEXT = { name: "a text", advice: CHECK_URL };
const TEXT_TYPE = /^(?:text\/|application\/(?:xhtml\+)?xml\b)/i;
const JSON_TYPE = /^application\/(?:problem\+)?json\b/i;
/** An MP3 without tags begins with a frame. So may samples: the content type decides. */
const MPEG_FRAME = /^\xff[\xe2-\xff]/;
const MPEG_TYPE = /^audio\/(?:mpeg|mp3)\b/i;
const OTHERS: readonly { readonly name: string; readonly pattern: RegExp; readonly advice: string }[] = [
  { name: "a web page", pattern: /^\s*<(?:!doctype|!--|html)/i, advice: CHECK_URL },
  { name: "XML", pattern: /^\s*<\?xml/i, advice: CHECK_URL },
  { name: "Ogg", pattern: /^OggS/, advice: SET_IT },
  { name: "FLAC", pattern: /^fLaC/, advice: SET_IT },
  MP3,
];
