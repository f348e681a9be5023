/** Which upstream a gateway gets: the embedded service as a child process, URLs, or the vendor's regions. */
import type { Config } from "../../config.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import { regionNames, regionUrl } from "../../upstream/vendors/vendor-regions.ts";
import { usageError } from "../exit.ts";
import type { Io } from "../io.ts";
import { entriesOf } from "../settings.ts";
import { type EmbeddedOptions, type EmbeddedService, startEmbeddedService } from "./embedded.ts";

type UpstreamTarget =
  | { readonly kind: "embedded" }
  | { readonly kind: "remote"; readonly baseUrl: BaseUrl; readonly label: string };

/** Several in order of preference. */
export type BaseUrl = string | readonly string[];

/**
 * Regions and URLs may be lists with commas, in order of preference. Throws `invalid_config` where a region is chosen and
 * no key is set (every request would fail), and for a list that can't be used.
 */
export function chooseUpstream(config: Config): UpstreamTarget {
  if (config.upstreamRegion !== "none") return chooseRegions(config);
  if (config.upstreamUrl === "embedded") return { kind: "embedded" };
  // The vendor's clients differ in whether the base holds the version; our paths bring their own /v1.
  const baseUrls = entriesOf(config.upstreamUrl).map((url) => url.replace(/\/+$/, "").replace(/\/v1$/, ""));
  regionNames(baseUrls);
  return { kind: "remote", baseUrl: oneOrSeveral(baseUrls), label: baseUrls.join(", then ") };
}

function chooseRegions({ upstreamRegion, upstreamKey }: Config): UpstreamTarget {
  const regions = entriesOf(upstreamRegion);
  const baseUrls = regions.map(regionUrl);
  regionNames(baseUrls);
  if (upstreamKey === "") {
    throw usageError(
      `Setting upstreamKey: not set, expected the vendor's API key for region ${regions.join(", ")}; ` +
        "set ELEVENLABS_API_KEY, or leave out the region to use the embedded voice",
      "upstreamKey",
    );
  }
  const label = baseUrls.map((url, index) => `${url} (region ${regions[index]})`).join(", then ");
  return { kind: "remote", baseUrl: oneOrSeveral(baseUrls), label };
}

function oneOrSeveral(baseUrls: readonly string[]): BaseUrl {
  const [first, ...more] = baseUrls;
  return first !== undefined && more.length === 0 ? first : baseUrls;
}

export interface OpenUpstream {
  readonly baseUrl: BaseUrl;
  readonly key: string;
  /** In words, for the start line. */
  readonly label: string;
  readonly service: EmbeddedService | undefined;
  stop(): Promise<void>;
}

export interface OpenUpstreamOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  readonly env: Io["env"];
  readonly start?: EmbeddedOptions["start"];
}

/** Starts the embedded service where that is the upstream. Throws `voice_package_missing` with what to do. */
export async function openUpstream(options: OpenUpstreamOptions): Promise<OpenUpstream> {
  const target = chooseUpstream(options.config);
  if (target.kind === "remote") {
    return {
      baseUrl: target.baseUrl,
      key: options.config.upstreamKey,
      label: target.label,
      service: undefined,
      stop: () => Promise.resolve(),
    };
  }
  const service = await startOrExplain(options);
  return {
    baseUrl: service.url,
    key: service.key,
    label: "the embedded voice",
    service,
    stop: () => service.stop(),
  };
}

async function startOrExplain(options: OpenUpstreamOptions): Promise<EmbeddedService> {
  const { log, clock, env, config, start } = options;
  try {
    return await startEmbeddedService({
      log,
      clock,
      env,
      args: [
        ...["--log-level", config.logLevel === "info" ? "warn" : config.logLevel],
        ...(config.dataFolder === "" ? [] : ["--data", config.dataFolder]),
        ...(config.voiceModels === "" ? [] : ["--voice-models", config.voiceModels]),
        ...(config.faults ? ["--faults"] : []),
      ],
      ...(start === undefined ? {} : { start }),
    });
  } catch (thrown) {
    if (!(thrown instanceof GatewayError) || thrown.code !== "voice_package_missing") throw thrown;
    throw new GatewayError("voice_package_missing", VOICE_PACKAGE_ADVICE, { cause: thrown });
  }
}

const VOICE_PACKAGE = "@echogarden/espeak-ng-emscripten";

/** What serve, say and doctor say alike. */
export const VOICE_PACKAGE_ADVICE =
  `The embedded voice is not installed: the optional package ${VOICE_PACKAGE} (GPL-3.0) is missing. ` +
  `Install it with \`npm install --no-save ${VOICE_PACKAGE}\`, or use the vendor: ` +
  "set ELEVENLABS_API_KEY and --upstream-region global (or us, eu, in, sg), or --upstream-url for another service";
