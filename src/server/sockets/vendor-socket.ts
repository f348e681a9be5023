/**
 * The vendor's WebSockets on the gateway's own port, spoken over its plain HTTP upstream. What they say is
 * in vendor-sockets/; here are their addresses, the handshake and the wire.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { ANYBODY, type Caller } from "../../access/caller.ts";
import { type Door, identifyAt } from "../../access/door.ts";
import { isStreamFormat } from "../../audio/formats.ts";
import { toGatewayError } from "../../errors.ts";
import { IGNORED_HEADER, ignoredHeader } from "../../kit/ignored-names.ts";
import { type Release, Semaphore } from "../../kit/semaphore.ts";
import { DIALOGUE_DIALECT, SPEECH_DIALECT } from "../../protocol/elevenlabs/server-messages.ts";
import {
  accessRefusal,
  closeReason,
  faultOf,
  type HandshakeRefusal,
  handshakeRefusal,
  tooManySockets,
  unknownPath,
} from "../../protocol/elevenlabs/socket-faults.ts";
import {
  ignoredParameters,
  parseSocketSettings,
  type SocketKind,
  type SocketSettings,
} from "../../protocol/elevenlabs/socket-settings.ts";
import { defaultModelFor } from "../../protocol/upstream-voice.ts";
import type { Traced, Tracer } from "../../tracing/tracer.ts";
import { DialogueSocket } from "../../vendor-sockets/dialogue-socket.ts";
import type { SocketDeps, SocketLimits, SocketPort, SpeakingSocket } from "../../vendor-sockets/ports.ts";
import { SpeechSocket } from "../../vendor-sockets/speech-socket.ts";
import { presentedBy } from "../credential.ts";
import { pathPart, Reply } from "../http.ts";
import { tracedBy } from "../http-span.ts";
import { requestAddress } from "../request-address.ts";
import type { RefusalShape, Routes } from "../routes.ts";
import { mustHaveSpeech, pinnedOptions, waitingText } from "../speech-access.ts";
import type { FairScheduler } from "./fair-scheduler.ts";
import { inboxBytes } from "./inbox.ts";
import type { SocketSource, SpeakingRights } from "./leased-socket.ts";
import { MessageSockets } from "./message-sockets.ts";
import { VendorGate } from "./vendor-gate.ts";

export interface VendorSocketOptions extends Pick<SocketDeps, "upstream" | "clock" | "counters" | "log"> {
  readonly maxMessageBytes: number;
  readonly maxOutboxBytes: number;
  /** Without a word or a pong for so long a client is gone, seconds. */
  readonly idleSeconds: number;
  /** See MessageSocketsOptions. */
  readonly scheduler: FairScheduler;
  /** Most sockets at once; more are refused with 429. */
  readonly maxSockets: number;
  /** See SocketLimits; 0: no limit. */
  readonly firstAudioMs: number;
  /** See SocketLimits; each has a default. */
  readonly limits?: Partial<SocketLimits>;
  /** Names of voices that several upstreams may speak; default: none. */
  readonly ownVoices?: ReadonlySet<string>;
  /** Whom it lets in; the upstream is asked with the gateway's own key. */
  readonly door: Door;
  /** Default: nothing is traced. */
  readonly tracer?: Tracer | undefined;
}

export interface VendorSockets {
  /** Sockets that are open. */
  readonly open: number;
  /** Ends every socket and what it has asked of the upstream: close 1001. Idempotent; new ones are refused after it. */
  close(): void;
}

/** Sockets at once whose clients have shown no key yet: the rest of the gateway's places is not theirs. */
const MAX_STRANGERS = 256;
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
  readonly kind: SocketKind;
  readonly isMulti: boolean;
  readonly settings: SocketSettings;
  /** Names in its query that nothing is done of. */
  readonly ignored: readonly string[];
  /** Empty on dialogue sockets: their messages have voices. */
  readonly voiceId: string;
  readonly source: SocketSource;
  readonly traced: Traced | undefined;
  /** null: who it is comes with the first message. */
  readonly caller: Caller | null;
  /** Gives back the place of one that is not known yet. */
  readonly release: Release;
}

/** As the vendor words it. */
export const VENDOR_SHAPE: RefusalShape = {
  answer: accessRefusal,
  message: (error) => {
    const fault = faultOf(error);
    const json = SPEECH_DIALECT.fault(fault, "");
    return { json, closeCode: fault.code, reason: closeReason(fault) };
  },
};

/** Mounts the sockets; every other WebSocket below /v1 is refused with 403, as the vendor does. */
export function routeVendorSockets(app: Routes, options: VendorSocketOptions): VendorSockets {
  const { maxMessageBytes, idleSeconds, scheduler } = options;
  const deps = depsOf(options);
  const maxBackpressureBytes = deps.limits.maxOutboxBytes + MESSAGE_SLACK_BYTES;
  const maxInboxBytes = inboxBytes({ maxMessageBytes, maxTextChars: deps.limits.maxTextChars });
  const bounds = { maxMessageBytes, maxBackpressureBytes, maxInboxBytes };
  const sockets = new MessageSockets({ ...bounds, idleSeconds, scheduler });
  const strangers = new Semaphore({ limit: MAX_STRANGERS });
  const isFull = () => sockets.isClosed || sockets.count >= options.maxSockets;
  for (const [pattern, kind, isMulti] of ROUTES) {
    const behavior = sockets.behavior<VendorRequest>({
      accept: (res, req) => {
        const asking = { address: requestAddress(res, req, options.door.proxyTrust), pattern, kind, isMulti };
        return accept(res, req, { asking, options, strangers, isFull: isFull() });
      },
      headers: ({ ignored }) => (ignored.length === 0 ? [] : [[IGNORED_HEADER, ignoredHeader(ignored)]]),
      open: (request, port, hold) => {
        const { caller, source, release: onKnown } = request;
        const dialect = kind === "speech" ? SPEECH_DIALECT : DIALOGUE_DIALECT;
        const rightsOf = (known: Caller): SpeakingRights => ({
          open: (now) => {
            const spend = (characters: number): void =>
              options.door.limits.spend(now(), { characters, utterances: 1 });
            const subject = options.door.limits.upstreamSubject(known, source.address);
            const asking = { ...source, door: options.door, caller: known };
            const speakingDeps = {
              ...deps,
              spend,
              subject,
              traced: request.traced,
              waitingText: () => waitingText(asking),
            };
            return speakingSocket(allowedOf(request, known), { now, port, deps: speakingDeps });
          },
          mustStay: (now) => void allowedOf(request, now),
        });
        return new VendorGate({ ...options, port, hold, dialect, source, caller, rightsOf, onKnown });
      },
    });
    app.ws(pattern, "own", behavior, VENDOR_SHAPE);
  }
  app.ws("/v1/*", "known", { upgrade: (res) => refuse(res, unknownPath()) }, VENDOR_SHAPE);
  return {
    get open() {
      return sockets.count;
    },
    close: () => sockets.close(),
  };
}

interface Accepting {
  readonly asking: Pick<VendorRequest, "kind" | "isMulti"> & {
    readonly address: string;
    readonly pattern: string;
  };
  readonly options: VendorSocketOptions;
  readonly strangers: Semaphore;
  readonly isFull: boolean;
}

/** null: it can't be, and has been answered. Throws where what it shows does not hold. */
function accept(res: HttpResponse, req: HttpRequest, accepting: Accepting): VendorRequest | null {
  const { asking, options, strangers, isFull } = accepting;
  const { kind, isMulti, address, pattern: surface } = asking;
  const { door } = options;
  const source = { surface, address, origin: req.getHeader("origin") };
  let caller: Caller | null = null;
  try {
    caller = callerOf(req, address, door);
    if (isFull) return refuse(res, tooManySockets());
    const asked = askedOf(res, req, { kind, ownVoices: options.ownVoices });
    if (asked === null) return null;
    const traced = tracedBy(req, options.tracer);
    const request = { kind, isMulti, source, traced, caller, ...asked };
    if (caller === null) {
      const release = strangers.tryAcquire();
      return release === null ? refuse(res, tooManySockets()) : { ...request, release };
    }
    allowedOf(request, caller);
    door.access.redeem(caller);
    return { ...request, release: () => undefined };
  } catch (thrown) {
    door.audit.refused({ ...source, thrown, caller });
    throw thrown;
  }
}

/** null: the request shows nothing. Throws where what it shows does not hold, and forbidden. */
function callerOf(req: HttpRequest, address: string, door: Door): Caller | null {
  if (door.access.isOpen) return ANYBODY;
  const presented = presentedBy(req);
  if (presented.credential === "") return null;
  const caller = identifyAt(address, presented, door);
  caller.must("speak");
  return caller;
}

/** null: it can't be, and has been answered. */
function askedOf(
  res: HttpResponse,
  req: HttpRequest,
  { kind, ownVoices }: { readonly kind: SocketKind; readonly ownVoices: ReadonlySet<string> | undefined },
): Pick<VendorRequest, "settings" | "ignored" | "voiceId"> | null {
  const query = new URLSearchParams(req.getQuery() ?? "");
  try {
    const settings = parseSocketSettings(query, kind, isStreamFormat);
    const voiceId = kind === "speech" ? pathPart(req) : "";
    const modelId = query.has("model_id")
      ? settings.modelId
      : defaultModelFor(voiceId, settings.modelId, ownVoices);
    return { settings: { ...settings, modelId }, ignored: ignoredParameters(query, kind), voiceId };
  } catch (thrown) {
    return refuse(res, handshakeRefusal(toGatewayError(thrown)));
  }
}

/** The request as the caller may have it. Throws forbidden. */
function allowedOf<T extends Pick<VendorRequest, "kind" | "settings" | "voiceId">>(
  request: T,
  caller: Caller,
): T {
  const settings = { ...request.settings, ...pinnedOptions(caller) };
  const isSpeech = request.kind === "speech";
  const voiceId = isSpeech ? (caller.speechSettings.voice_id ?? request.voiceId) : "";
  mustHaveSpeech(caller, { ...settings, voiceIds: isSpeech ? [voiceId] : [] });
  return { ...request, settings, voiceId };
}

interface Speaking {
  readonly now: () => Caller;
  readonly port: SocketPort;
  readonly deps: SocketDeps;
}

function speakingSocket(
  { kind, isMulti, settings, voiceId }: VendorRequest,
  { now, port, deps }: Speaking,
): SpeakingSocket {
  const voices = {
    pinned: now().speechSettings.voice_id ?? null,
    check: (voiceIds: readonly string[]) => now().mustUse({ voiceIds }),
  };
  const socket = { deps, port, isMulti, settings, voices };
  return kind === "speech" ? new SpeechSocket({ ...socket, voiceId }) : new DialogueSocket(socket);
}

function depsOf(options: VendorSocketOptions): SocketDeps {
  const { upstream, clock, counters, log } = options;
  return {
    upstream,
    clock,
    counters,
    log,
    limits: {
      maxContexts: MAX_CONTEXTS,
      maxTextChars: MAX_TEXT_CHARS,
      maxOutboxBytes: options.maxOutboxBytes,
      maxRequests: MAX_REQUESTS,
      timingHoldMs: TIMING_HOLD_MS,
      firstAudioMs: options.firstAudioMs,
      ...options.limits,
    },
  };
}

/** null, for whoever has no request to go on with. */
function refuse(res: HttpResponse, { status, body }: HandshakeRefusal): null {
  new Reply(res).send({ status, contentType: "application/json", body });
  return null;
}
