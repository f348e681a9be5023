/**
 * `/carrier/jambonz/tts`: the gateway as a custom speech vendor of jambonz, by POST for each text and by a
 * WebSocket for each call. Both ask for what jambonz's calls do.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { Caller } from "../../access/caller.ts";
import { GatewayError } from "../../errors.ts";
import {
  type JambonzAudio,
  type JambonzTtsAddress,
  jambonzAudio,
  parseJambonzAddress,
  parseJambonzTts,
  upstreamLanguage,
} from "../../protocol/carrier/jambonz-tts.ts";
import type { Calls } from "../../telephony/calls.ts";
import { JambonzTtsSocket } from "../../vendor-sockets/jambonz-tts.ts";
import type { SocketDeps } from "../../vendor-sockets/ports.ts";
import { sayable } from "../../vendor-sockets/sayable.ts";
import { isSpeakable } from "../../vendor-sockets/text-buffer.ts";
import { Reply } from "../http.ts";
import { type AskedSpeech, SpeechAnswer, type SpeechAnswerDeps } from "../players/speech-answer.ts";
import { type Encoder, PLAIN, wavEncoder } from "../players/spoken-body.ts";
import type { VoiceNames } from "../proxy/voice-names.ts";
import type { Routes } from "../routes.ts";
import type { FairScheduler } from "../sockets/fair-scheduler.ts";
import { inboxBytes } from "../sockets/inbox.ts";
import { MessageSockets } from "../sockets/message-sockets.ts";
import type { CarrierAuth } from "./carrier-auth.ts";

export interface JambonzTtsRouteOptions extends SpeechAnswerDeps {
  readonly carrierAuth: CarrierAuth;
  /** Model that speaks; "" = the upstream's default. */
  readonly defaultModel: string;
  /** See MessageSocketsOptions. */
  readonly scheduler: FairScheduler;
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

const PATH = "/carrier/jambonz/tts";

/** What it returns are the sockets, to be closed with the gateway. */
export function routeJambonzTts(app: Routes, options: JambonzTtsRouteOptions): MessageSockets {
  app.post(PATH, "own", (res, req) => answerPost(res, req, options));
  return mountSockets(app, options);
}

function answerPost(res: HttpResponse, req: HttpRequest, options: JambonzTtsRouteOptions): void {
  const answer = new SpeechAnswer(res, {
    deps: options,
    name: "jambonz's speech",
    answerError: (reply, error) => reply.fail(error),
  });
  try {
    const caller = admit(res, req, options);
    const audio = jambonzAudio(req.getHeader("accept"));
    answer.start(async (body) => {
      const { voice, language, text: written } = parseJambonzTts(body);
      const text = sayable(written, options.defaultModel);
      if (!isSpeakable(text)) {
        const message = "Field 'text' has no words, expected something to say";
        throw new GatewayError("invalid_field", message, { field: "text" });
      }
      const voiceId = await voiceFor(caller, voice, options);
      return askedOf(audio, { voiceId, text, language, modelId: options.defaultModel });
    });
  } catch (thrown) {
    answer.refuse(thrown);
  }
}

/** Who asks. Speech is in no session: they need `call`, as all carriers do, and `speak`. */
function admit(res: HttpResponse, req: HttpRequest, { carrierAuth }: JambonzTtsRouteOptions): Caller {
  return carrierAuth.admit(carrierAuth.requestOf(res, req, "jambonz"), "speak").caller;
}

/** Rejects with not_found, forbidden, and what the upstream answers. */
async function voiceFor(
  caller: Caller,
  name: string,
  { voices, defaultModel }: JambonzTtsRouteOptions,
): Promise<string> {
  const voiceId = await voices.idOf({ name });
  caller.mustUse({ voiceIds: [voiceId], ...(defaultModel === "" ? {} : { modelId: defaultModel }) });
  return voiceId;
}

interface Asked {
  readonly voiceId: string;
  readonly text: string;
  /** As jambonz has it, or "". */
  readonly language: string;
  readonly modelId: string;
}

function askedOf(audio: JambonzAudio, { language, ...asked }: Asked): AskedSpeech {
  const { outputFormat, ...body } = bodyOf(audio);
  const languageCode = upstreamLanguage(language, asked.modelId);
  return {
    ...body,
    events: null,
    speech: { ...asked, outputFormat, ...(languageCode === undefined ? {} : { languageCode }) },
  };
}

/** How the upstream is asked for it, and what it is called on the way out, as jambonz spells it. */
function bodyOf(audio: JambonzAudio): {
  readonly contentType: string;
  readonly outputFormat: string;
  readonly encoder: Encoder;
} {
  if (audio.kind === "mp3")
    return { contentType: "audio/mpeg", outputFormat: "mp3_44100_64", encoder: PLAIN };
  const { kind, sampleRate } = audio;
  const outputFormat = `pcm_${sampleRate}`;
  // The low byte first, whatever RFC 2586 says: jambonz keeps the body as a raw file of FreeSWITCH's, unchanged.
  if (kind === "l16") return { contentType: `audio/l16;rate=${sampleRate}`, outputFormat, encoder: PLAIN };
  return { contentType: "audio/wav", outputFormat, encoder: wavEncoder(sampleRate) };
}

// ---- the sockets

function mountSockets(app: Routes, options: JambonzTtsRouteOptions): MessageSockets {
  const sockets = new MessageSockets({
    maxMessageBytes: MAX_MESSAGE_BYTES,
    maxBackpressureBytes: MAX_OUTBOX_BYTES + MESSAGE_SLACK_BYTES,
    maxInboxBytes: inboxBytes({ maxMessageBytes: MAX_MESSAGE_BYTES, maxTextChars: MAX_TEXT_CHARS }),
    idleSeconds: options.idleSeconds,
    scheduler: options.scheduler,
  });
  const deps = depsOf(options);
  const behavior = sockets.behavior<JambonzTtsAddress & { readonly caller: Caller }>({
    accept: (res, req) => accept(res, req, { options, sockets }),
    open: ({ caller, voice, language, sampleRate }, port) => {
      const { defaultModel: modelId } = options;
      const voiceId = voiceFor(caller, voice, options);
      return new JambonzTtsSocket({ deps, port, voiceId, language, sampleRate, modelId });
    },
  });
  app.ws(PATH, "own", behavior);
  return sockets;
}

/** null: it may not connect, and has been answered. */
function accept(
  res: HttpResponse,
  req: HttpRequest,
  { options, sockets }: { readonly options: JambonzTtsRouteOptions; readonly sockets: MessageSockets },
): (JambonzTtsAddress & { readonly caller: Caller }) | null {
  try {
    const caller = admit(res, req, options);
    const { calls } = options;
    calls.mustStay();
    if (sockets.count >= calls.maxCalls) throw tooMany(calls.maxCalls);
    return { ...parseJambonzAddress(req.getQuery() ?? ""), caller };
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

function depsOf({ upstream, clock, counters, log, firstAudioMs }: JambonzTtsRouteOptions): SocketDeps {
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
