/** One `stream-input` or `multi-stream-input` socket (contract B2-B6): text in, generations and their audio out. */
import { ChunkSchedule } from "../protocol/elevenlabs/chunk-schedule.ts";
import { SPEECH_DIALECT } from "../protocol/elevenlabs/server-messages.ts";
import { fault } from "../protocol/elevenlabs/socket-faults.ts";
import {
  type ContextOptions,
  changedOption,
  parseSpeechMessage,
  type SpeechMessage,
} from "../protocol/elevenlabs/speech-messages.ts";
import { stitch } from "../upstream/stitching.ts";
import type { SpeechRequest } from "../upstream/types.ts";
import { type Context, ContextSet } from "./context-set.ts";
import { KeyGate, refusedKey } from "./key-gate.ts";
import type { SocketOptions, VendorSocket } from "./ports.ts";
import { sharedRequest } from "./shared-request.ts";
import { TextBuffer } from "./text-buffer.ts";

/** As much of what was said before as may tell the upstream how to go on (upstream/stitching.ts takes less). */
const MAX_BEFORE_CHARS = 500;
/** Messages for a context that is closing wait for its end. */
const MAX_WAITING = 64;

interface SpeechContext {
  readonly options: ContextOptions;
  readonly buffer: TextBuffer;
  readonly schedule: ChunkSchedule;
  /** What was asked of the upstream, its end. */
  before: string;
  /** For the next context of this id, which begins when this one is over. */
  readonly waiting: SpeechMessage[];
}

export class SpeechSocket implements VendorSocket {
  readonly #options: SocketOptions & { readonly voiceId: string };
  readonly #contexts: ContextSet<SpeechContext>;
  readonly #gate: KeyGate<SpeechMessage>;

  constructor(options: SocketOptions & { readonly voiceId: string }) {
    this.#options = options;
    this.#contexts = new ContextSet<SpeechContext>({
      ...options,
      dialect: SPEECH_DIALECT,
      countsClosing: false,
      onIdle: (context) => this.#close(context),
      onOver: (context) => {
        for (const message of context.own.waiting) this.#handle(message);
      },
    });
    this.#gate = new KeyGate({
      check: options.deps.checkKey,
      credentials: options.credentials,
      onMessage: (message) => this.#handle(message),
      onRefused: (reason) => this.#contexts.fail(refusedKey(reason), ""),
      onError: (thrown) => this.#contexts.failWith(thrown, ""),
    });
  }

  receive(json: string): void {
    try {
      this.#gate.push(parseSpeechMessage(json, this.#options.isMulti));
    } catch (thrown) {
      this.refuse(thrown);
    }
  }

  refuse(thrown: unknown): void {
    this.#gate.close();
    this.#contexts.failWith(thrown, "");
  }

  drained(): void {
    this.#contexts.pump();
  }

  closed(): void {
    this.#gate.close();
    this.#contexts.abort();
  }

  #handle(message: SpeechMessage): void {
    if (this.#contexts.isEnding) return;
    const { contextId, closeContext, closeSocket } = message;
    const found = this.#contexts.find(contextId);
    this.#contexts.touch(found);
    if (closeSocket) this.#endSocket();
    else if (found?.isClosing === true) this.#wait(found, message);
    else if (found !== undefined) this.#goOn(found, message);
    else if (!closeContext && !this.#isKeepalive(message)) this.#open(message);
  }

  /** Of no context: the multi endpoint's own keepalive (contract G1). */
  #isKeepalive({ contextId, text, flush }: SpeechMessage): boolean {
    return this.#options.isMulti && contextId === "" && text === "" && !flush;
  }

  #open(message: SpeechMessage): void {
    const { options } = message;
    const context = this.#contexts.open(message.contextId, {
      options,
      buffer: new TextBuffer(this.#options.settings.hasSsml),
      schedule: new ChunkSchedule(options.chunkLengthSchedule),
      before: "",
      waiting: [],
    });
    if (context !== null) this.#feed(context, message);
  }

  #goOn(context: Context<SpeechContext>, message: SpeechMessage): void {
    const changed = changedOption(context.own.options, message.options);
    if (changed !== undefined) {
      const text = `${changed} must be given in the first message of a context and be absent or unchanged after it`;
      this.#contexts.fail(fault("invalid_input_message", text), context.id);
    } else if (message.closeContext) this.#close(context);
    else if (!this.#isKeepalive(message)) this.#feed(context, message);
  }

  /** A context that uses the id again comes after the one that is closing. */
  #wait({ id, own }: Context<SpeechContext>, message: SpeechMessage): void {
    const isNothing = message.closeContext || (message.text === "" && !message.flush);
    if (isNothing && own.waiting.length === 0) return;
    if (own.waiting.length < MAX_WAITING) own.waiting.push(message);
    else {
      const text = `More than ${MAX_WAITING} messages came for a context that is closing`;
      this.#contexts.fail(fault("invalid_input_message", text), id);
    }
  }

  #feed(context: Context<SpeechContext>, message: SpeechMessage): void {
    const { buffer } = context.own;
    const { text, flush, triesToStart } = message;
    if (text !== null) buffer.push(text);
    const overflow = context.speech.findOverflow(buffer.chars);
    if (overflow !== null) {
      this.#contexts.failWith(overflow, context.id);
      return;
    }
    const isEnd = !this.#options.isMulti && text === "";
    if (isEnd || flush || this.#options.settings.isAuto) this.#sayAll(context);
    else this.#sayDue(context, triesToStart);
    if (isEnd) this.#endSocket();
    else context.speech.pump();
  }

  #sayDue(context: Context<SpeechContext>, triesToStart: boolean): void {
    const { buffer, schedule } = context.own;
    while (schedule.isDue(buffer.chars, triesToStart)) {
      const text = buffer.takeWords();
      if (text === null) return;
      this.#say(context, text);
    }
  }

  #sayAll(context: Context<SpeechContext>): void {
    for (const text of context.own.buffer.takeAll()) this.#say(context, text);
  }

  #say(context: Context<SpeechContext>, text: string): void {
    const { own, speech } = context;
    own.schedule.advance();
    speech.say(this.#requestOf(own, text), text);
    own.before = (own.before + text).slice(-MAX_BEFORE_CHARS);
  }

  #requestOf({ options, before }: SpeechContext, text: string): SpeechRequest {
    const { settings, voiceId } = this.#options;
    const { modelId, enableLogging } = settings;
    return {
      kind: "speech",
      ...sharedRequest(settings, options.locators),
      voiceId,
      text,
      ...(options.voiceSettings === undefined ? {} : { voiceSettings: options.voiceSettings }),
      ...stitch({ modelId, isLogged: enableLogging ?? true, before, behind: "", requestIds: [] }),
    };
  }

  /** What waits is said, and then it is over. */
  #close(context: Context<SpeechContext>): void {
    this.#sayAll(context);
    this.#contexts.close(context);
  }

  #endSocket(): void {
    // Its contexts first: one that has nothing to say is over at once, and the last one closes the socket.
    const contexts = [...this.#contexts];
    this.#contexts.endSocket();
    for (const context of contexts) if (!context.isClosing) this.#close(context);
  }
}
