/**
 * `/carrier/jambonz/tts`: the gateway as a custom speech vendor of jambonz, by POST for each text and by a
 * WebSocket for each call. Both ask for what jambonz's calls do.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { Caller } from "../../access/caller.ts";
import type { UpstreamSubject } from "../../access/limits/limits.ts";
import { GatewayError, toGatewayError } from "../../errors.ts";
import {
  type JambonzAudio,
  type JambonzTtsAddress,
  jambonzAudio,
  parseJambonzAddress,
  parseJambonzTts,
  upstreamLanguage,
} from "../../protocol/carrier/jambonz-tts.ts";
import type { Calls } from "../../telephony/calls.ts";
import type { Traced } from "../../tracing/tracer.ts";
import {
  endJambonzSocket,
  type JambonzTtsOptions,
  JambonzTtsSocket,
} from "../../vendor-sockets/jambonz-tts.ts";
import type { SocketDeps, SpeakingSocket, VendorSocket } from "../../vendor-sockets/ports.ts";
import { sayable } from "../../vendor-sockets/sayable.ts";
import { isSpeakable } from "../../vendor-sockets/text-buffer.ts";
import { Reply } from "../http.ts";
import { beginHttpSpan, tracedBy } from "../http-span.ts";
import { SpeechAnswer, type SpeechAnswerDeps } from "../players/speech-answer.ts";
import { type Encoder, PLAIN, wavEncoder } from "../players/spoken-body.ts";
import type { VoiceNames } from "../proxy/voice-names.ts";
import { noteCaller, type Routes } from "../routes.ts";
import type { FairScheduler } from "../sockets/fair-scheduler.ts";
import { inboxBytes } from "../sockets/inbox.ts";
import { LeasedSocket } from "../sockets/leased-socket.ts";
import { MessageSockets } from "../sockets/message-sockets.ts";
import {
  type Asking,
  audited,
  modelFor,
  mustHaveSpeech,
  pinnedOptions,
  waitingText,
} from "../speech-access.ts";
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
    span: beginHttpSpan(req, options),
    answerError: (reply, error) => reply.fail(error),
  });
  const { door } = options;
  try {
    const asking = admit(res, req, options);
    const { caller } = asking;
    noteCaller(res, req, { ...asking, sessionId: null });
    const { outputFormat, ...audio } = bodyOf(jambonzAudio(req.getHeader("accept")));
    const speaking = speakingFor(asking, { outputFormat, ...options });
    door.audit.admitted(caller, { ...asking, sessionId: null });
    answer.start(async (body) => {
      const { voice, language, text: written } = parseJambonzTts(body);
      const text = sayable(written, speaking.modelId);
      if (!isSpeakable(text)) {
        const message = "Field 'text' has no words, expected something to say";
        throw new GatewayError("invalid_field", message, { field: "text" });
      }
      const voiceId = await voiceFor(asking, voice, options);
      const mustStay = (now: Caller): void => speaking.mustStay(now, voiceId);
      audited(asking, () => mustStay(caller));
      const charged = audited(asking, () => door.limits.speechBudget(() => caller).begin(text.length));
      const { modelId } = speaking;
      const languageCode = upstreamLanguage(language, modelId);
      const said = languageCode === undefined ? {} : { languageCode };
      const subject = subjectOf(asking);
      const speech = { voiceId, text, outputFormat, ...said, ...pinnedOptions(caller), modelId, subject };
      return { ...audio, caller, mustStay, events: null, speech, charged };
    });
  } catch (thrown) {
    answer.refuse(thrown);
  }
}

/** Who asks. Speech is in no session: they need `call`, as all carriers do, and `speak`. */
function admit(res: HttpResponse, req: HttpRequest, { carrierAuth, door }: JambonzTtsRouteOptions): Asking {
  const request = carrierAuth.requestOf(res, req, "jambonz");
  const { caller } = carrierAuth.admit(request, "speak");
  return { door, caller, surface: PATH, address: request.address };
}

function subjectOf({ door, caller, address }: Asking): UpstreamSubject {
  return door.limits.upstreamSubject(caller, address);
}

interface Speaking {
  /** "": the upstream's own. */
  readonly modelId: string;
  /** `voiceId`: null until it is known. Throws forbidden where the caller may not have all of it. */
  readonly mustStay: (now: Caller, voiceId: string | null) => void;
}

/** What the caller's texts are spoken with, but for the voice. Throws forbidden. */
function speakingFor(
  asking: Asking,
  { outputFormat, defaultModel }: { readonly outputFormat: string; readonly defaultModel: string },
): Speaking {
  const modelId = modelFor(asking.caller, defaultModel);
  const mustStay = (now: Caller, voiceId: string | null): void => {
    // Who has passed a check of the carrier's own has no key.
    if (now.isAnybody) return;
    now.must("call");
    now.must("speak");
    mustHaveSpeech(now, { voiceIds: voiceId === null ? [] : [voiceId], modelId, outputFormat });
  };
  audited(asking, () => mustStay(asking.caller, null));
  return { modelId, mustStay };
}

/** Rejects with not_found, and what the upstream answers. */
async function voiceFor(
  { caller }: Asking,
  name: string,
  { voices }: JambonzTtsRouteOptions,
): Promise<string> {
  return caller.speechSettings.voice_id ?? (await voices.idOf({ name }));
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
  const behavior = sockets.behavior<SocketRequest>({
    accept: (res, req) => accept(res, req, { options, sockets }),
    open: (request, port) => openSocket(request, port, { options, deps }),
  });
  app.ws(PATH, "own", behavior);
  return sockets;
}

interface SocketRequest extends JambonzTtsAddress {
  readonly asking: Asking;
  readonly speaking: Speaking;
  readonly traced: Traced | undefined;
  /** The Origin header, possibly empty. */
  readonly origin: string;
}

/** null: it may not stay, and was ended. */
function openSocket(
  { asking, speaking, traced, origin, voice, ...address }: SocketRequest,
  port: JambonzTtsOptions["port"],
  { options, deps }: { readonly options: JambonzTtsRouteOptions; readonly deps: SocketDeps },
): VendorSocket | null {
  const { door, caller, ...place } = asking;
  const { modelId, mustStay } = speaking;
  let known: string | null = null;
  const open = (now: () => Caller): SpeakingSocket => {
    const voiceId = voiceFor(asking, voice, options).then((id) => {
      audited(asking, () => mustStay(now(), id));
      known = id;
      return id;
    });
    const spend = (characters: number): void => door.limits.spend(now(), { characters, utterances: 1 });
    const pinned = pinnedOptions(caller);
    const speakingDeps = {
      ...deps,
      spend,
      subject: subjectOf(asking),
      traced,
      waitingText: () => waitingText(asking),
    };
    return new JambonzTtsSocket({ ...address, deps: speakingDeps, port, voiceId, modelId, pinned });
  };
  // As for calls: who has passed a check of the carrier's own is not counted.
  if (caller.isAnybody) return open(() => caller);
  const source = { ...place, origin };
  try {
    return new LeasedSocket({ door, caller, source, open, mustStay: (now) => mustStay(now, known) });
  } catch (thrown) {
    door.audit.refused({ ...place, thrown, caller });
    door.access.giveBack(caller);
    endJambonzSocket(port, toGatewayError(thrown));
    return null;
  }
}

/** null: it may not connect, and has been answered. */
function accept(
  res: HttpResponse,
  req: HttpRequest,
  { options, sockets }: { readonly options: JambonzTtsRouteOptions; readonly sockets: MessageSockets },
): SocketRequest | null {
  try {
    const asking = admit(res, req, options);
    const { calls } = options;
    calls.mustStay();
    audited(asking, () => {
      if (sockets.count >= calls.maxCalls) throw tooMany(calls.maxCalls);
    });
    const address = parseJambonzAddress(req.getQuery() ?? "");
    const outputFormat = `pcm_${address.sampleRate}`;
    const speaking = speakingFor(asking, { ...options, outputFormat });
    const traced = tracedBy(req, options.tracer);
    return { ...address, asking, speaking, traced, origin: req.getHeader("origin") };
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
    limits: {
      maxContexts: 1,
      maxTextChars: MAX_TEXT_CHARS,
      maxOutboxBytes: MAX_OUTBOX_BYTES,
      maxRequests: MAX_REQUESTS,
      timingHoldMs: 0,
      firstAudioMs,
    },
  };
}
