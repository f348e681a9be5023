/** What the session asks of an upstream and what comes back: the interface, without the HTTP behind it. */
import type { GatewayError } from "../errors.ts";
import type { VendorOptions } from "../protocol/vendor-options.ts";
import type { Alignment, VoiceSegment } from "../timing/alignment.ts";
import type { Subject } from "./governor.ts";

export type { Subject };

/** Passed to the upstream as they are; the upstream judges their ranges. */
export interface VoiceSettings {
  readonly stability?: number;
  readonly similarity_boost?: number;
  readonly style?: number;
  readonly use_speaker_boost?: boolean;
  /** 0.7-1.2. */
  readonly speed?: number;
}

/** An utterance, as far as requests need to know it. */
export interface SpokenIn {
  readonly session?: string;
  /** The session's epoch: it tells two nodes apart that both believe they own the session. */
  readonly epoch?: string;
  readonly id?: string;
}

interface SharedRequest {
  /** An output_format of the upstream's streaming endpoints, e.g. `ulaw_8000`, `pcm_24000`, `opus_48000_64`. */
  readonly outputFormat: string;
  /** Whether to open the `with-timestamps` variant. */
  readonly wantsTiming: boolean;
  readonly modelId?: string;
  readonly languageCode?: string;
  readonly seed?: number;
  readonly applyTextNormalization?: "auto" | "on" | "off";
  /** Language-specific normalization. */
  readonly applyLanguageTextNormalization?: boolean;
  /** Pronunciation dictionaries, at most 3. */
  readonly locators?: readonly {
    readonly pronunciation_dictionary_id: string;
    readonly version_id?: string;
  }[];
  /** false = zero-retention mode upstream (`enable_logging=false`). */
  readonly enableLogging?: boolean;
  /** The client's options by the names of upstreams: those of the one that is asked go into the body of its request. */
  readonly vendorOptions?: VendorOptions;
  /** Among those of its subject that wait for the upstream higher goes first; default 0. Not sent. */
  readonly priority?: number;
  /** So much speech is in hand before this is needed, ms; absent: nothing is heard yet. Told to the embedded service alone. */
  readonly aheadMs?: number;
  /** For whom; default: the gateway itself. Not sent. */
  readonly subject?: Subject | undefined;
  /** What it is a part of: requests that share it are to have one voice, as far as that works. Not sent. */
  readonly utterance?: SpokenIn;
  /** How often it was asked for, this time included; default 1. Not sent. */
  readonly tries?: number;
}

export interface SpeechRequest extends SharedRequest {
  readonly kind: "speech";
  readonly voiceId: string;
  readonly text: string;
  readonly voiceSettings?: VoiceSettings;
  /** Text around this one, for its intonation; refused by some models. */
  readonly previousText?: string;
  readonly nextText?: string;
  /** `request-id`s of earlier requests, at most 3. */
  readonly previousRequestIds?: readonly string[];
}

export interface DialogueRequest extends SharedRequest {
  readonly kind: "dialogue";
  readonly inputs: readonly { readonly text: string; readonly voiceId: string }[];
  readonly settings?: { readonly stability?: number };
}

export type SynthesisRequest = SpeechRequest | DialogueRequest;

export interface SynthesisHead {
  /** The upstream's `request-id` header. */
  readonly requestId?: string;
  /** The upstream's `character-cost` header: characters billed. */
  readonly characterCost?: number;
  /** The upstream's concurrency headers, where it sends them. */
  readonly currentConcurrentRequests?: number;
  readonly maximumConcurrentRequests?: number;
  /** Fields of the request that this service can't do, as the client names them. */
  readonly ignored?: readonly string[];
  /** "response": its times count from its start, at the rate of its audio, and need no repair. "nowhere": it has none. */
  readonly timesFrom?: "response" | "nowhere";
  /** Its times were found in its audio: they are near, and not exact. */
  readonly hasEstimatedTimes?: boolean;
  /** The voice of another upstream that speaks in the place of the preferred one: not to be kept for others. */
  readonly standIn?: string;
}

export interface SynthesisChunk {
  /** Audio bytes in the requested format; may be empty; owned by the receiver from here on. */
  readonly audio: Uint8Array;
  /** Times of the characters of the request text; null where this chunk carries none. */
  readonly alignment: Alignment | null;
  /** Times of the characters after the upstream's text normalization. */
  readonly normalizedAlignment: Alignment | null;
  /** Dialogue only; empty otherwise. */
  readonly voiceSegments: readonly VoiceSegment[];
}

/**
 * Called in order: `requestSent?` (again after each `requestTurnedAway?`), `head`, `chunk`*, `billed?`, then exactly one of `end`
 * and `error`; nothing after it and nothing after `abort()`. Called from the socket's own callback: they must not throw
 * and must not block.
 */
export interface SynthesisHandlers {
  /**
   * The request left for a connected socket (for the latency waterfall). Again where it was asked for again. `firstAudioMs`:
   * so long may this service need for its first audio; not given where nothing is known of that.
   */
  requestSent?(firstAudioMs?: number): void;
  /** It was turned away for too many requests and waits for its turn again; `requestSent` follows once more. */
  requestTurnedAway?(): void;
  head(head: SynthesisHead): void;
  chunk(chunk: SynthesisChunk): void;
  /** What the body says that it bills, in characters; what the head says is not repeated. */
  billed?(characters: number): void;
  /** The response ended cleanly (chunked encoding closed). */
  end(): void;
  error(error: GatewayError): void;
}

/** Most that is read of a response at once, bytes: four seconds of telephone sound, two of it with timing. */
export const READ_BYTES = 32 * 1024;

/** One open synthesis. */
export interface Synthesis {
  /**
   * Stops reading: the upstream's TCP window closes behind it. Called from `chunk`, the rest of what was read together with
   * it may still arrive (at most `READ_BYTES`). What was read and does not is held (over TLS up to two reads) and comes first
   * when it goes on; where the response breaks off, it comes before the error.
   */
  pause(): void;
  resume(): void;
  /** Destroys the request and its body now; no handler is called any more. Idempotent. */
  abort(): void;
}

export interface Upstream {
  /** Calls no handler before it returns; whatever is wrong with the request comes through `error` too. */
  open(request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis;
}
