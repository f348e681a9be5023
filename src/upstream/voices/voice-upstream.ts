/**
 * An upstream as one of several that a voice of one's own may be spoken by: whether it is fit to be asked, and for how long it
 * is left out because its account is refused. Whoever names it by its prefix still asks it.
 */
import type { ErrorCode, GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import { isUpstreamFault } from "../transport/faults.ts";
import type { RequestOptions } from "../transport/requester.ts";
import type { SpeechRequest, Synthesis, SynthesisHandlers } from "../types.ts";

export interface VoiceUpstreamOptions {
  /** As metrics and the log call it. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether it works, as its requests and checks say. */
  readonly isHealthy: () => boolean;
  /** `request`: its voice is the upstream's own id; its model is named as clients do. */
  readonly open: (
    request: SpeechRequest,
    handlers: SynthesisHandlers,
    requestOptions: RequestOptions,
  ) => Synthesis;
}

/** The key or the plan: no request does better until somebody has done something about it. */
const ACCOUNT_FAULTS: ReadonlySet<ErrorCode> = new Set(["upstream_unauthorized", "upstream_forbidden"]);
/** Nothing that is free to ask says whether a quota is filled up again, so a request finds out. */
const ACCOUNT_OUT_MS = 5 * 60_000;

export class VoiceUpstream {
  readonly name: string;
  /** Requests that went on from here to another upstream of the voice. */
  failovers = 0;
  readonly #options: VoiceUpstreamOptions;
  #failedMs = Number.NEGATIVE_INFINITY;
  #outUntilMs = Number.NEGATIVE_INFINITY;
  #isRefused = false;

  constructor(options: VoiceUpstreamOptions) {
    this.#options = options;
    this.name = options.name;
  }

  /** It works, and its account is not refused. */
  get isFit(): boolean {
    return !this.isOut && this.#options.isHealthy();
  }
  /** Its account is refused. */
  get isOut(): boolean {
    return this.#options.clock.nowMs() < this.#outUntilMs;
  }
  /** When it failed last; -Infinity: never. */
  get failedMs(): number {
    return this.#failedMs;
  }

  open(request: SpeechRequest, handlers: SynthesisHandlers, requestOptions: RequestOptions): Synthesis {
    return this.#options.open(request, handlers, requestOptions);
  }

  /** A request of a voice has failed here. */
  fail(error: GatewayError): void {
    const { clock, log } = this.#options;
    const isAccountFault = ACCOUNT_FAULTS.has(error.code);
    if (isAccountFault || isUpstreamFault(error)) this.#failedMs = clock.nowMs();
    if (!isAccountFault) return;
    this.#outUntilMs = clock.nowMs() + ACCOUNT_OUT_MS;
    if (this.#isRefused) return;
    this.#isRefused = true;
    log.warn(
      { upstream: this.name, code: error.code, detail: error.message },
      "Upstream refuses its key or plan: voices go to their other upstreams, and it is tried again every 5 minutes",
    );
  }

  /** A request of a voice was answered. */
  succeed(): void {
    if (!this.#isRefused) return;
    this.#isRefused = false;
    this.#outUntilMs = Number.NEGATIVE_INFINITY;
    this.#options.log.info({ upstream: this.name }, "Upstream takes its key and plan again");
  }
}
