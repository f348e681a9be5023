/**
 * The vendor's WebSockets (contract B) on the gateway's own port, spoken over its plain HTTP upstream. What they say is
 * in contexts/; here are their addresses, the handshake and the wire.
 */
import type { HttpRequest, HttpResponse, TemplatedApp, WebSocketBehavior } from "uWebSockets.js";
import { SET_A } from "../audio/formats.ts";
import { DialogueSocket } from "../contexts/dialogue-socket.ts";
import type { KeyCheck, SocketDeps, SocketTuning, VendorSocket } from "../contexts/ports.ts";
import { SpeechSocket } from "../contexts/speech-socket.ts";
import { ERRORS, GatewayError, toGatewayError } from "../errors.ts";
import {
  type HandshakeRefusal,
  handshakeRefusal,
  tooManySockets,
  unknownPath,
} from "../protocol/elevenlabs/socket-faults.ts";
import {
  type Credentials,
  compact,
  credentialsOf,
  parseSocketSettings,
  type SocketKind,
  type SocketSettings,
} from "../protocol/elevenlabs/socket-settings.ts";
import { Reply } from "./http.ts";
import { decoded } from "./live-socket.ts";
import { UwsPort } from "./uws-port.ts";

export interface VendorSocketOptions extends Pick<SocketDeps, "upstream" | "clock" | "counters" | "log"> {
  readonly maxMessageBytes: number;
  readonly maxOutboxBytes: number;
  /** Without a word or a pong for so long a client is gone, seconds. */
  readonly idleSeconds: number;
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
/** What one message may add to a full outbox: a second of 48 kHz PCM as base64 with its timing, generously. */
const MESSAGE_SLACK_BYTES = 8 * 1024 * 1024;
/** Messages over the limit are still read up to here, so that they can be answered with an error. */
const HARD_MESSAGE_FACTOR = 8;

/** Address, kind, and whether it has contexts. */
const ROUTES = [
  ["/v1/text-to-speech/:voice/stream-input", "speech", false],
  ["/v1/text-to-speech/:voice/multi-stream-input", "speech", true],
  ["/v1/text-to-dialogue/stream-input", "dialogue", false],
  ["/v1/text-to-dialogue/multi-stream-input", "dialogue", true],
] as const;

/** What the server library keeps for each socket. */
interface SocketData {
  readonly settings: SocketSettings;
  readonly voiceId: string;
  readonly credentials: Credentials;
  port: UwsPort<SocketData> | null;
  socket: VendorSocket | null;
}

/** Mounts the sockets; every other WebSocket below /v1 is refused with 403, as the vendor does. */
export function routeVendorSockets(app: TemplatedApp, options: VendorSocketOptions): VendorSockets {
  const all = new Set<UwsPort<SocketData>>();
  let isClosed = false;
  const isFull = () => isClosed || all.size >= options.maxSockets;
  for (const [path, kind, isMulti] of ROUTES) {
    app.ws(path, behavior({ kind, isMulti, options, all, isFull }));
  }
  app.ws("/v1/*", { upgrade: (res) => refuse(res, unknownPath()) });
  return {
    get open() {
      return all.size;
    },
    close: () => {
      isClosed = true;
      const { closeCode, meaning } = ERRORS.draining;
      for (const port of [...all]) port.end(closeCode, meaning);
    },
  };
}

interface Mounted {
  readonly kind: SocketKind;
  readonly isMulti: boolean;
  readonly options: VendorSocketOptions;
  readonly all: Set<UwsPort<SocketData>>;
  readonly isFull: () => boolean;
}

function behavior(mounted: Mounted): WebSocketBehavior<SocketData> {
  const { options, all, kind } = mounted;
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const deps = depsOf(options);
  return {
    maxPayloadLength: options.maxMessageBytes * HARD_MESSAGE_FACTOR,
    maxBackpressure: deps.tuning.maxOutboxBytes + MESSAGE_SLACK_BYTES,
    closeOnBackpressureLimit: false,
    idleTimeout: options.idleSeconds,
    sendPingsAutomatically: true,
    upgrade: (res, req, context) => {
      let data: SocketData;
      try {
        if (mounted.isFull()) {
          refuse(res, tooManySockets());
          return;
        }
        data = dataOf(req, kind);
      } catch (thrown) {
        refuse(res, handshakeRefusal(toGatewayError(thrown)));
        return;
      }
      const key = req.getHeader("sec-websocket-key");
      const protocol = req.getHeader("sec-websocket-protocol");
      const extensions = req.getHeader("sec-websocket-extensions");
      res.cork(() => res.upgrade(data, key, protocol, extensions, context));
    },
    open: (ws) => {
      const data = ws.getUserData();
      const port = new UwsPort(ws);
      data.port = port;
      all.add(port);
      const { settings, credentials, voiceId } = data;
      const socket = { deps, port, settings, isMulti: mounted.isMulti, credentials };
      data.socket = kind === "speech" ? new SpeechSocket({ ...socket, voiceId }) : new DialogueSocket(socket);
    },
    message: (ws, message, isBinary) => {
      const { socket } = ws.getUserData();
      let text: string;
      try {
        text = textOf(message, isBinary);
      } catch (thrown) {
        socket?.refuse(thrown);
        return;
      }
      socket?.receive(text);
    },
    drain: (ws) => ws.getUserData().socket?.drained(),
    close: (ws) => {
      const { port, socket } = ws.getUserData();
      if (port !== null) {
        port.markClosed();
        all.delete(port);
      }
      socket?.closed();
    },
  };

  function textOf(message: ArrayBuffer, isBinary: boolean): string {
    if (isBinary) throw new GatewayError("binary_not_allowed", "Message is binary, expected JSON text");
    if (message.byteLength <= options.maxMessageBytes) return decoder.decode(message);
    throw new GatewayError(
      "message_too_large",
      `Message is too large: ${message.byteLength} bytes, expected at most ${options.maxMessageBytes}`,
    );
  }
}

/** Throws GatewayError "invalid_field". */
function dataOf(req: HttpRequest, kind: SocketKind): SocketData {
  const query = new URLSearchParams(req.getQuery() ?? "");
  const headers = compact({
    apiKey: req.getHeader("xi-api-key"),
    authorization: req.getHeader("authorization"),
  });
  return {
    settings: parseSocketSettings(query, kind, (name) => SET_A.some((format) => format === name)),
    voiceId: kind === "speech" ? decoded(req.getParameter(0) ?? "") : "",
    credentials: credentialsOf(query, headers),
    port: null,
    socket: null,
  };
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
