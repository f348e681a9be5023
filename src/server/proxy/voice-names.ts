/** What OpenAI's and jambonz's requests call a voice (an id, a name of the upstream's, one of OpenAI's), as the upstream's id. */
import { type ErrorCode, GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import {
  type ListedVoice,
  type OpenAiSpeechRequest,
  parseVoiceList,
  voiceOf,
} from "../../protocol/openai.ts";
import { splitUpstreamVoice } from "../../protocol/upstream-voice.ts";

export interface VoiceNamesOptions {
  readonly clock: Clock;
  /** GETs a path of the upstream with the key added; rejects with GatewayError. */
  readonly get: (path: string) => Promise<{ readonly status: number; readonly body: Buffer }>;
  /** Voice ids for names, before any other rule. */
  readonly voices?: Readonly<Record<string, string>>;
  /** Voices that several upstreams may speak, whose names win over those of the list; default: none. */
  readonly ownVoices?: ReadonlySet<string>;
}

/** How long the upstream's voice list is believed. */
const VOICES_MS = 60_000;
/** What its refusals mean; any other status: upstream_failed. */
const REFUSALS: Readonly<Record<number, ErrorCode>> = {
  401: "upstream_unauthorized",
  402: "upstream_forbidden",
  403: "upstream_forbidden",
  429: "upstream_rate_limited",
};
/** What the upstream's own ids look like: such a name needs no list, nor does a voice of another upstream. */
const VOICE_ID = /^[A-Za-z0-9]{20}$/;

/** What a voice name means, from a list that is asked for at most once a minute. */
export class VoiceNames {
  readonly #options: VoiceNamesOptions;
  #list: Promise<ListedVoice[]> | null = null;
  #listedMs = 0;

  constructor(options: VoiceNamesOptions) {
    this.#options = options;
  }

  /** Rejects with unknown_voice, or what the upstream answered. */
  async idOf(voice: OpenAiSpeechRequest["voice"]): Promise<string> {
    if ("id" in voice) return voice.id;
    const { voices = {}, ownVoices } = this.#options;
    const configured = Object.hasOwn(voices, voice.name) ? voices[voice.name] : undefined;
    if (configured !== undefined) return configured;
    if (ownVoices?.has(voice.name) === true) return voice.name;
    if (VOICE_ID.test(voice.name) || splitUpstreamVoice(voice.name) !== null) return voice.name;
    const found = voiceOf(voice.name, await this.#voices());
    if (found !== undefined) return found;
    throw new GatewayError(
      "unknown_voice",
      "Field 'voice' is not valid: it is no name or id that GET /voices lists, and no name of OpenAI's",
      { field: "voice" },
    );
  }

  /** The upstream's voices. Rejects with what it answered. */
  list(): Promise<readonly ListedVoice[]> {
    return this.#voices();
  }

  #voices(): Promise<ListedVoice[]> {
    const nowMs = this.#options.clock.nowMs();
    if (this.#list === null || nowMs - this.#listedMs > VOICES_MS) {
      this.#listedMs = nowMs;
      const list = this.#ask();
      this.#list = list;
      // What failed is asked again.
      list.catch(() => {
        if (this.#list === list) this.#list = null;
      });
    }
    return this.#list;
  }

  async #ask(): Promise<ListedVoice[]> {
    const { status, body } = await this.#options.get("/v1/voices");
    if (status === 200) return parseVoiceList(body.toString("utf8"));
    const code = REFUSALS[status] ?? "upstream_failed";
    const isOfKey = code === "upstream_unauthorized" || code === "upstream_forbidden";
    const hint = isOfKey ? ": check upstream-key, its region and what it may do" : "";
    throw new GatewayError(code, `The upstream's voice list answered ${status}, expected 200${hint}`);
  }
}
