/**
 * Several upstreams as one. Voices are asked of the upstream that their prefix names, all others of the first one: it has the
 * list of voices, and all that is passed on.
 */
import { GatewayError } from "../errors.ts";
import { splitUpstreamVoice } from "../protocol/upstream-voice.ts";
import type { UpstreamClient } from "./client.ts";
import type { RegionStats } from "./failover/region.ts";
import { LineDialogue } from "./line-dialogue.ts";
import { failing, type ServiceUpstream } from "./services/service-upstream.ts";
import type { FetchedBody } from "./transport/fetch-body.ts";
import type { Forwarded, ForwardHandlers, ForwardRequest } from "./transport/forward.ts";
import type { UpstreamStats } from "./transport/requester.ts";
import type { SpeechRequest, Synthesis, SynthesisHandlers, SynthesisRequest } from "./types.ts";

/** The services' names differ. */
export class UpstreamRouter implements UpstreamClient {
  readonly #first: UpstreamClient;
  readonly #services: ReadonlyMap<string, ServiceUpstream>;

  constructor(first: UpstreamClient, services: readonly ServiceUpstream[]) {
    this.#first = first;
    this.#services = new Map(services.map((service) => [service.name, service]));
  }

  open(request: SynthesisRequest, handlers: SynthesisHandlers): Synthesis {
    try {
      if (request.kind === "speech") return this.#speak(request, handlers);
      if (request.inputs.every(({ voiceId }) => splitUpstreamVoice(voiceId) === null))
        return this.#first.open(request, handlers);
      // All voices are looked at before the first line is asked for.
      for (const { voiceId } of request.inputs) this.#find(voiceId, request.modelId);
      return new LineDialogue({ upstream: this, request, handlers });
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

  /** Of the first one alone: the others are bounded by what they are set to. */
  limitOpen(max: number): void {
    this.#first.limitOpen(max);
  }

  /** Of all together. */
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
    return [...this.#first.regions(), ...[...this.#services.values()].map((service) => service.region())];
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

  #speak(request: SpeechRequest, handlers: SynthesisHandlers): Synthesis {
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
