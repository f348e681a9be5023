/** Another speech service as an upstream: its adapter, and what all services have in common. */
import { createStreamEncoder, openEncoder, type StreamEncoder } from "../../audio/containers/encode.ts";
import { parseUpstreamFormat, type UpstreamFormat } from "../../audio/formats.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import type { LedgerSink } from "../../ledger/entries.ts";
import type { CheckResult } from "../failover/health-check.ts";
import type { RegionStats } from "../failover/region.ts";
import { WatchedHealth } from "../failover/watched-health.ts";
import { RequestCost } from "../request-cost.ts";
import { isUpstreamFault } from "../transport/faults.ts";
import { isFilteredKey } from "../transport/key-filter.ts";
import { Requester, type RequestOptions, type UpstreamStats } from "../transport/requester.ts";
import { SpeechStream } from "../transport/speech-stream.ts";
import type { SpeechRequest, Synthesis, SynthesisHandlers } from "../types.ts";
import { othersOptions, withVendorOptions } from "../vendor-options.ts";
import type { Capabilities, ServiceAdapter, ServiceRequest, Setting } from "./adapter.ts";
import { chooseFormat } from "./audio-converter.ts";
import { parseOrUndefined } from "./json-values.ts";
import type { ServiceVoice, VoiceListing } from "./listed-voices.ts";
import { sentText } from "./sent-text.ts";
import { isListedVoice } from "./service-config.ts";
import { ServiceDialect } from "./service-dialect.ts";
import { serviceRefusal } from "./service-refusal.ts";
import { type ServiceVoiceList, ServiceVoices } from "./service-voices.ts";
import { fetchSmallAnswer } from "./small-answer.ts";

export interface ServiceUpstreamOptions {
  /** What its voices begin with. */
  readonly name: string;
  readonly adapter: ServiceAdapter;
  readonly baseUrl: string;
  /** For nothing but keeping it out of messages. */
  readonly key: string;
  /** Voices that may be asked for: ids, or beginnings that end in `*`. An empty list allows all. */
  readonly voices: readonly string[];
  /** Most requests open at once; null: as many as the service is known to take. */
  readonly maxOpen: number | null;
  /** Where it is written down what requests cost. Default: nowhere. */
  readonly ledger?: LedgerSink | undefined;
  readonly maxQueued: number;
  readonly timeoutMs: number;
  readonly patienceMs: number;
  readonly log: Logger;
  readonly clock: Clock;
  readonly onRead: () => void;
}

/** Where neither the service nor its settings say one. */
const MAX_OPEN = 256;
/** Longest wait for the answer to a check, ms. */
const CHECK_MS = 3000;
/** Answered in a row before it is asked again: to go to it and back is heard as another voice each time. */
const CHECKS_TO_RISE = 2;
/** Longest list of voices: Wyoming servers may name all that they could download. */
const MAX_LIST_BYTES = 4 * 1024 * 1024;
/** Under which a service says that it has no such path. */
const NO_LIST: ReadonlySet<number> = new Set([404, 405, 501]);
/** Answers whose audio is too short by the same factor, as far as it can be measured, are at another rate. */
const SAME_RATIO = 0.03;
/** Series of one metric. */
const MAX_LIMITS = 20;

/** A request of speech whose voice is the service's own id. */
export class ServiceUpstream {
  readonly name: string;
  readonly #options: ServiceUpstreamOptions;
  readonly #requester: Requester;
  readonly #health: WatchedHealth;
  readonly #voices: ServiceVoices;
  #requests = 0;
  /** Length of audio to that of its times, in the last answer in which they did not agree. */
  #oddRatio = Number.NaN;

  /** Throws invalid_config. */
  constructor(options: ServiceUpstreamOptions) {
    const { name, adapter, clock, log, maxOpen } = options;
    const { startLimit, maxOpen: most = MAX_OPEN } = adapter.capabilities;
    this.name = name;
    this.#options = options;
    this.#health = new WatchedHealth({
      ...{ name, clock, log, checksToRise: CHECKS_TO_RISE },
      check: () => this.#checkHealth(),
    });
    this.#requester = new Requester({
      ...options,
      line: adapter.line,
      maxConnections: maxOpen ?? most,
      startLimit: maxOpen ?? startLimit,
      isAdditive: true,
      onOutcome: (fault) => this.#health.onOutcome(fault),
    });
    const listing = adapter.voices;
    this.#voices = new ServiceVoices({
      ...{ clock, named: options.voices },
      ask: listing === undefined ? null : () => this.#askVoices(listing),
    });
  }

  /** That may be asked for, as far as they are known. */
  voices(): Promise<ServiceVoiceList> {
    return this.#voices.list();
  }

  /** See WatchedHealth.watch. */
  watch(): void {
    this.#health.watch();
  }

  get isHealthy(): boolean {
    return this.#health.isUp;
  }

  /** As UpstreamClient.open. */
  open(request: SpeechRequest, handlers: SynthesisHandlers, requestOptions: RequestOptions = {}): Synthesis {
    try {
      return this.#open(request, handlers, requestOptions);
    } catch (thrown) {
      return failing(toGatewayError(thrown), handlers);
    }
  }

  stats(): UpstreamStats {
    return this.#requester.stats();
  }

  region(): RegionStats {
    const { open, queued } = this.#requester.stats();
    return {
      name: this.name,
      isHealthy: this.#health.isUp,
      requests: this.#requests,
      failovers: 0,
      limits: this.#requester.limits(MAX_LIMITS),
      ...{ open, queued, maxOpen: this.#requester.maxOpen },
      errorsLastMinute: this.#health.errorsLastMinute,
      behindMs: 0,
    };
  }

  /** Asks for something small; the status, whatever it is. Rejects where nothing answers. */
  check(requestOptions: RequestOptions = {}): Promise<number> {
    const { adapter, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      let answered = 0;
      this.#requester.begin({
        method: "GET",
        path: adapter.checkPath,
        headers: adapter.headers,
        body: null,
        receiver: {
          sent: () => undefined,
          head: (status) => {
            answered = status;
          },
          data: () => undefined,
          end: () => resolve(answered),
          error: (error) => (answered === 0 ? reject(error) : resolve(answered)),
        },
        wanted: { group: null, priority: 0 },
        patienceMs: 0,
        headersMs: timeoutMs,
        ...requestOptions,
      });
    });
  }

  warm(): Promise<void> {
    return this.#requester.warm();
  }

  close(): Promise<void> {
    this.#health.close();
    return this.#requester.close();
  }

  /** Rejects with what the service answered. */
  async #askVoices({ path, read }: VoiceListing): Promise<readonly ServiceVoice[]> {
    const { name, adapter, clock, key } = this.#options;
    const { status, headers, body } = await fetchSmallAnswer({
      ...{ clock, deadlineMs: CHECK_MS, maxBytes: MAX_LIST_BYTES },
      begin: (receiver) =>
        this.#requester.begin({
          ...{ method: "GET", path, headers: adapter.headers, body: null, receiver },
          wanted: { group: null, priority: 0 },
          patienceMs: 0,
          // It says little of whether it speaks.
          onOutcome: () => undefined,
        }),
    });
    if (NO_LIST.has(status)) return [];
    if (status !== 200) {
      const table = adapter.refusals;
      throw serviceRefusal({ ...{ name, table, status, headers, body }, voiceId: null, secrets: [key] });
    }
    // A service that repeats its key would give it to all who may see the list.
    const list =
      isFilteredKey(key) && body.includes(key) ? undefined : parseOrUndefined(body.toString("utf8"));
    if (list !== undefined) return read(list);
    throw new GatewayError(
      "upstream_protocol",
      `The upstream ${name} lists its voices in what can't be read`,
    );
  }

  /** Any answer below 500 is one: whether it takes the key, its requests say. */
  async #checkHealth(): Promise<CheckResult> {
    try {
      // Judged by whoever watches: an answer to a check says less than one to a request.
      const status = await this.check({
        headersMs: CHECK_MS,
        timeoutMs: CHECK_MS,
        onOutcome: () => undefined,
      });
      return status < 500 ? null : "upstream_failed";
    } catch (thrown) {
      const error = toGatewayError(thrown);
      return isUpstreamFault(error) ? error.code : undefined;
    }
  }

  #open(request: SpeechRequest, handlers: SynthesisHandlers, requestOptions: RequestOptions): Synthesis {
    const { adapter } = this.#options;
    const { capabilities } = adapter;
    this.#check(request);
    const format = formatOf(request.outputFormat);
    const { sent, blanked, hasIgnored } = sentText(request.text, capabilities.breaks);
    const asked = adapter.request({ ...request, text: sent }, chooseFormat(format, capabilities.formats));
    // In the requests of others there is no one place for them.
    const takesOptions = adapter.line === undefined && typeof asked.body === "string";
    const body = takesOptions ? withVendorOptions(asked.body, this.name, request.vendorOptions) : asked.body;
    const ignored = [
      ...othersOptions(takesOptions ? this.name : null, request.vendorOptions),
      ...ignoredOf(request, capabilities),
      ...(asked.ignored ?? []),
      ...(hasIgnored ? ["text (markup)"] : []),
    ];
    const begin = (encoder: StreamEncoder): SpeechStream => {
      const { name, key } = this.#options;
      const dialect = new ServiceDialect({
        ...{ name, key, adapter, request, asked, blanked, ignored, format, encoder },
        onOddRate: ({ audioSeconds, timesSeconds }) => {
          this.#options.log.warn(
            { upstream: name, audio_s: audioSeconds, times_s: timesSeconds },
            "Audio of the upstream is not as long as its words: it is cut off, or at another rate than it says",
          );
          const before = this.#oddRatio;
          this.#oddRatio = audioSeconds / timesSeconds;
          return Math.abs(this.#oddRatio / before - 1) < SAME_RATIO;
        },
      });
      const { ledger } = this.#options;
      const place = { upstream: name, region: name };
      const cost = ledger === undefined ? null : new RequestCost(ledger, request, place);
      const stream = new SpeechStream(dialect, handlers, cost);
      try {
        stream.attach(this.#begin({ ...asked, body }, { request, stream, requestOptions }));
      } catch (thrown) {
        encoder.close();
        throw thrown;
      }
      return stream;
    };
    if (format.codec !== "mp3") return begin(openEncoder(format));
    return later(
      createStreamEncoder(format.name).then((encoder) => ({ encoder, begin })),
      handlers,
    );
  }

  /** Throws what is wrong with the request before anything is asked. */
  #check({ voiceId, text, enableLogging }: SpeechRequest): void {
    const { name, adapter, voices } = this.#options;
    const { isLocal, maxChars = Number.POSITIVE_INFINITY } = adapter.capabilities;
    if (voiceId === "" || !isListedVoice(voiceId, voices)) {
      const expected =
        voices.length === 0 ? `${name}:VOICE` : `one of the voices that upstreams lists for it`;
      throw new GatewayError(
        "unknown_voice",
        `The upstream ${name} has no such voice: expected ${expected}`,
        {
          field: "voice_id",
        },
      );
    }
    if (enableLogging === false && !isLocal) {
      const what = `The upstream ${name} can't be kept from keeping texts: expected enable_logging true, or another voice`;
      throw new GatewayError("upstream_invalid", what, { field: "enable_logging" });
    }
    if (text.length > maxChars) {
      const what = `The upstream ${name} takes at most ${maxChars} characters, and the text has ${text.length}`;
      throw new GatewayError("text_too_long", what, { field: "text" });
    }
  }

  #begin(
    asked: ServiceRequest,
    {
      request: { priority = 0, subject },
      stream,
      requestOptions,
    }: {
      readonly request: SpeechRequest;
      readonly stream: SpeechStream;
      readonly requestOptions: RequestOptions;
    },
  ) {
    const { name, adapter, patienceMs, timeoutMs } = this.#options;
    const firstMs = Math.max(timeoutMs, adapter.capabilities.firstAudioMs ?? 0);
    const contentType = adapter.line === undefined ? ["content-type", "application/json"] : [];
    this.#requests += 1;
    this.#health.use();
    return this.#requester.begin({
      method: adapter.line === undefined ? "POST" : "GET",
      path: asked.path,
      body: asked.body,
      headers: [...adapter.headers, ...(asked.headers ?? []), ...contentType],
      receiver: stream,
      // Accounts are limited, and not their models.
      wanted: { group: name, priority, subject },
      patienceMs,
      headersMs: firstMs,
      firstPieceMs: firstMs,
      ...requestOptions,
    });
  }
}

/** Settings that the client has named and the service can't do. */
function ignoredOf(request: SpeechRequest, { settings }: Capabilities): Setting[] {
  const { voiceSettings = {}, applyTextNormalization: normalization } = request;
  const named: readonly (readonly [Setting, unknown])[] = [
    ["voice_settings.speed", voiceSettings.speed],
    ["voice_settings.stability", voiceSettings.stability],
    ["voice_settings.similarity_boost", voiceSettings.similarity_boost],
    ["voice_settings.style", voiceSettings.style],
    ["voice_settings.use_speaker_boost", voiceSettings.use_speaker_boost],
    ["language_code", request.languageCode],
    ["seed", request.seed],
    // `auto` is whatever the service does.
    ["apply_text_normalization", normalization === "auto" ? undefined : normalization],
    ["apply_language_text_normalization", request.applyLanguageTextNormalization],
    ["pronunciation_dictionary_locators", request.locators],
  ];
  return named.flatMap(([name, value]) => (value === undefined || settings.includes(name) ? [] : [name]));
}

function formatOf(name: string): UpstreamFormat {
  const format = parseUpstreamFormat(name);
  if (format !== undefined) return format;
  throw new GatewayError(
    "unknown_format",
    `Output format ${JSON.stringify(name.slice(0, 40))} is not known`,
    {
      field: "output_format",
    },
  );
}

/** A synthesis that fails with this, after it was returned. */
export function failing(error: GatewayError, handlers: SynthesisHandlers): Synthesis {
  let isAborted = false;
  queueMicrotask(() => {
    if (!isAborted) handlers.error(error);
  });
  return {
    pause: () => undefined,
    resume: () => undefined,
    abort: () => {
      isAborted = true;
    },
  };
}

/** A synthesis that begins once its encoder is there. */
function later(
  ready: Promise<{ readonly encoder: StreamEncoder; readonly begin: (encoder: StreamEncoder) => Synthesis }>,
  handlers: SynthesisHandlers,
): Synthesis {
  let synthesis: Synthesis | null = null;
  let [isAborted, isPaused] = [false, false];
  ready
    .then(({ encoder, begin }) => {
      if (isAborted) encoder.close();
      else synthesis = begin(encoder);
      if (isPaused) synthesis?.pause();
    })
    .catch((thrown: unknown) => {
      if (!isAborted) handlers.error(toGatewayError(thrown));
    });
  return {
    pause: () => {
      isPaused = true;
      synthesis?.pause();
    },
    resume: () => {
      isPaused = false;
      synthesis?.resume();
    },
    abort: () => {
      isAborted = true;
      synthesis?.abort();
    },
  };
}
