/**
 * A voice of one's own: the voices of upstreams that stand for it, in order of preference, and which of them speaks an
 * utterance. One that failed an utterance is asked no more for it while there is another, and the one that speaks it goes on:
 * what came back meanwhile is heard from the next utterance on.
 */
import { GatewayError } from "../../errors.ts";
import { splitUpstreamVoice } from "../../protocol/upstream-voice.ts";
import type { VoiceUpstream } from "./voice-upstream.ts";

/** A voice of an upstream. */
export interface VoicePlace {
  readonly upstream: VoiceUpstream;
  /** The upstream's name, as models of it begin with; null: the first upstream. */
  readonly prefix: string | null;
  /** The upstream's own id. */
  readonly voiceId: string;
}

/** What came of a place of a voice. */
export interface VoiceFigures {
  readonly voice: string;
  readonly upstream: string;
  /** Answers that were spoken. */
  readonly served: number;
  /** Utterances that another place took over in the middle. */
  readonly switches: number;
}

export class OwnVoice {
  readonly name: string;
  readonly #places: readonly VoicePlace[];
  readonly #served = new Map<VoicePlace, number>();
  readonly #switches = new Map<VoicePlace, number>();
  readonly #routes = new WeakMap<object, VoiceRoute>();

  constructor(name: string, places: readonly VoicePlace[]) {
    this.name = name;
    this.#places = places;
  }

  /** Those that can have the model. Throws upstream_invalid where none can: who may have some models only gets no other. */
  placesFor(modelId: string | undefined): readonly VoicePlace[] {
    if (modelId === undefined || modelId === "") return this.#places;
    const prefix = splitUpstreamVoice(modelId)?.name ?? null;
    const places = this.#places.filter((place) => place.prefix === prefix);
    if (places.length > 0) return places;
    throw new GatewayError(
      "upstream_invalid",
      `No upstream of the voice ${this.name} can have this model: expected a model of one of them, or no model_id`,
      { field: "model_id" },
    );
  }

  /** Whether the first upstream may speak it. */
  get mayAskFirst(): boolean {
    return this.#places.some(({ prefix }) => prefix === null);
  }

  isPreferred(place: VoicePlace): boolean {
    return place === this.#places[0];
  }

  /** The route of the utterance that the request is part of; undefined: it stands alone. */
  routeOf(utterance: object | undefined): VoiceRoute {
    const route = (utterance === undefined ? undefined : this.#routes.get(utterance)) ?? new VoiceRoute();
    if (utterance !== undefined) this.#routes.set(utterance, route);
    return route;
  }

  /** The place's answer is spoken. */
  serve(place: VoicePlace, route: VoiceRoute): void {
    const { spokenBy } = route;
    if (spokenBy !== null && spokenBy !== place) count(this.#switches, spokenBy);
    count(this.#served, place);
    route.serve(place);
  }

  figures(): VoiceFigures[] {
    const ofEach = this.#places.map((place) => ({
      voice: this.name,
      upstream: place.upstream.name,
      served: this.#served.get(place) ?? 0,
      switches: this.#switches.get(place) ?? 0,
    }));
    // Two voices of one upstream are one series.
    return ofEach.flatMap((figures, index) => {
      const isOwn = (other: VoiceFigures): boolean => other.upstream === figures.upstream;
      if (ofEach.findIndex(isOwn) < index) return [];
      const all = ofEach.filter(isOwn);
      const sum = (read: (other: VoiceFigures) => number) =>
        all.reduce((total, other) => total + read(other), 0);
      return [{ ...figures, served: sum(({ served }) => served), switches: sum(({ switches }) => switches) }];
    });
  }
}

/** Which places an utterance has been spoken by, and has failed at. */
export class VoiceRoute {
  readonly #failed = new Set<VoicePlace>();
  #spokenBy: VoicePlace | null = null;

  /** The place whose answer was spoken last. */
  get spokenBy(): VoicePlace | null {
    return this.#spokenBy;
  }

  serve(place: VoicePlace): void {
    this.#spokenBy = place;
  }

  fail(place: VoicePlace): void {
    this.#failed.add(place);
  }

  /** Whether there is a healthy one that has not failed the utterance. */
  hasFresh(places: readonly VoicePlace[]): boolean {
    return places.some((place) => !this.#failed.has(place) && place.upstream.isFit);
  }

  /**
   * The next to ask of those that were not tried: of those that have not failed the utterance, if there are any, the one that
   * speaks it, else the first healthy one, else the one whose failure is longest ago: nothing is refused unasked.
   */
  next(places: readonly VoicePlace[], tried: ReadonlySet<VoicePlace>): VoicePlace | undefined {
    const left = places.filter((place) => !tried.has(place));
    const fresh = left.filter((place) => !this.#failed.has(place));
    const some = fresh.length > 0 ? fresh : left;
    const fit = some.filter(({ upstream }) => upstream.isFit);
    const speaking = fit.find((place) => place === this.#spokenBy);
    return speaking ?? fit[0] ?? longestAgo(some);
  }
}

function longestAgo(places: readonly VoicePlace[]): VoicePlace | undefined {
  return places.reduce<VoicePlace | undefined>(
    (best, place) => (best === undefined || place.upstream.failedMs < best.upstream.failedMs ? place : best),
    undefined,
  );
}

function count(counts: Map<VoicePlace, number>, place: VoicePlace): void {
  counts.set(place, (counts.get(place) ?? 0) + 1);
}
