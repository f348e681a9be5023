/** The services that there are adapters for. */
import type { Scheme } from "../transport/base-url.ts";
import type { ServiceAdapter, ServiceSettings } from "./adapter.ts";
import { createAzure } from "./azure/azure.ts";
import { createCartesia } from "./cartesia/cartesia.ts";
import { createDeepgram } from "./deepgram/deepgram.ts";
import { createHume } from "./hume/hume.ts";
import { createInworld } from "./inworld/inworld.ts";
import { createKokoro } from "./kokoro/kokoro.ts";
import { createOpenAi } from "./openai/openai.ts";
import { createPiper } from "./piper/piper.ts";
import { createRime } from "./rime/rime.ts";
import type { ServiceConfig } from "./service-config.ts";
import { ServiceUpstream, type ServiceUpstreamOptions } from "./service-upstream.ts";
import { createSoniox } from "./soniox/soniox.ts";
import { createSpeechify } from "./speechify/speechify.ts";
import { createWyoming } from "./wyoming/wyoming.ts";
import { createXai } from "./xai/xai.ts";

export interface Service {
  /** Where it is, unless it is said; null: it has to be said. */
  readonly url: string | null;
  readonly key: "needed" | "optional" | "none";
  /** What its address begins with; default http. */
  readonly scheme?: Scheme;
  create(settings: ServiceSettings): ServiceAdapter;
}

/** By what `service` names. */
export const SERVICES: Readonly<Record<string, Service>> = {
  cartesia: { url: "https://api.cartesia.ai", key: "needed", create: createCartesia },
  inworld: { url: "https://api.inworld.ai", key: "needed", create: createInworld },
  hume: { url: "https://api.hume.ai", key: "needed", create: createHume },
  speechify: { url: "https://api.speechify.ai", key: "needed", create: createSpeechify },
  kokoro: { url: null, key: "optional", create: createKokoro },
  openai: { url: null, key: "optional", create: createOpenAi },
  deepgram: { url: "https://api.deepgram.com", key: "needed", create: createDeepgram },
  piper: { url: null, key: "none", create: createPiper },
  rime: { url: "wss://users-ws.rime.ai", key: "needed", scheme: "ws", create: createRime },
  xai: { url: "wss://api.x.ai", key: "needed", scheme: "ws", create: createXai },
  soniox: { url: "wss://tts-rt.soniox.com", key: "needed", scheme: "ws", create: createSoniox },
  azure: { url: null, key: "needed", scheme: "ws", create: createAzure },
  wyoming: { url: null, key: "none", scheme: "wyoming", create: createWyoming },
};

export type AskingOptions = Pick<
  ServiceUpstreamOptions,
  "maxQueued" | "timeoutMs" | "patienceMs" | "log" | "clock" | "onRead" | "ledger"
>;

/** Throws invalid_config. */
export function createServiceUpstream(config: ServiceConfig, asking: AskingOptions): ServiceUpstream {
  const { service: serviceName, ...settings } = config;
  const service = SERVICES[serviceName];
  if (service === undefined) throw new TypeError(`No adapter is called ${serviceName}`);
  return new ServiceUpstream({ ...asking, ...settings, adapter: service.create(settings) });
}
