/**
 * The voices of a service: those that it lists itself as far as they may be asked for, and those that its entry in the file
 * names. A list is believed for a minute. One that can't be had now costs the service's own part, and what was listed before stays.
 */
import { type GatewayError, toGatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { ServiceVoice } from "./listed-voices.ts";
import { isListedVoice } from "./service-config.ts";

export interface ServiceVoicesOptions {
  readonly clock: Clock;
  /** As ServiceConfig.voices. */
  readonly named: readonly string[];
  /** Asks the service; null: it lists none. Rejects with what went wrong. */
  readonly ask: (() => Promise<readonly ServiceVoice[]>) | null;
}

export interface ServiceVoiceList {
  readonly voices: readonly ServiceVoice[];
  /** Why the service's own list is missing, or may be old; null: it is not. */
  readonly failure: GatewayError | null;
}

/** How long a list is believed, and how long it is not asked for again after a failure. */
const LISTED_MS = 60_000;
const FAILED_MS = 10_000;

export class ServiceVoices {
  readonly #options: ServiceVoicesOptions;
  #listed: readonly ServiceVoice[] = [];
  #list: Promise<ServiceVoiceList> | null = null;
  /** Then it is asked for again; while it is asked for, never. */
  #untilMs = 0;

  constructor(options: ServiceVoicesOptions) {
    this.#options = options;
  }

  list(): Promise<ServiceVoiceList> {
    if (this.#list === null || this.#options.clock.nowMs() >= this.#untilMs) {
      this.#untilMs = Number.POSITIVE_INFINITY;
      this.#list = this.#ask();
    }
    return this.#list;
  }

  async #ask(): Promise<ServiceVoiceList> {
    const { ask, clock, named } = this.#options;
    let failure: GatewayError | null = null;
    try {
      this.#listed = (await ask?.()) ?? [];
    } catch (thrown) {
      failure = toGatewayError(thrown);
    }
    this.#untilMs = clock.nowMs() + (failure === null ? LISTED_MS : FAILED_MS);
    const listed = this.#listed.filter(({ id }) => isListedVoice(id, named));
    const ids = new Set(listed.map(({ id }) => id));
    const more = named.filter((id) => !id.endsWith("*") && !ids.has(id));
    return { voices: [...listed, ...more.map((id) => ({ id, name: "", labels: {} }))], failure };
  }
}
