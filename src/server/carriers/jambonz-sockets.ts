/** `/carrier/jambonz/tts` as a WebSocket: the sockets of jambonz's streaming speech, one for each call. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { GatewayError } from "../../errors.ts";
import { type JambonzTtsAddress, parseJambonzAddress } from "../../protocol/carrier/jambonz-tts.ts";
import type { Calls } from "../../telephony/calls.ts";
import { JambonzTtsSocket } from "../../vendor-sockets/jambonz-tts.ts";
import type { SocketDeps } from "../../vendor-sockets/ports.ts";
import { Reply } from "../http.ts";
import type { VoiceNames } from "../proxy/voice-names.ts";
import type { Routes } from "../routes.ts";
import { inboxBytes } from "../sockets/inbox.ts";
import { MessageSockets } from "../sockets/message-sockets.ts";
import type { Turns } from "../sockets/turns.ts";
import { admitCarrier, type CarrierAuth, knockOf } from "./carrier-auth.ts";

export interface JambonzSocketsOptions
  extends CarrierAuth,
    Pick<SocketDeps, "upstream" | "clock" | "counters" | "log"> {
  readonly idleSeconds: number;
  /** See SocketTuning; 0: no limit. */
  readonly firstAudioMs: number;
  /** Model that speaks; "" = the upstream's default. */
  readonly defaultModel: string;
  /** See MessageSocketsOptions. */
  readonly turns: Turns;
  /** Each socket belongs to a call that is there already: as many as there may be calls, and none while they drain (503). */
  readonly calls: Calls;
  readonly voices: VoiceNames;
}

/** Two seconds at 16 kHz: more than that in front of a slow client could not be taken back when it interrupts. */
const MAX_OUTBOX_BYTES = 65_536;
/** What one message may add to a full send queue. */
const MESSAGE_SLACK_BYTES = 1024 * 1024;
/** The longest text that may wait, in UTF-8. */
const MAX_MESSAGE_BYTES = 65_536;
const MAX_TEXT_CHARS = 20_000;
const MAX_REQUESTS = 2;

/** Mounts them; what it returns is closed with the gateway. */
export function mountJambonzSockets(
  app: Routes,
  path: string,
  options: JambonzSocketsOptions,
): MessageSockets {
  const sockets = new MessageSockets({
    maxMessageBytes: MAX_MESSAGE_BYTES,
    maxBackpressureBytes: MAX_OUTBOX_BYTES + MESSAGE_SLACK_BYTES,
    maxInboxBytes: inboxBytes({ maxMessageBytes: MAX_MESSAGE_BYTES, maxTextChars: MAX_TEXT_CHARS }),
    idleSeconds: options.idleSeconds,
    turns: options.turns,
  });
  const deps = depsOf(options);
  const behavior = sockets.behavior<JambonzTtsAddress>({
    accept: (res, req) => accept(res, req, { options, sockets }),
    open: ({ voice, language, sampleRate }, port) => {
      const { voices, defaultModel: modelId } = options;
      const voiceId = voices.idOf({ name: voice });
      return new JambonzTtsSocket({ deps, port, voiceId, language, sampleRate, modelId });
    },
  });
  app.ws(path, behavior);
  return sockets;
}

/** null: it may not connect, and has been answered. */
function accept(
  res: HttpResponse,
  req: HttpRequest,
  { options, sockets }: { readonly options: JambonzSocketsOptions; readonly sockets: MessageSockets },
): JambonzTtsAddress | null {
  try {
    admitCarrier(knockOf(req, "jambonz"), options);
    const { calls } = options;
    calls.mustStay();
    if (sockets.count >= calls.maxCalls) throw tooMany(calls.maxCalls);
    return parseJambonzAddress(req.getQuery() ?? "");
  } catch (thrown) {
    new Reply(res).fail(thrown);
    return null;
  }
}

function tooMany(maxSockets: number): GatewayError {
  return new GatewayError(
    "listener_limit",
    `Gateway is full: ${maxSockets} speech sockets of jambonz, which is the limit`,
    { retryAfterMs: 5000 },
  );
}

function depsOf({ upstream, clock, counters, log, firstAudioMs }: JambonzSocketsOptions): SocketDeps {
  return {
    upstream,
    clock,
    counters,
    log,
    tuning: {
      maxContexts: 1,
      maxTextChars: MAX_TEXT_CHARS,
      maxOutboxBytes: MAX_OUTBOX_BYTES,
      maxRequests: MAX_REQUESTS,
      timingHoldMs: 0,
      firstAudioMs,
    },
  };
}
