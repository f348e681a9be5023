/** A text that is synthesized ahead: asks for its segments one after the other, and keeps all that comes. */

import { bytesPerMs } from "../../audio/formats.ts";
import { type GatewayError, toGatewayError } from "../../errors.ts";
import type { StitchBy } from "../../upstream/stitching.ts";
import type { SynthesisChunk } from "../../upstream/types.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { Need } from "../route.ts";
import type { SessionDeps } from "../session-deps.ts";
import { chooseFormat, openAttempt } from "../synthesis/segment-request.ts";
import type { UpstreamAttempt } from "../synthesis/upstream-attempt.ts";
import { whenSettled } from "../tape/tape.ts";
import type { PreparedAudio, PreparedSegment } from "./prepared-audio.ts";

export interface PreparedSpeechOptions {
  readonly deps: SessionDeps;
  /** The utterance of the text; it is not queued, and only asked for. */
  readonly utterance: Utterance;
  readonly needs: readonly Need[];
  /** So many bytes have come so far. Throws where they are too many. */
  readonly onBytes: (bytes: number) => void;
  readonly onDone: (audio: PreparedAudio) => void;
  readonly onFailed: (error: GatewayError) => void;
}

export class PreparedSpeech {
  readonly #options: PreparedSpeechOptions;
  readonly #stitchBy = new WeakMap<Utterance, StitchBy>();
  readonly #segments: PreparedSegment[] = [];
  #attempt: UpstreamAttempt | null = null;
  #bytes = 0;
  #isOver = false;

  constructor(options: PreparedSpeechOptions) {
    this.#options = options;
    const { deps, utterance } = options;
    const begin = (voice: string): void => {
      if (this.#isOver) return;
      utterance.useVoice(voice);
      chooseFormat(deps, utterance, { needs: options.needs });
      // Opus could be cut at its packets only, and made no louder.
      if (utterance.sourceFormat.startsWith("opus")) utterance.chooseSourceFormat("pcm_24000");
      this.#askNext();
    };
    const voice = utterance.namesVoice ? Promise.resolve("") : deps.defaultVoice();
    const failed = (thrown: unknown): void => this.#fail(toGatewayError(thrown));
    const done = (name: string): void => {
      try {
        begin(name);
      } catch (thrown) {
        failed(thrown);
      }
    };
    whenSettled(deps.tape, voice, { done, failed });
  }

  /** Idempotent. */
  close(): void {
    this.#isOver = true;
    this.#attempt?.abort();
    this.#attempt = null;
  }

  #askNext(): void {
    const { deps, utterance, onDone } = this.#options;
    const segment = utterance.takeSegment();
    if (segment === undefined) {
      this.#isOver = true;
      const { sourceFormat } = utterance;
      const ms = this.#bytes / bytesPerMs(sourceFormat);
      const [voiceId = ""] = utterance.voiceIds;
      onDone({ sourceFormat, voiceId, segments: this.#segments, ms });
      return;
    }
    this.#attempt = openAttempt(deps, {
      utterance,
      segment,
      requestIds: utterance.requestIds,
      wantsTiming: true,
      stitchBy: this.#stitchBy,
      onBilled: (characters) => utterance.noteBilled(characters),
      onNews: () => this.#progress(),
    });
  }

  /** Nothing is taken before all has come, so that what breaks off is asked for again. */
  #progress(): void {
    const attempt = this.#attempt;
    if (attempt === null || this.#isOver) return;
    try {
      this.#options.onBytes(this.#bytes + attempt.waitingBytes);
    } catch (thrown) {
      this.#fail(toGatewayError(thrown));
      return;
    }
    if (attempt.error !== null) this.#fail(attempt.error);
    else if (attempt.isComplete) {
      this.#keep(attempt);
      this.#askNext();
    }
  }

  #keep(attempt: UpstreamAttempt): void {
    this.#bytes += attempt.waitingBytes;
    const chunks: SynthesisChunk[] = [];
    for (let chunk = attempt.take(); chunk !== undefined; chunk = attempt.take()) {
      // A copy: what an HTTP client hands over may be a small part of what it keeps.
      chunks.push({ ...chunk, audio: Uint8Array.from(chunk.audio) });
    }
    if (attempt.requestId !== null) this.#options.utterance.noteRequest(attempt.requestId);
    const { requestId, timing, hasSteadyTimes, hasNoTimes, standIn } = attempt;
    this.#segments.push({ requestId, timing, hasSteadyTimes, hasNoTimes, standIn, chunks });
    this.#attempt = null;
  }

  #fail(error: GatewayError): void {
    if (this.#isOver) return;
    this.close();
    this.#options.onFailed(error);
  }
}
