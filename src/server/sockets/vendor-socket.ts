/**
 * The vendor's WebSockets on the gateway's own port, spoken over its plain HTTP upstream. What they say is
 * in vendor-sockets/; here are their addresses, the handshake and the wire.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { STREAM_FORMATS } from "../../audio/formats.ts";
import { toGatewayError } from "../../errors.ts";
import {
  type HandshakeRefusal,
  handshakeRefusal,
  tooManySockets,
  unknownPath,
} from "../../protocol/elevenlabs/socket-faults.ts";
import {
  type Credentials,
  compact,
  credentialsOf,
  parseSocketSettings,
  type SocketKind,
  type SocketSettings,
} from "../../protocol/elevenlabs/socket-settings.ts";
import { DialogueSocket } from "../../vendor-sockets/dialogue-socket.ts";
import type { KeyCheck, SocketDeps, SocketTuning } from "../../vendor-sockets/ports.ts";
import { SpeechSocket } from "../../vendor-sockets/speech-socket.ts";
import { pathPart, Reply } from "../http.ts";
import type { Routes } from "../routes.ts";
import type { FairScheduler } from "./fair-scheduler.ts";
import { inboxBytes } from "./inbox.ts";
import { MessageSockets } from "./message-sockets.ts";

export interface VendorSocketOptions extends Pick<SocketDeps, "upstream" | "clock" | "counters" | "log"> {
  readonly maxMessageBytes: number;
  readonly maxOutboxBytes: number;
  /** Without a word or a pong for so long a client is gone, seconds. */
  readonly idleSeconds: number;
  /** See MessageSocketsOptions. */
  readonly scheduler: FairScheduler;
  /** Most sockets at once; more are refused with 429. */
  readonly maxSockets: number;
  /** See SocketTuning; 0: no limit. */
  readonly firstAudioMs: number;
  /** See SocketTuning; each has a default. */
  readonly tuning?: Partial<SocketTuning>;
  /** Without it every key passes: the gateway asks the upstream with its own. */
  readonly checkKey?: KeyCheck;
}

export interface VendorSockets {
  /** Sockets that are open. */
  readonly open: number;
  /** Ends every socket and what it has asked of the upstream: close 1001. Idempotent; new ones are refused after it. */
  close(): void;
}

const MAX_CONTEXTS = 5;
const MAX_TEXT_CHARS = 100_000;
const MAX_REQUESTS = 6;
const TIMING_HOLD_MS = 150;
/** What one message may add to a full send queue: a second of 48 kHz PCM as base64 with its timing, generously. */
const MESSAGE_SLACK_BYTES = 8 * 1024 * 1024;

/** Address, kind, and whether it has contexts. */
const ROUTES = [
  ["/v1/text-to-speech/:voice/stream-input", "speech", false],
  ["/v1/text-to-speech/:voice/multi-stream-input", "speech", true],
  ["/v1/text-to-dialogue/stream-input", "dialogue", false],
  ["/v1/text-to-dialogue/multi-stream-input", "dialogue", true],
] as const;

/** What a request asks for. */
interface VendorRequest {
  readonly settings: SocketSettings;
  readonly voiceId: string;
  readonly credentials: Credentials;
}

/** Mounts the sockets; every other WebSocket below /v1 is refused with 403, as the vendor does. */
export function routeVendorSockets(app: Routes, options: VendorSocketOptions): VendorSockets {
  const { maxMessageBytes, idleSeconds, scheduler } = options;
  const deps = depsOf(options);
  const maxBackpressureBytes = deps.tuning.maxOutboxBytes + MESSAGE_SLACK_BYTES;
  const maxInboxBytes = inboxBytes({ maxMessageBytes, maxTextChars: deps.tuning.maxTextChars });
  const bounds = { maxMessageBytes, maxBackpressureBytes, maxInboxBytes };
  const sockets = new MessageSockets({ ...bounds, idleSeconds, scheduler });
  const isFull = () => sockets.isClosed || sockets.count >= options.maxSockets;
  for (const [path, kind, isMulti] of ROUTES) {
    const behavior = sockets.behavior<VendorRequest>({
      accept: (res, req) => {
        if (!isFull()) return requestOf(res, req, kind);
        refuse(res, tooManySockets());
        return null;
      },
      open: ({ voiceId, ...request }, port) => {
        const socket = { deps, port, isMulti, ...request };
        return kind === "speech" ? new SpeechSocket({ ...socket, voiceId }) : new DialogueSocket(socket);
      },
    });
    app.ws(path, "own", behavior);
  }
  app.ws("/v1/*", "known", { upgrade: (res) => refuse(res, unknownPath()) });
  return {
    get open() {
      return sockets.count;
    },
    close: () => sockets.close(),
  };
}

/** null: it can't be, and has been answered. */
function requestOf(res: HttpResponse, req: HttpRequest, kind: SocketKind): VendorRequest | null {
  const query = new URLSearchParams(req.getQuery() ?? "");
  const headers = compact({
    apiKey: req.getHeader("xi-api-key"),
    authorization: req.getHeader("authorization"),
  });
  try {
    return {
      settings: parseSocketSettings(query, kind, (name) => STREAM_FORMATS.some((format) => format === name)),
      voiceId: kind === "speech" ? pathPart(req) : "",
      credentials: credentialsOf(query, headers),
    };
  } catch (thrown) {
    refuse(res, handshakeRefusal(toGatewayError(thrown)));
    return null;
  }
}

function depsOf(options: VendorSocketOptions): SocketDeps {
  const { upstream, clock, counters, log, checkKey } = options;
  return {
    upstream,
    clock,
    counters,
    log,
    ...(checkKey === undefined ? {} : { checkKey }),
    tuning: {
      maxContexts: MAX_CONTEXTS,
      maxTextChars: MAX_TEXT_CHARS,
      maxOutboxBytes: options.maxOutboxBytes,
      maxRequests: MAX_REQUESTS,
      timingHoldMs: TIMING_HOLD_MS,
      firstAudioMs: options.firstAudioMs,
      ...options.tuning,
    },
  };
}

function refuse(res: HttpResponse, { status, body }: HandshakeRefusal): void {
  new Reply(res).send({ status, contentType: "application/json", body });
}
