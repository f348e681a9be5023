/** Joins a session for say and listen; what stands in the way is said with what to do about it. */
import { WebSocket } from "ws";
import { liveUrl } from "../../client/address.ts";
import {
  type Connection,
  type ConnectionSettings,
  connect,
  type ReconnectOptions,
  VoicewireError,
  type WebSocketConstructor,
} from "../../client/index.ts";
import { GatewayError } from "../../errors.ts";
import type { EventKind } from "../../protocol/vocabulary.ts";
import { usageError } from "../exit.ts";
import { keyRefused } from "./gateway-key.ts";

export interface ResumePlace {
  /** `resume_token` of its hello. */
  readonly token: string;
  /** Number of the last event that it got. */
  readonly seq: number | undefined;
  /** End of the audio that it got, on the timeline. */
  readonly atMs: number | undefined;
}

export interface JoinOptions {
  /** http(s) or ws(s). */
  readonly baseUrl: string;
  /** Key or token; empty: none. */
  readonly key: string;
  readonly session: string;
  readonly settings: ConnectionSettings;
  /** The place that an earlier connection had come to. */
  readonly resume?: ResumePlace | undefined;
  /** Comes back by itself when the socket breaks; default false. */
  readonly reconnect?: boolean | ReconnectOptions;
}

/** Throws `upstream_unreachable` where no gateway answers, VoicewireError with the gateway's own reason otherwise. */
export async function joinSession(options: JoinOptions): Promise<Connection> {
  const { baseUrl, reconnect = false } = options;
  const url = new URL(liveUrl(baseUrl, options));
  const { token, seq, atMs } = options.resume ?? {};
  for (const [name, value] of Object.entries({ resume: token, seq, at_ms: atMs })) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const untrusted: Error[] = [];
  try {
    const socket = keyedSocket(options.key, untrusted);
    return await connect({ url: url.href, WebSocket: socket, reconnect });
  } catch (thrown) {
    if (thrown instanceof VoicewireError && thrown.isFromGateway) throw explained(thrown, options);
    const [distrust] = untrusted;
    if (distrust !== undefined) throw untrustedCertificate(distrust, baseUrl);
    if (thrown instanceof VoicewireError && thrown.code === "connect_failed") {
      throw new GatewayError(
        "upstream_unreachable",
        `No gateway answers at ${baseUrl}: expected one to be there; start it with \`voicewire serve\`, or check --url`,
        { cause: thrown },
      );
    }
    throw thrown;
  }
}

/** Sockets that show a key. `untrusted`: gets what is wrong with the gateway's certificate. */
function keyedSocket(key: string, untrusted: Error[]): WebSocketConstructor {
  return class extends WebSocket {
    constructor(url: string) {
      super(url, key === "" ? {} : { headers: { authorization: `Bearer ${key}` } });
      this.on("error", (error) => {
        if (isOfCertificate(error)) untrusted.push(error);
      });
    }
  };
}

/** By the codes of Node's TLS: DEPTH_ZERO_SELF_SIGNED_CERT, ERR_TLS_CERT_ALTNAME_INVALID and the like. */
function isOfCertificate(error: Error & { readonly code?: string }): boolean {
  return /CERT|SIGNATURE/.test(error.code ?? "");
}

function untrustedCertificate(cause: Error, baseUrl: string): GatewayError {
  return new GatewayError(
    "upstream_unreachable",
    `The certificate at ${baseUrl} is not trusted: ${cause.message}; expected one for this name by a known authority, ` +
      "or the authority's file in NODE_EXTRA_CA_CERTS",
    { cause },
  );
}

function explained(refusal: VoicewireError, { baseUrl, key }: JoinOptions): Error {
  const { code } = refusal;
  if (code !== "unauthorized" && code !== "token_expired") return refusal;
  const isOld = code === "token_expired";
  const message = isOld ? `The gateway at ${baseUrl}: ${refusal.message}` : keyRefused(baseUrl, key);
  return new GatewayError(code, message, { cause: refusal });
}

/** A gateway's address as http(s) without a slash at its end; takes ws(s) and a missing scheme too. */
export function gatewayUrl(given: string): string {
  const text = /^[a-z]+:\/\//i.test(given) ? given : `http://${given}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const scheme = url === undefined ? undefined : SCHEMES[url.protocol];
  if (url === undefined || scheme === undefined) {
    throw usageError(
      `Flag --url: "${given}", expected the address of a gateway such as http://127.0.0.1:8080`,
      "url",
    );
  }
  return `${scheme}//${url.host}${url.pathname.replace(/\/+$/, "")}`;
}

const SCHEMES: Readonly<Record<string, string>> = {
  "http:": "http:",
  "https:": "https:",
  "ws:": "http:",
  "wss:": "https:",
};

/** What --json asks for. */
export const JSON_EVENTS: readonly EventKind[] = [
  "characters",
  "normalized",
  "words",
  "segments",
  "cues",
  "marks",
  "presence",
];

/** What caption files are made of; nothing where there are none. */
export function captionEvents(plan: {
  readonly vtt: string | undefined;
  readonly srt: string | undefined;
}): EventKind[] {
  return plan.vtt === undefined && plan.srt === undefined ? [] : ["cues"];
}
