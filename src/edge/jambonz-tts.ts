/**
 * `/carrier/jambonz/tts`: the gateway as a custom speech vendor of jambonz, by POST for each text and by a WebSocket for
 * each call. Both ask for the carrier token, where one is set.
 */
import type { HttpRequest, HttpResponse, TemplatedApp, WebSocketBehavior } from "uWebSockets.js";
import { JambonzTtsSocket } from "../contexts/jambonz-tts.ts";
import type { SocketDeps } from "../contexts/ports.ts";
import { isSpeakable } from "../contexts/text-buffer.ts";
import { ERRORS, GatewayError, toGatewayError } from "../errors.ts";
import {
  type JambonzAudio,
  type JambonzTtsAddress,
  jambonzAudio,
  parseJambonzAddress,
  parseJambonzTts,
  upstreamLanguage,
} from "../protocol/carrier/jambonz-tts.ts";
import { admitCarrier, type CarrierAuth } from "./carrier-auth.ts";
import { Reply, readBody } from "./http.ts";
import { VoiceNames, type VoiceNamesOptions } from "./openai-voices.ts";
import { type Encoder, PLAIN, SpokenBody, type SpokenBodyOptions, wavEncoder } from "./spoken-body.ts";
import { UwsPort } from "./uws-port.ts";

export interface JambonzTtsRouteOptions
  extends CarrierAuth,
    VoiceNamesOptions,
    Pick<SpokenBodyOptions, "upstream" | "counters" | "log" | "idleSeconds" | "firstAudioMs"> {
  /** Model that speaks; "" = the upstream's default. */
  readonly defaultModel: string;
  /** Most sockets at once; more are refused with 503. */
  readonly maxSockets: number;
}

export interface JambonzTtsRoute {
  /** Ends every socket and what it has asked of the upstream: close 1001. Idempotent; new ones are refused after it. */
  close(): void;
}

const PATH = "/carrier/jambonz/tts";
/** The longest text in UTF-8, escaped in JSON, and the markup of an SSML document. */
const MAX_BODY_BYTES = 65_536;
/** Two seconds at 16 kHz: more than that in front of a slow client could not be taken back when it interrupts. */
const MAX_OUTBOX_BYTES = 65_536;
/** What one message may add to a full outbox. */
const MESSAGE_SLACK_BYTES = 1024 * 1024;
/** The longest text that may wait, in UTF-8. Longer messages are still read up to here, so that they can be answered with an error. */
const MAX_MESSAGE_BYTES = 65_536;
const HARD_MESSAGE_BYTES = 512 * 1024;
const MAX_TEXT_CHARS = 20_000;
const MAX_REQUESTS = 2;

export function routeJambonzTts(app: TemplatedApp, options: JambonzTtsRouteOptions): JambonzTtsRoute {
  const voices = new VoiceNames(options);
  const all = new Set<UwsPort<SocketData>>();
  const door = { isClosed: false };
  app.post(PATH, (res, req) => {
    new SpeechAnswer(res, options, voices).answer(req);
  });
  app.ws(PATH, behavior({ options, voices, all, door }));
  return {
    close: () => {
      door.isClosed = true;
      const { closeCode, meaning } = ERRORS.draining;
      for (const port of [...all]) port.end(closeCode, meaning);
    },
  };
}

/** Throws carrier_unauthorized. */
function admit(req: HttpRequest, options: CarrierAuth): void {
  const headers = new Map<string, string>();
  req.forEach((name, value) => {
    headers.set(name, value);
  });
  admitCarrier({ carrier: "jambonz", path: PATH, query: req.getQuery() ?? "", headers }, options);
}

class SpeechAnswer {
  readonly #res: HttpResponse;
  readonly #options: JambonzTtsRouteOptions;
  readonly #voices: VoiceNames;
  #isAborted = false;
  #body: SpokenBody | null = null;

  constructor(res: HttpResponse, options: JambonzTtsRouteOptions, voices: VoiceNames) {
    this.#res = res;
    this.#options = options;
    this.#voices = voices;
    res.onAborted(() => {
      this.#isAborted = true;
      this.#body?.markAborted();
    });
  }

  /** The request may be read before this returns, and not after. */
  answer(req: HttpRequest): void {
    try {
      admit(req, this.#options);
      const audio = jambonzAudio(req.getHeader("accept"));
      this.#start(audio).catch((thrown: unknown) => this.#refuse(thrown));
    } catch (thrown) {
      this.#refuse(thrown);
    }
  }

  async #start(audio: JambonzAudio): Promise<void> {
    const { voice, language, text } = parseJambonzTts(await readBody(this.#res, MAX_BODY_BYTES));
    if (!isSpeakable(text)) {
      throw new GatewayError("invalid_field", "Field 'text' has no words, expected something to say", {
        field: "text",
      });
    }
    const voiceId = await this.#voices.idOf({ name: voice });
    if (this.#isAborted) return;
    const modelId = this.#options.defaultModel;
    const languageCode = upstreamLanguage(language, modelId);
    const { contentType, outputFormat, encoder } = bodyOf(audio);
    this.#body = new SpokenBody({
      ...this.#options,
      res: this.#res,
      contentType,
      encoder,
      events: null,
      request: {
        kind: "speech",
        voiceId,
        text,
        wantsTiming: false,
        outputFormat,
        ...(modelId === "" ? {} : { modelId }),
        ...(languageCode === undefined ? {} : { languageCode }),
      },
      onRefused: (error) => this.#refuse(error),
    });
  }

  /** Nothing was sent yet. */
  #refuse(thrown: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    const error = toGatewayError(thrown);
    const { log } = this.#options;
    if (error.code === "internal") log.error({ err: error.cause ?? error }, "Fault in jambonz's speech");
    new Reply(this.#res).fail(error);
  }
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

/** What the server library keeps for each socket. */
interface SocketData {
  readonly address: JambonzTtsAddress;
  port: UwsPort<SocketData> | null;
  socket: JambonzTtsSocket | null;
}

interface Mounted {
  readonly options: JambonzTtsRouteOptions;
  readonly voices: VoiceNames;
  readonly all: Set<UwsPort<SocketData>>;
  readonly door: { readonly isClosed: boolean };
}

function behavior({ options, voices, all, door }: Mounted): WebSocketBehavior<SocketData> {
  const decoder = new TextDecoder();
  const deps = depsOf(options);
  const { defaultModel: modelId } = options;
  return {
    maxPayloadLength: HARD_MESSAGE_BYTES,
    maxBackpressure: MAX_OUTBOX_BYTES + MESSAGE_SLACK_BYTES,
    closeOnBackpressureLimit: false,
    idleTimeout: options.idleSeconds,
    sendPingsAutomatically: true,
    upgrade: (res, req, context) => {
      let data: SocketData;
      try {
        admit(req, options);
        if (door.isClosed) throw new GatewayError("draining", ERRORS.draining.meaning);
        if (all.size >= options.maxSockets) throw tooMany(options.maxSockets);
        data = { address: parseJambonzAddress(req.getQuery() ?? ""), port: null, socket: null };
      } catch (thrown) {
        new Reply(res).fail(thrown);
        return;
      }
      const key = req.getHeader("sec-websocket-key");
      const protocol = req.getHeader("sec-websocket-protocol");
      const extensions = req.getHeader("sec-websocket-extensions");
      res.cork(() => res.upgrade(data, key, protocol, extensions, context));
    },
    open: (ws) => {
      const data = ws.getUserData();
      const { voice, language, sampleRate } = data.address;
      const port = new UwsPort(ws);
      data.port = port;
      all.add(port);
      const voiceId = voices.idOf({ name: voice });
      data.socket = new JambonzTtsSocket({ deps, port, voiceId, language, sampleRate, modelId });
    },
    message: (ws, message, isBinary) => {
      const { socket } = ws.getUserData();
      if (isBinary) {
        socket?.refuse(new GatewayError("binary_not_allowed", "Message is binary, expected JSON text"));
      } else if (message.byteLength > MAX_MESSAGE_BYTES) {
        const text = `Message is too large: ${message.byteLength} bytes, expected at most ${MAX_MESSAGE_BYTES}`;
        socket?.refuse(new GatewayError("message_too_large", text));
      } else {
        // The library has checked that text is UTF-8.
        socket?.receive(decoder.decode(message));
      }
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
}

function tooMany(maxSockets: number): GatewayError {
  return new GatewayError("listener_limit", `The gateway holds ${maxSockets} sockets of jambonz, its most`);
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
