/**
 * One socket of jambonz's streaming speech interface, which lives as long as a call: sentences in, L16 out, until it is
 * interrupted. What has not left then is dropped, here and at the upstream.
 */
import { type GatewayError, toGatewayError } from "../errors.ts";
import type { Timer } from "../kit/clock.ts";
import { NORMAL_CLOSURE, POLICY_VIOLATION } from "../kit/close-codes.ts";
import { Semaphore } from "../kit/semaphore.ts";
import {
  endsSentence,
  type JambonzTtsMessage,
  jambonzConnect,
  jambonzError,
  jointOf,
  parseJambonzMessage,
  upstreamLanguage,
} from "../protocol/carrier/jambonz-tts.ts";
import type { SpeechRequest } from "../upstream/types.ts";
import { ContextSpeech } from "./context-speech.ts";
import type { SocketDeps, SocketPort, SpeakingSocket } from "./ports.ts";
import { SaidBefore } from "./requests.ts";
import { sayable } from "./sayable.ts";
import { isSpeakable, TextBuffer } from "./text-buffer.ts";

export interface JambonzTtsOptions {
  readonly deps: SocketDeps;
  readonly port: Omit<SocketPort, "send"> & { send(message: string | Uint8Array): void };
  /** Id of the voice that the URL names; nothing is said before it is known, and not even `connect` sent. */
  readonly voiceId: Promise<string>;
  /** As jambonz has it, or "". */
  readonly language: string;
  /** Hz, of the upstream's PCM. */
  readonly sampleRate: number;
  /** "" = the upstream's own. */
  readonly modelId: string;
  /** Set for every text; it wins over what jambonz says. */
  readonly pinned: JambonzPinned;
}

type JambonzPinned = Pick<
  SpeechRequest,
  "languageCode" | "seed" | "applyTextNormalization" | "enableLogging"
>;

/**
 * A text that does not end a sentence waits so long for the rest of it, ms. jambonz itself has waited a second for the
 * sentence's end by then, or flushes at once.
 */
const REST_WAIT_MS = 250;

export class JambonzTtsSocket implements SpeakingSocket {
  readonly #options: JambonzTtsOptions;
  #speech: ContextSpeech;
  /** Its markup is kept together: applications send `<break>` here. */
  #buffer = new TextBuffer(true);
  #last = "";
  readonly #before = new SaidBefore();
  #voiceId: string | null = null;
  #restTimer: Timer | null = null;
  /** Nothing more is taken: why it closes when all has been said; null: it goes on. */
  #expiry: GatewayError | null = null;
  #isClosed = false;

  constructor(options: JambonzTtsOptions) {
    this.#options = options;
    this.#speech = this.#newSpeech();
    options.voiceId.then(
      (voiceId) => this.#connect(voiceId),
      (thrown: unknown) => this.refuse(thrown),
    );
  }

  receive(json: string): void {
    if (this.#isClosed) return;
    try {
      this.#handle(parseJambonzMessage(json));
    } catch (thrown) {
      this.refuse(thrown);
    }
  }

  /** An error message, and the close that follows it. */
  refuse(thrown: unknown): void {
    if (this.#isClosed) return;
    const error = toGatewayError(thrown);
    this.closed();
    this.#note(error);
    endJambonzSocket(this.#options.port, error);
  }

  drained(): void {
    if (!this.#isClosed) this.#speech.pump();
  }

  closed(): void {
    this.#isClosed = true;
    this.#drop();
  }

  expire(error: GatewayError): void {
    if (this.#isClosed || this.#expiry !== null) return;
    this.#expiry = error;
    this.#finish();
  }

  #connect(voiceId: string): void {
    if (this.#isClosed) return;
    this.#voiceId = voiceId;
    this.#options.port.send(jambonzConnect(this.#options.sampleRate));
    // Who speaks before it is connected has waited long enough.
    this.#say();
    this.#finish();
  }

  /** Whose time is over says what it has; while it has no voice yet, that waits. */
  #finish(): void {
    if (this.#expiry === null || this.#voiceId === null) return;
    this.#say();
    this.#speech.end();
  }

  #handle(message: JambonzTtsMessage): void {
    switch (message.type) {
      case "stream":
        if (this.#expiry === null) this.#take(message.text);
        break;
      case "flush":
        this.#say();
        if (this.#voiceId !== null) this.#before.forget();
        break;
      case "clear":
        this.#restart();
        break;
      case "stop":
        this.closed();
        this.#options.port.end(NORMAL_CLOSURE, "");
        break;
      default:
    }
  }

  #take(text: string): void {
    if (text.trim() === "") return;
    this.#buffer.push(jointOf(this.#last, text) + text);
    this.#last = text;
    const overflow = this.#speech.findOverflow(this.#buffer.chars);
    if (overflow !== null) throw overflow;
    if (endsSentence(text)) this.#say();
    else this.#sayLater();
  }

  #sayLater(): void {
    const { clock } = this.#options.deps;
    this.#restTimer?.cancel();
    this.#restTimer = clock.at(clock.nowMs() + REST_WAIT_MS, () => this.#say());
  }

  /** All there is. */
  #say(): void {
    this.#restTimer?.cancel();
    this.#restTimer = null;
    if (this.#voiceId === null) return;
    for (const written of this.#buffer.takeAll()) {
      this.#last = "";
      const text = sayable(written, this.#options.modelId);
      if (!isSpeakable(text)) continue;
      this.#speech.say(this.#requestOf(this.#voiceId, text), text);
      this.#before.note(text);
    }
    this.#speech.pump();
  }

  #requestOf(voiceId: string, text: string): SpeechRequest {
    const { language, modelId, pinned } = this.#options;
    const languageCode = upstreamLanguage(language, modelId);
    return {
      kind: "speech",
      voiceId,
      text,
      outputFormat: this.#format,
      wantsTiming: false,
      ...(modelId === "" ? {} : { modelId }),
      ...(languageCode === undefined ? {} : { languageCode }),
      ...pinned,
      ...this.#before.stitch(modelId, pinned.enableLogging !== false),
    };
  }

  get #format(): string {
    return `pcm_${this.#options.sampleRate}`;
  }

  /** Nothing of what was said so far is sent any more. */
  #drop(): void {
    this.#restTimer?.cancel();
    this.#restTimer = null;
    this.#buffer = new TextBuffer(true);
    this.#last = "";
    this.#before.forget();
    this.#speech.abort();
  }

  #newSpeech(): ContextSpeech {
    const { deps, port } = this.#options;
    return new ContextSpeech({
      deps,
      slots: new Semaphore({ limit: deps.limits.maxRequests }),
      format: this.#format,
      // Nobody asks for timing here, so nothing waits for it.
      isSynced: true,
      isAbsolute: false,
      output: {
        hasRoom: () => port.bufferedBytes() < deps.limits.maxOutboxBytes,
        audio: ({ audio }) => {
          if (audio.length > 0) port.send(audio);
        },
        flushed: () => undefined,
        over: () => {
          if (this.#expiry !== null) this.refuse(this.#expiry);
        },
        failed: (error) => this.#onFailed(error),
      },
    });
  }

  /** What was waiting to be said is lost; the call goes on, and so may its next sentence. */
  #onFailed(error: GatewayError): void {
    if (this.#isClosed) return;
    this.#note(error);
    this.#options.port.send(jambonzError(error));
    this.#restart();
  }

  #restart(): void {
    this.#drop();
    this.#speech = this.#newSpeech();
    this.#finish();
  }

  /** It is said to jambonz. */
  #note(error: GatewayError): void {
    const { deps } = this.#options;
    deps.counters.refusals.sent(error);
    if (error.code === "internal") deps.log.error({ err: error.cause ?? error }, "Fault on a jambonz socket");
    else deps.log.info({ error: error.code }, "Error on a jambonz socket");
  }
}

/** An error message, and the close that follows it. */
export function endJambonzSocket(port: JambonzTtsOptions["port"], error: GatewayError): void {
  port.send(jambonzError(error));
  port.end(POLICY_VIOLATION, error.code);
}
