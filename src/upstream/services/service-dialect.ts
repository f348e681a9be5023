/** How a service answers one request: its audio as the format that was asked for, its times as those of characters. */
import type { StreamEncoder } from "../../audio/containers/encode.ts";
import type { UpstreamFormat } from "../../audio/formats.ts";
import { type ErrorCode, GatewayError } from "../../errors.ts";
import type { Alignment } from "../../timing/alignment.ts";
import { countOf, headerOf, type ResponseHeaders } from "../headers.ts";
import type { BodyReader, Dialect, Refused } from "../transport/speech-stream.ts";
import type { SpeechRequest, SynthesisChunk, SynthesisHead } from "../types.ts";
import { textsOfOptions } from "../vendor-options.ts";
import type { ServiceAdapter, ServiceRequest } from "./adapter.ts";
import { AudioConverter } from "./audio-converter.ts";
import { truncated } from "./json-values.ts";
import { serviceRefusal } from "./service-refusal.ts";
import { MIN_LETTER_SECONDS, WordMatcher } from "./word-matcher.ts";

export interface ServiceDialectOptions {
  /** The upstream's name. */
  readonly name: string;
  readonly key: string;
  readonly adapter: ServiceAdapter;
  readonly request: SpeechRequest;
  readonly asked: ServiceRequest;
  /** The request's text with blanks in the place of markup. */
  readonly blanked: string;
  readonly ignored: readonly string[];
  readonly format: UpstreamFormat;
  readonly encoder: StreamEncoder;
  /** Its audio and its times do not agree in how long it is. Whether those of the answer before differed as much. */
  readonly onOddRate: (facts: { readonly audioSeconds: number; readonly timesSeconds: number }) => boolean;
}

const NO_AUDIO = new Uint8Array(0);
/** A service may send a whole file at once: what is heard first is not to wait until the rest is converted. */
const FIRST_BYTES = 4096;
/** Times are rounded, and words may end behind their sound. */
const RATE_MARGIN = 1.1;
/** A voice may sound on behind the end of its last word: no longer than this part of the speech, and half a second. */
const MOST_SOUND = 1.25;
const MIN_ODD_SECONDS = 0.5;
/** Fewer letters than this at the end may be something that is not said. */
const MIN_UNSAID_LETTERS = 4;
/** Nobody says more letters in no time; of fewer, many may be something that is not said. */
const MIN_LETTERS = 40;
/** Nobody says fewer letters while the voice sounds: a slow voice says twice as many. */
const MAX_LETTER_SECONDS = 0.25;
const LETTERS = /[\p{L}\p{N}]/gu;
const SMALL_LETTERS = /\p{Ll}/gu;
const NOT_BLANK = /[^\s\p{P}]/gu;
/** This part of what is written has to be small letters: figures, signs and capitals may be said as words of their own. */
const SMALL_SHARE = 0.8;

export class ServiceDialect implements Dialect {
  readonly #options: ServiceDialectOptions;
  readonly #converter: AudioConverter;
  readonly #matcher: WordMatcher | null;

  constructor(options: ServiceDialectOptions) {
    this.#options = options;
    const { asked, format, encoder, request, blanked } = options;
    this.#converter = new AudioConverter({ plain: asked.audio, format, encoder });
    this.#matcher = request.wantsTiming ? new WordMatcher(request.text, blanked) : null;
  }

  get firstAudioMs(): number | undefined {
    return this.#options.adapter.capabilities.firstAudioMs;
  }

  head(headers: ResponseHeaders): SynthesisHead {
    const encoding = headerOf(headers, "content-encoding") ?? "identity";
    if (!/^identity$/i.test(encoding)) {
      throw this.#unexpected(`content-encoding is ${JSON.stringify(encoding.slice(0, 40))}, expected none`);
    }
    const { adapter, ignored } = this.#options;
    const timesFrom = adapter.capabilities.times === "none" ? "nowhere" : "response";
    const cost = adapter.costHeader === undefined ? undefined : countOf(headers, adapter.costHeader);
    return {
      timesFrom,
      ...(cost === undefined ? {} : { characterCost: cost }),
      ...(ignored.length === 0 ? {} : { ignored }),
    };
  }

  body(headers: ResponseHeaders, onChunk: (chunk: SynthesisChunk) => void): BodyReader {
    const { adapter } = this.#options;
    const give = (audio: Uint8Array, alignment: Alignment | null): void => {
      if (audio.length === 0 && alignment === null) return;
      onChunk({ audio, alignment, normalizedAlignment: null, voiceSegments: [] });
    };
    const type = headerOf(headers, "content-type") ?? "";
    // A proxy says this, or a page where nobody speaks: its bytes would be played.
    if (/^text\/html\b/i.test(type))
      throw this.#unexpected("it is a web page, expected speech: check its url", "upstream_not_speech");
    const reader = adapter.answer(headers, {
      piece: ({ audio: all = NO_AUDIO, isChunk = false, words }) => {
        const isLongFirst = this.#converter.seconds === 0 && all.length > FIRST_BYTES && words === undefined;
        if (isLongFirst) give(this.#converter.push(all.subarray(0, FIRST_BYTES), isChunk), null);
        const audio = isLongFirst ? all.subarray(FIRST_BYTES) : all;
        const converted = audio.length === 0 ? audio : this.#converter.push(audio, isChunk && !isLongFirst);
        const alignment = words === undefined ? null : (this.#matcher?.push(words) ?? null);
        if (adapter.capabilities.mayLoseSentences === true && this.#matcher?.hasLost === true)
          throw truncated("a sentence is missing");
        give(converted, alignment);
      },
      plain: (sampled) => this.#converter.setPlain(sampled),
      fail: ({ status, body }) => {
        throw this.#refusal({ status: status ?? null, headers: {}, body });
      },
    });
    return {
      push: (piece) => reader.push(piece),
      get isComplete() {
        return reader.isComplete === true;
      },
      get billed() {
        return reader.billed;
      },
      end: () => {
        reader.end();
        const rest = this.#converter.finish();
        give(rest, this.#matcher?.finish() ?? null);
        this.#checkWhole();
      },
    };
  }

  refusal(refused: Refused): GatewayError {
    return this.#refusal(refused);
  }

  mayBeTooMany(status: number): boolean {
    return this.#options.adapter.refusals.tooManyStatuses?.includes(status) === true;
  }

  /** Such as an empty account, which some say with the status of too many requests. */
  isRefusalFinal(refused: Refused): boolean {
    return this.#refusal(refused).code !== "upstream_rate_limited";
  }

  /** A voice may be spoken by several upstreams. */
  named(error: GatewayError): GatewayError {
    const { name } = this.#options;
    const { code, message, field, retryAfterMs, cause } = error;
    const isNamed = !/^The upstream\b/.test(message) || message.startsWith(`The upstream ${name}`);
    if (isNamed) return error;
    return new GatewayError(code, message.replace("The upstream", `The upstream ${name}`), {
      ...(field === undefined ? {} : { field }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(cause === undefined ? {} : { cause }),
    });
  }

  close(): void {
    this.#converter.close();
  }

  /** Some services end a response that failed in the middle as if it had ended well. */
  #checkWhole(): void {
    const { seconds } = this.#converter;
    const { blanked } = this.#options;
    if (seconds === 0) {
      if (/[\p{L}\p{N}]/u.test(blanked)) throw truncated("it sent no audio at all, expected speech");
      return;
    }
    const matcher = this.#matcher;
    if (matcher === null || !matcher.hasWords) {
      this.#checkLetters(seconds);
      return;
    }
    const { unsaidLetters, endSeconds } = matcher;
    if (matcher.isTimedToEnd) this.#checkRate(seconds, matcher.toldSeconds);
    const isTooShort = seconds - endSeconds < unsaidLetters * MIN_LETTER_SECONDS;
    if (unsaidLetters >= MIN_UNSAID_LETTERS && isTooShort) throw truncated("the last words are missing");
  }

  /** Without times only what nobody could say is sure: it is cut off or plays too fast, or it plays too slowly. */
  #checkLetters(seconds: number): void {
    const { blanked, request, ignored } = this.#options;
    // Options of the service's own may make it faster or slower.
    if (request.vendorOptions !== undefined) return;
    const speed = (ignored.includes("voice_settings.speed") ? undefined : request.voiceSettings?.speed) ?? 1;
    const letters = countOfMatches(blanked, LETTERS);
    if (letters < MIN_LETTERS) return;
    if (seconds < (letters * MIN_LETTER_SECONDS) / Math.max(1, speed)) {
      const lengths = `its audio takes ${seconds.toFixed(2)} s, too little for ${letters} letters`;
      throw truncated(`${lengths}: it is cut off, or at another rate than it says`);
    }
    const { voicedSeconds } = this.#converter;
    if (voicedSeconds <= (letters * MAX_LETTER_SECONDS) / Math.min(1, speed) || mayBeSpelled(blanked)) return;
    throw this.#otherRate(
      `its audio sounds for ${voicedSeconds.toFixed(2)} s, too long for ${letters} letters`,
    );
  }

  /**
   * Audio that is too short for its words is cut off, or plays too fast: it does where the answer before was as much too short.
   * One that sounds on for too long plays too slowly.
   */
  #checkRate(seconds: number, timesSeconds: number): void {
    const { soundSeconds } = this.#converter;
    const isTooShort = timesSeconds > seconds * RATE_MARGIN + MIN_ODD_SECONDS;
    const isTooLong = soundSeconds > timesSeconds * MOST_SOUND + MIN_ODD_SECONDS;
    if (timesSeconds === 0 || (!isTooShort && !isTooLong)) return;
    const isRepeated = this.#options.onOddRate({ audioSeconds: soundSeconds, timesSeconds });
    const lengths = `its words take ${timesSeconds.toFixed(2)} s and its audio ${soundSeconds.toFixed(2)} s`;
    if (isTooShort && !isRepeated)
      throw truncated(`${lengths}: it is cut off, or at another rate than it says`);
    throw this.#otherRate(lengths);
  }

  #otherRate(lengths: string): GatewayError {
    const what = `The audio of the upstream ${this.#options.name} is at another rate than it says: ${lengths}`;
    const advice = "Set the service to the rate that it is asked for, or name another voice";
    return new GatewayError("upstream_audio_rate", `${what}. ${advice}`);
  }

  #refusal(refused: {
    readonly status: number | null;
    readonly headers: ResponseHeaders;
    readonly body: unknown;
  }): GatewayError {
    const { name, key, adapter, request } = this.#options;
    const secrets = [key, request.text, ...textsOfOptions(request.vendorOptions)];
    return serviceRefusal({ ...refused, name, table: adapter.refusals, voiceId: request.voiceId, secrets });
  }

  #unexpected(what: string, code: ErrorCode = "upstream_protocol"): GatewayError {
    const { name } = this.#options;
    return new GatewayError(code, `The answer of the upstream ${name} can't be used: ${what}`);
  }
}

function mayBeSpelled(text: string): boolean {
  return countOfMatches(text, SMALL_LETTERS) < countOfMatches(text, NOT_BLANK) * SMALL_SHARE;
}

function countOfMatches(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
