/**
 * Several upstreams as one. Voices are asked of the upstream that their prefix names, voices of one's own of those that stand
 * for them, and all others of the first one: it has the list of voices, and all that is passed on.
 */
import { GatewayError } from "../errors.ts";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import { splitUpstreamVoice } from "../protocol/upstream-voice.ts";
import type { RegionStats } from "./failover/region.ts";
import { LineDialogue } from "./line-dialogue.ts";
import { failing, type ServiceUpstream } from "./services/service-upstream.ts";
import type { FetchedBody } from "./transport/fetch-body.ts";
import type { Forwarded, ForwardHandlers, ForwardRequest } from "./transport/forward.ts";
import type { UpstreamStats } from "./transport/requester.ts";
import type { SpeechRequest, Synthesis, SynthesisHandlers, SynthesisRequest } from "./types.ts";
import type { UpstreamClient } from "./upstream-client.ts";
import { OwnVoice, type VoiceFigures, type VoicePlace } from "./voices/own-voice.ts";
import type { VoiceConfig } from "./voices/voice-config.ts";
import { VoiceSpeech } from "./voices/voice-speech.ts";
import { VoiceUpstream } from "./voices/voice-upstream.ts";

export interface UpstreamRouterOptions {
  readonly first: UpstreamClient;
  /** Their names differ. */
  readonly services: readonly ServiceUpstream[];
  /** Voices of one's own; their upstreams are among these. */
  readonly voices: readonly VoiceConfig[];
  /** The model of the first upstream where a request of such a voice names none; "": its own. */
  readonly model: string;
  /** See VoiceSpeechOptions. */
  readonly failoverMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

export class UpstreamRouter implements UpstreamClient {
  readonly #options: UpstreamRouterOptions;
  readonly #first: UpstreamClient;
  readonly #services: ReadonlyMap<string, ServiceUpstream>;
  /** As voices of one's own ask them; null: the first one. */
  readonly #voiceUpstreams = new Map<string | null, VoiceUpstream>();
  readonly #voices: ReadonlyMap<string, OwnVoice>;

  constructor(options: UpstreamRouterOptions) {
    this.#options = options;
    this.#first = options.first;
    this.#services = new Map(options.services.map((service) => [service.name, service]));
    this.#voices = new Map(options.voices.map((voice) => [voice.name, this.#createVoice(voice)]));
  }

  /** Figures of voices of one's own. */
  voices(): VoiceFigures[] {
    return [...this.#voices.values()].flatMap((voice) => voice.figures());
  }

  open(request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    try {
      if (request.kind === "speech") return this.#speak(request, handlers);
      if (request.inputs.every(({ voiceId }) => this.#isOfFirst(voiceId)))
        return this.#first.open(request, handlers);
      // All voices are looked at before the first line is asked for.
      for (const { voiceId } of request.inputs) {
        const voice = this.#voices.get(voiceId);
        if (voice === undefined) this.#find(voiceId, request.modelId);
        else voice.placesFor(request.modelId);
      }
      const mayAskFirst = request.inputs.some(
        ({ voiceId }) => this.#voices.get(voiceId)?.mayAskFirst ?? splitUpstreamVoice(voiceId) === null,
      );
      return new LineDialogue({ upstream: this, request, handlers, mayAskFirst });
    } catch (thrown) {
      if (thrown instanceof GatewayError) return failing(thrown, handlers);
      throw thrown;
    }
  }

  get(path: string): Promise<FetchedBody> {
    return this.#first.get(path);
  }

  forward(request: ForwardRequest, handlers: ForwardHandlers): Forwarded {
    return this.#first.forward(request, handlers);
  }

  /** Bounds the first one alone: the others are bounded by their settings. */
  limitOpen(max: number): void {
    this.#first.limitOpen(max);
  }

  /** Figures of all together. */
  stats(): UpstreamStats {
    const all = [this.#first, ...this.#services.values()].map((upstream) => upstream.stats());
    const sum = (read: (stats: UpstreamStats) => number): number =>
      all.reduce((total, stats) => total + read(stats), 0);
    return {
      open: sum(({ open }) => open),
      queued: sum(({ queued }) => queued),
      refused: sum(({ refused }) => refused),
      connected: sum(({ connected }) => connected),
    };
  }

  regions(): readonly RegionStats[] {
    const withVoices = (
      stats: RegionStats,
      { name, isCounted }: { name: string | null; isCounted: boolean },
    ) => {
      const { isOut = false, failovers = 0 } = this.#voiceUpstreams.get(name) ?? {};
      return {
        ...stats,
        isHealthy: stats.isHealthy && !isOut,
        failovers: stats.failovers + (isCounted ? failovers : 0),
      };
    };
    // Requests of voices that left the first upstream had been at all of its regions, the preferred one stands for them.
    const first = this.#first
      .regions()
      .map((stats, index) => withVoices(stats, { name: null, isCounted: index === 0 }));
    const services = [...this.#services.values()].map((service) =>
      withVoices(service.region(), { name: service.name, isCounted: true }),
    );
    return [...first, ...services];
  }

  /** Where a service can't be reached its first request finds out: the first upstream alone is needed by all. */
  async warm(): Promise<void> {
    const services = Promise.allSettled([...this.#services.values()].map((service) => service.warm()));
    await this.#first.warm();
    await services;
  }

  async close(): Promise<void> {
    await Promise.all([this.#first, ...this.#services.values()].map((upstream) => upstream.close()));
  }

  #isOfFirst(voiceId: string): boolean {
    return !this.#voices.has(voiceId) && splitUpstreamVoice(voiceId) === null;
  }

  #createVoice({ name, upstreamVoices }: VoiceConfig): OwnVoice {
    const places = upstreamVoices.map((voiceId): VoicePlace => {
      const voice = splitUpstreamVoice(voiceId);
      const prefix = voice?.name ?? null;
      return { prefix, voiceId: voice?.id ?? voiceId, upstream: this.#voiceUpstream(prefix) };
    });
    return new OwnVoice(name, places);
  }

  #voiceUpstream(prefix: string | null): VoiceUpstream {
    const upstream = this.#voiceUpstreams.get(prefix) ?? this.#createVoiceUpstream(prefix);
    this.#voiceUpstreams.set(prefix, upstream);
    return upstream;
  }

  #createVoiceUpstream(prefix: string | null): VoiceUpstream {
    const { clock, log, model } = this.#options;
    const first = this.#first;
    if (prefix === null) {
      const regions = first.regions();
      return new VoiceUpstream({
        ...{ clock, log, name: regions.map(({ name }) => name).join(",") },
        isHealthy: () => first.regions().some(({ isHealthy }) => isHealthy),
        open: ({ modelId = model, ...request }, handlers, requestOptions) =>
          first.open({ ...request, ...(modelId === "" ? {} : { modelId }) }, handlers, requestOptions),
      });
    }
    const service = this.#services.get(prefix);
    if (service === undefined) throw new TypeError(`No upstream is called ${prefix}`);
    service.watch();
    return new VoiceUpstream({
      ...{ clock, log, name: prefix },
      isHealthy: () => service.isHealthy,
      open: ({ modelId = "", ...request }, handlers, requestOptions) => {
        const model = splitUpstreamVoice(modelId)?.id;
        return service.open(
          { ...request, ...(model === undefined ? {} : { modelId: model }) },
          handlers,
          requestOptions,
        );
      },
    });
  }

  #speak(request: SpeechRequest, handlers: SynthesisHandlers): Synthesis {
    const voice = this.#voices.get(request.voiceId);
    if (voice !== undefined) {
      const { failoverMs, clock } = this.#options;
      return new VoiceSpeech({ voice, request, handlers, failoverMs, clock });
    }
    const found = this.#find(request.voiceId, request.modelId);
    if (found === null) return this.#first.open(request, handlers);
    const { modelId: _model, ...rest } = request;
    const { service, voiceId, modelId } = found;
    return service.open({ ...rest, voiceId, ...(modelId === undefined ? {} : { modelId }) }, handlers);
  }

  /**
   * The service, and its own ids of voice and model; null: the first upstream's. Throws unknown_voice, and upstream_invalid for
   * a model of another upstream: who may have some models only names one of those, and gets no other.
   */
  #find(voiceId: string, modelId: string | undefined) {
    const voice = splitUpstreamVoice(voiceId);
    if (voice === null) return null;
    const service = this.#services.get(voice.name);
    if (service === undefined) {
      const known = [...this.#services.keys()].map((name) => `${name}:`).join(", ");
      throw new GatewayError(
        "unknown_voice",
        `No upstream is called ${voice.name}: expected a voice that begins with ${known}, or one without a colon`,
        { field: "voice_id" },
      );
    }
    if (modelId === undefined || modelId === "") return { service, voiceId: voice.id };
    const model = splitUpstreamVoice(modelId);
    if (model?.name === voice.name) return { service, voiceId: voice.id, modelId: model.id };
    throw new GatewayError(
      "upstream_invalid",
      `The upstream ${voice.name} can't have this model: expected ${voice.name}:MODEL, or no model_id`,
      { field: "model_id" },
    );
  }
}
