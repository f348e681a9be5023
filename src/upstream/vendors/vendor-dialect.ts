/** How the vendor answers a request for speech, and every service of its interface. */
import { sampledFormatOf } from "../../audio/codecs/samples.ts";
import { isWavHeader } from "../../audio/containers/wav.ts";
import { GatewayError } from "../../errors.ts";
import { countOf, headerOf, type ResponseHeaders } from "../headers.ts";
import { JsonLines } from "../parse/json-lines.ts";
import { readRecord } from "../parse/record.ts";
import type { BodyReader, Dialect } from "../transport/speech-stream.ts";
import type { SynthesisChunk, SynthesisHead, SynthesisRequest } from "../types.ts";
import { FIRST_UPSTREAM, othersOptions, textsOfOptions } from "../vendor-options.ts";
import { type Refusal, refusalError } from "./refusal.ts";
import { TextProgress } from "./text-progress.ts";

export class VendorDialect implements Dialect {
  readonly #request: SynthesisRequest;
  readonly #key: string;
  readonly #onHead: (headers: ResponseHeaders) => void;
  #hasAudio = false;

  /** `key`: for nothing but keeping it out of messages. `onHead`: headers of an answer that speaks. */
  constructor(
    request: SynthesisRequest,
    key: string,
    onHead: (headers: ResponseHeaders) => void = () => undefined,
  ) {
    this.#request = request;
    this.#key = key;
    this.#onHead = onHead;
  }

  head(headers: ResponseHeaders): SynthesisHead {
    checkContent(headers, this.#request.wantsTiming);
    this.#onHead(headers);
    const ignored = othersOptions(FIRST_UPSTREAM, this.#request.vendorOptions);
    return { ...readHead(headers), ...(ignored.length === 0 ? {} : { ignored }) };
  }

  body(_headers: ResponseHeaders, onChunk: (chunk: SynthesisChunk) => void): BodyReader {
    const push = (chunk: SynthesisChunk): void => {
      this.#check(chunk);
      onChunk(chunk);
    };
    if (this.#request.wantsTiming) {
      const timed = new TextProgress(this.#request);
      const lines = new JsonLines({
        onLine: (bytes, start, end) => {
          const chunk = readRecord(bytes, { start, end });
          timed.push(chunk);
          push(chunk);
        },
      });
      const end = (): void => {
        lines.flush();
        timed.checkEnd();
      };
      return { push: (piece) => lines.push(piece), end };
    }
    return {
      push: (audio) => push({ audio, alignment: null, normalizedAlignment: null, voiceSegments: [] }),
      end: () => undefined,
    };
  }

  refusal(refused: Omit<Refusal, "secrets">): GatewayError {
    return refusalError({ ...refused, secrets: [this.#key, ...textsOf(this.#request)] });
  }

  #check({ audio }: SynthesisChunk): void {
    if (this.#hasAudio || audio.length === 0) return;
    this.#hasAudio = true;
    checkBeginning(audio, this.#request.outputFormat);
  }
}

function textsOf(request: SynthesisRequest): readonly string[] {
  const options = textsOfOptions(request.vendorOptions);
  if (request.kind === "dialogue") return [...request.inputs.map(({ text }) => text), ...options];
  return [request.text, request.previousText ?? "", request.nextText ?? "", ...options];
}

/** Throws upstream_protocol where a 200 is plainly not what was asked for. */
function checkContent(headers: ResponseHeaders, wantsTiming: boolean): void {
  const type = headerOf(headers, "content-type") ?? "";
  const encoding = headerOf(headers, "content-encoding") ?? "identity";
  // The content type of the timed variant is not known, so its records speak for themselves.
  if (!wantsTiming && !/^audio\//i.test(type)) {
    throw unexpected(`content-type is ${JSON.stringify(type)}, expected audio/*`);
  }
  if (!/^identity$/i.test(encoding))
    throw unexpected(`content-encoding is ${JSON.stringify(encoding)}, expected none`);
}

/** Throws upstream_protocol for samples behind a WAV header: they would begin with a crack, at whatever rate it says. */
function checkBeginning(audio: Uint8Array, format: string): void {
  if (sampledFormatOf(format) === null || !isWavHeader(audio)) return;
  throw unexpected(`its ${format} begins with a WAV header, expected samples alone`);
}

function unexpected(what: string): GatewayError {
  return new GatewayError("upstream_protocol", `The upstream's answer can't be used: ${what}`);
}

function readHead(headers: ResponseHeaders): SynthesisHead {
  const requestId = headerOf(headers, "request-id");
  const characterCost = countOf(headers, "character-cost");
  const current = countOf(headers, "current-concurrent-requests");
  const maximum = countOf(headers, "maximum-concurrent-requests");
  const timing = headerOf(headers, "x-voicewire-timing");
  return {
    ...(timing === "estimated" ? { hasEstimatedTimes: true } : {}),
    ...(requestId === undefined ? {} : { requestId }),
    ...(characterCost === undefined ? {} : { characterCost }),
    ...(current === undefined ? {} : { currentConcurrentRequests: current }),
    ...(maximum === undefined ? {} : { maximumConcurrentRequests: maximum }),
  };
}
