/** Which gateway say speaks through: the one named, the one on this machine, or one of its own for the time being. */
import { get as getPlain } from "node:http";
import { get as getOverTls } from "node:https";
import { text } from "node:stream/consumers";
import type { Config } from "../../config.ts";
import { silentLog } from "../../kit/log.ts";
import type { Io } from "../io.ts";
import { gatewayUrl } from "./join-session.ts";

interface GatewayTarget {
  /** http(s), without a slash at the end. */
  readonly baseUrl: string;
  /** Ends what was started for this; a gateway that was there before stays. */
  close(): Promise<void>;
}

export interface TargetOptions {
  /** As given by --url. */
  readonly url: string | undefined;
  readonly config: Config;
  /** Do not use a gateway that is there: another upstream was asked for. */
  readonly isOwn: boolean;
}

const PROBE_TIMEOUT_MS = 500;

export async function openGateway(io: Io, { url, config, isOwn }: TargetOptions): Promise<GatewayTarget> {
  if (url !== undefined) return { baseUrl: gatewayUrl(url), close: () => Promise.resolve() };
  const local = localGatewayUrl(config);
  if (!isOwn && (await isGateway(local))) return { baseUrl: local, close: () => Promise.resolve() };
  return await startOwn(io, config);
}

/** Where `serve` would be with these settings. */
export function localGatewayUrl(config: Config): string {
  return `http://127.0.0.1:${config.port}`;
}

/** Whether a voicewire gateway answers there: its /healthz names it, where any program may have a /healthz. */
export function isGateway(baseUrl: string, timeoutMs = PROBE_TIMEOUT_MS): Promise<boolean> {
  const get = baseUrl.startsWith("https:") ? getOverTls : getPlain;
  // Nothing secret is asked for, and few certificates are for 127.0.0.1.
  const options = { rejectUnauthorized: false, agent: false, signal: AbortSignal.timeout(timeoutMs) };
  return new Promise((resolve) => {
    // Nothing there, or nothing that answers in time: the answer is no.
    const no = (): void => resolve(false);
    get(`${baseUrl}/healthz`, options, (answer) => {
      text(answer).then(
        (body) => resolve(answer.statusCode === 200 && body.includes('"server":"voicewire"')),
        no,
      );
    }).on("error", no);
  });
}

/** On a free port of the loopback interface, silent, with the upstream that the settings name. */
async function startOwn({ clock, env }: Io, settings: Config): Promise<GatewayTarget> {
  const config: Config = {
    ...settings,
    host: "127.0.0.1",
    port: 0,
    tlsCert: "",
    tlsKey: "",
    opsHost: "127.0.0.1",
    opsPort: "off",
    trustedProxies: "",
    proxyProtocol: false,
    keysFile: "",
    logLevel: "silent",
  };
  // Most gateways are there: whoever joins one, or only asks whether one is there, need not load a server.
  const { startWithUpstream } = await import("../serve/start.ts");
  const gateway = await startWithUpstream({ config, log: silentLog, clock, env });
  return { baseUrl: gateway.url, close: () => gateway.close() };
}
