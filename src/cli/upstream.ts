/** Which upstream a gateway gets: the embedded service as a child process, a URL, or the vendor's region. */
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import { regionUrl } from "../upstream/regions.ts";
import { type EmbeddedOptions, type EmbeddedService, startEmbeddedService } from "./embedded.ts";
import { usageError } from "./exit.ts";

export type UpstreamTarget =
  | { readonly kind: "embedded" }
  | { readonly kind: "remote"; readonly baseUrl: string; readonly label: string };

/** Throws `invalid_config` where a region is chosen and no key is set: every request would fail. */
export function chooseUpstream(config: Config): UpstreamTarget {
  const region = config.upstreamRegion;
  if (region !== "none") {
    const baseUrl = regionUrl(region);
    if (config.upstreamKey === "") {
      throw usageError(
        `Setting upstreamKey: not set, expected the vendor's API key for region ${region}; ` +
          "set ELEVENLABS_API_KEY, or leave out the region to use the embedded voice",
        "upstreamKey",
      );
    }
    return { kind: "remote", baseUrl, label: `${baseUrl} (region ${region})` };
  }
  if (config.upstreamUrl === "embedded") return { kind: "embedded" };
  // The vendor's clients differ in whether the base holds the version; our paths bring their own /v1.
  const baseUrl = config.upstreamUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
  return { kind: "remote", baseUrl, label: baseUrl };
}

export interface OpenUpstream {
  readonly baseUrl: string;
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
  return { baseUrl: service.url, key: "", label: "the embedded voice", service, stop: () => service.stop() };
}

async function startOrExplain(options: OpenUpstreamOptions): Promise<EmbeddedService> {
  const { log, clock, config, start } = options;
  try {
    return await startEmbeddedService({
      log,
      clock,
      args: [
        ...["--log-level", config.logLevel === "info" ? "warn" : config.logLevel],
        ...(config.dataFolder === "" ? [] : ["--data", config.dataFolder]),
      ],
      ...(start === undefined ? {} : { start }),
    });
  } catch (thrown) {
    if (!(thrown instanceof GatewayError) || thrown.code !== "voice_package_missing") throw thrown;
    throw new GatewayError("voice_package_missing", VOICE_PACKAGE_ADVICE, { cause: thrown });
  }
}

export const VOICE_PACKAGE = "@echogarden/espeak-ng-emscripten";

/** What serve, say and doctor say alike. */
export const VOICE_PACKAGE_ADVICE =
  `The embedded voice is not installed: the optional package ${VOICE_PACKAGE} (GPL-3.0) is missing. ` +
  `Install it with \`npm install --no-save ${VOICE_PACKAGE}\`, or use the vendor: ` +
  "set ELEVENLABS_API_KEY and --upstream-region global (or us, eu, in, sg), or --upstream-url for another service";
