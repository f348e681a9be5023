/**
 * What makes another speech service an upstream: how a request for speech is written in its words, how its answer is read,
 * what it can do, and what its refusals mean. One folder for each service. What all have in common (connections, limits,
 * deadlines, formats, times of characters) is service-upstream.ts.
 */
import type { Sampled } from "../../audio/containers/wav-stripper.ts";
import type { ErrorCode } from "../../errors.ts";
import type { ResponseHeaders } from "../headers.ts";
import type { SocketLine } from "../transport/socket-line.ts";
import type { BodyReader } from "../transport/speech-stream.ts";
import type { SpeechRequest } from "../types.ts";
import type { VoiceListing } from "./listed-voices.ts";
import type { ServiceWord } from "./word-matcher.ts";

export interface ServiceAdapter {
  readonly capabilities: Capabilities;
  /** How it is spoken with where that is not HTTP. Its answers say where they end (`isComplete`). */
  readonly line?: SocketLine;
  /** Sent with every request, its key among them: names and values in a row. */
  readonly headers: readonly string[];
  /** The header of its answers that says what it bills, in characters. Default: it does not say it. */
  readonly costHeader?: string;
  /** A small GET that costs nothing, for `voicewire doctor`. */
  readonly checkPath: string;
  /** Where it lists its voices; default: it lists none. */
  readonly voices?: VoiceListing;
  /** `request`: its voice is the service's own id. `format`: what to ask for. */
  request(request: SpeechRequest, format: Sampled): ServiceRequest;
  /** Reads the body of a 200. Throws upstream_protocol where the headers say that it is something else. */
  answer(headers: ResponseHeaders, sink: AnswerSink): BodyReader;
  readonly refusals: RefusalTable;
}

export interface Capabilities {
  /** What its times are of; `none`: it gives none. */
  readonly times: "character" | "word" | "none";
  /** What it makes by itself, for any voice. */
  readonly formats: readonly ServiceFormat[];
  /** Fields of a request that it acts on, beside voice and text. What is not listed is named to the client. */
  readonly settings: readonly Setting[];
  /** Whether it can be kept from keeping the text: it is an engine of one's own. */
  readonly isLocal: boolean;
  /** What it does with `<break time="1s"/>`. Other tags never leave: services read them aloud. */
  readonly breaks: "taken" | "ignored";
  /** Requests that may be open while nothing is known of its limit. */
  readonly startLimit: number;
  /** Most that may be open, where it is not set: an engine of one's own makes one after the other. */
  readonly maxOpen?: number;
  /** Longest wait for the first audio, ms, where it is longer than anybody waits for the vendor. */
  readonly firstAudioMs?: number;
  /** It leaves out a sentence that fails, and says nothing. Default false. */
  readonly mayLoseSentences?: boolean;
  /** Longest text, UTF-16 code units. */
  readonly maxChars?: number;
}

/** As the client names them. */
export type Setting =
  | "voice_settings.speed"
  | "voice_settings.stability"
  | "voice_settings.similarity_boost"
  | "voice_settings.style"
  | "voice_settings.use_speaker_boost"
  | "language_code"
  | "seed"
  | "apply_text_normalization"
  | "apply_language_text_normalization"
  | "pronunciation_dictionary_locators";

export interface ServiceFormat {
  readonly codec: "pcm" | "ulaw" | "alaw";
  /** Hz. */
  readonly sampleRates: readonly number[];
}

/** What a service's upstream is set to. */
export interface ServiceSettings {
  /** What voices of it begin with. */
  readonly name: string;
  readonly key: string;
  readonly baseUrl: string;
  /** "": the service's own, or this adapter's. */
  readonly model: string;
  /** Rate of its PCM without a header; null: not known. */
  readonly sampleRate: number | null;
}

export interface ServiceRequest {
  /** From the slash after the base URL's path on. */
  readonly path: string;
  /** Beside those of the adapter. */
  readonly headers?: readonly string[];
  /** JSON; a list: the messages that are sent on a socket. */
  readonly body: string | readonly string[];
  /** Settings that the service has, but not with these values. */
  readonly ignored?: readonly Setting[];
  /** What its samples are where no header says it; null: a WAV header has to. */
  readonly audio: Sampled | null;
}

export interface AnswerSink {
  /**
   * What came together: audio, which begins a chunk of the service's own where `isChunk`, and words, in order. Times count
   * from the start of the answer's audio.
   */
  piece(piece: {
    readonly audio?: Uint8Array;
    readonly isChunk?: boolean;
    readonly words?: readonly ServiceWord[];
  }): void;
  /** What samples without a header are, where the answer says it: before the first of them. */
  plain(sampled: Sampled): void;
  /** The service says in the middle of its answer that it has failed: throws what that means. `status`: where it names one. */
  fail(failure: { readonly status?: number | undefined; readonly body: unknown }): never;
}

/** What the words of a service's errors mean. */
export interface RefusalTable {
  /** What may be its code words in the JSON of an error. */
  codesOf(body: Readonly<Record<string, unknown>>): readonly unknown[];
  readonly meanings: Readonly<Record<string, Meaning>>;
  /** Statuses beside 429 under which it may say that there are too many requests: its code words decide. Default: none. */
  readonly tooManyStatuses?: readonly number[];
}

export interface Meaning {
  readonly code: ErrorCode;
  /** As the client names it. */
  readonly field?: string;
}
