/**
 * One synthesis of a voice of one's own, by one of its upstreams at a time. An answer is held until its first chunk is there;
 * up to there whatever fails is asked of the next one, also what this one refuses: another may know the voice, or take a
 * longer text. Behind that the answer breaks off, whatever it failed with, and the session asks for the rest from the next
 * word on.
 */
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { stitchInstead } from "../stitching.ts";
import { isUpstreamFault } from "../transport/faults.ts";
import type { SpeechRequest, Synthesis, SynthesisChunk, SynthesisHandlers, SynthesisHead } from "../types.ts";
import { FIRST_UPSTREAM } from "../vendor-options.ts";
import type { OwnVoice, VoicePlace, VoiceRoute } from "./own-voice.ts";

export interface VoiceSpeechOptions {
  readonly voice: OwnVoice;
  readonly request: SpeechRequest;
  readonly handlers: SynthesisHandlers;
  /** Longest wait for a turn, for headers, and for the first piece, where a healthy upstream is left to go to; ms. */
  readonly failoverMs: number;
  readonly clock: Clock;
}

export class VoiceSpeech implements Synthesis, SynthesisHandlers {
  readonly #options: VoiceSpeechOptions;
  readonly #places: readonly VoicePlace[];
  readonly #route: VoiceRoute;
  readonly #tried = new Set<VoicePlace>();
  #place: VoicePlace;
  #current: Synthesis;
  #turnTimer: Timer | null = null;
  /** Until when the upstream that is asked may keep it waiting for its turn, however often it turns it away. */
  #turnEndsMs = 0;
  #timesTurnedAway = 0;
  #isPaused = false;
  #isOver = false;
  /** Not handed on yet. */
  #head: SynthesisHead | null = null;
  #isHandedOn = false;
  /** What to report where all have failed. */
  #reason: GatewayError | null = null;

  /** Throws upstream_invalid where no upstream of the voice can have the model. */
  constructor(options: VoiceSpeechOptions) {
    const { voice, request } = options;
    this.#options = options;
    this.#places = voice.placesFor(request.modelId);
    this.#route = voice.routeOf(request.utterance);
    const first = this.#route.next(this.#places, this.#tried);
    if (first === undefined) throw new TypeError(`The voice ${voice.name} has no places`);
    this.#place = first;
    this.#current = this.#open(first);
  }

  // ---- Synthesis -------------------------------------------------------------------------------------------------

  pause(): void {
    this.#isPaused = true;
    this.#current.pause();
  }
  resume(): void {
    this.#isPaused = false;
    this.#current.resume();
  }
  abort(): void {
    this.#finish();
    this.#current.abort();
  }

  // ---- SynthesisHandlers: the side of the upstream that is asked; one that was given up says nothing any more -------

  requestSent(firstAudioMs?: number): void {
    this.#stopWaiting();
    // With another one to go to, nobody waits as long as a slow engine needs.
    this.#options.handlers.requestSent?.(this.#hasOther ? undefined : firstAudioMs);
  }

  /** Once may be chance. The second time another one begins, unless this one has spoken before: its voice is worth the wait. */
  requestTurnedAway(): void {
    this.#timesTurnedAway += 1;
    if (this.#timesTurnedAway > 1 && this.#route.spokenBy !== this.#place)
      this.#turnEndsMs = this.#options.clock.nowMs();
    this.#awaitTurn();
    this.#options.handlers.requestTurnedAway?.();
  }

  billed(characters: number): void {
    this.#options.handlers.billed?.(characters);
  }

  head(head: SynthesisHead): void {
    const told = this.#withoutOthers(head);
    const { prefix, voiceId } = this.#place;
    const standIn = prefix === null ? voiceId : `${prefix}:${voiceId}`;
    this.#head = this.#options.voice.isPreferred(this.#place) ? told : { ...told, standIn };
  }

  chunk(chunk: SynthesisChunk): void {
    this.#handHead();
    if (!this.#isOver) this.#options.handlers.chunk(chunk);
  }

  end(): void {
    this.#handHead();
    if (this.#isOver) return;
    this.#finish();
    this.#options.handlers.end();
  }

  error(error: GatewayError): void {
    this.#stopWaiting();
    const { handlers } = this.#options;
    this.#place.upstream.fail(error);
    if (!this.#isHandedOn && !this.#isOfContext(error)) {
      this.#route.fail(this.#place);
      this.#reason = reasonOf(this.#reason, error);
      if (error.code !== "draining" && this.#tryNext()) return;
      this.#finish();
      handlers.error(this.#reason);
      return;
    }
    if (this.#isHandedOn) this.#route.fail(this.#place);
    const mayGoOn = this.#isHandedOn && this.#route.hasFresh(this.#places);
    this.#finish();
    handlers.error(mayGoOn ? brokenOff(error) : error);
  }

  // ---- inside ----------------------------------------------------------------------------------------------------

  /** Options for another upstream of the voice are no mistake: that may speak the next time. */
  #withoutOthers({ ignored, ...head }: SynthesisHead): SynthesisHead {
    const names = this.#places.flatMap((place) =>
      place === this.#place ? [] : [`vendor_options.${place.prefix ?? FIRST_UPSTREAM}`],
    );
    const left = ignored?.filter((field) => !names.includes(field)) ?? [];
    return left.length === 0 ? head : { ...head, ignored: left };
  }

  get #hasOther(): boolean {
    return this.#places.some((place) => !this.#tried.has(place) && place.upstream.isFit);
  }

  #open(place: VoicePlace): Synthesis {
    this.#tried.add(place);
    this.#timesTurnedAway = 0;
    this.#head = null;
    const { request, failoverMs, clock } = this.#options;
    this.#turnEndsMs = clock.nowMs() + failoverMs;
    const requestOptions = this.#hasOther ? { headersMs: failoverMs, firstPieceMs: failoverMs } : {};
    this.#awaitTurn();
    return place.upstream.open({ ...request, voiceId: place.voiceId }, this, requestOptions);
  }

  /** Asks the next one, healthy or not. false: all were tried. */
  #tryNext(): boolean {
    return this.#goTo(this.#route.next(this.#places, this.#tried));
  }

  #goTo(next: VoicePlace | undefined): boolean {
    if (next === undefined) return false;
    this.#current.abort();
    this.#place.upstream.failovers += 1;
    this.#place = next;
    this.#current = this.#open(next);
    if (this.#isPaused) this.#current.pause();
    return true;
  }

  /** As long as others have all the places of this one, another upstream may have some. */
  #awaitTurn(): void {
    this.#stopWaiting();
    if (!this.#hasOther) return;
    this.#turnTimer = this.#options.clock.at(this.#turnEndsMs, () => {
      this.#turnTimer = null;
      if (this.#hasOther) this.#tryNext();
    });
  }

  #stopWaiting(): void {
    this.#turnTimer?.cancel();
    this.#turnTimer = null;
  }

  /** It refuses what the request says of its neighbours: the session asks again, and says less. */
  #isOfContext(error: GatewayError): boolean {
    return (
      this.#place.prefix === null &&
      !isUpstreamFault(error) &&
      stitchInstead(this.#options.request, error) !== null
    );
  }

  #handHead(): void {
    if (this.#isHandedOn) return;
    this.#isHandedOn = true;
    const { voice, handlers } = this.#options;
    this.#place.upstream.succeed();
    voice.serve(this.#place, this.#route);
    const head = this.#head;
    this.#head = null;
    if (head !== null) handlers.head(head);
  }

  #finish(): void {
    this.#isOver = true;
    this.#stopWaiting();
  }
}

/** The first, unless only the other one may pass: then asking once more may help. */
function reasonOf(before: GatewayError | null, error: GatewayError): GatewayError {
  return before === null || (error.isRetryable && !before.isRetryable) ? error : before;
}

/** The same request would fail here again, but the voice has another upstream for the rest of it. All was heard at a wrong rate. */
function brokenOff(error: GatewayError): GatewayError {
  const isKept = error.isRetryable || error.code === "upstream_audio_rate";
  return isKept && error.code !== "upstream_rate_limited"
    ? error
    : new GatewayError("upstream_truncated", `${error.message}. Another upstream of the voice goes on`);
}
