/** One `stream-input` or `multi-stream-input` socket: text in, generations and their audio out. */
import { ChunkSchedule } from "../protocol/elevenlabs/chunk-schedule.ts";
import { SPEECH_DIALECT } from "../protocol/elevenlabs/server-messages.ts";
import { fault } from "../protocol/elevenlabs/socket-faults.ts";
import {
  type ContextOptions,
  changedOption,
  parseSpeechMessage,
  type SpeechMessage,
} from "../protocol/elevenlabs/speech-messages.ts";
import type { SpeechRequest } from "../upstream/types.ts";
import type { Context } from "./context-set.ts";
import { ContextSocket } from "./context-socket.ts";
import type { SocketOptions } from "./ports.ts";
import { SaidBefore, sharedRequest } from "./requests.ts";
import { TextBuffer } from "./text-buffer.ts";

/** Messages for a context that is closing wait for its end. */
const MAX_WAITING = 64;

interface SpeechContext {
  readonly options: ContextOptions;
  readonly buffer: TextBuffer;
  readonly schedule: ChunkSchedule;
  readonly before: SaidBefore;
  /** For the next context of this id, which begins when this one is over. */
  readonly waiting: SpeechMessage[];
}

type SpeechSocketOptions = SocketOptions & { readonly voiceId: string };

export class SpeechSocket extends ContextSocket<SpeechMessage, SpeechContext> {
  readonly #options: SpeechSocketOptions;

  constructor(options: SpeechSocketOptions) {
    super({ ...options, dialect: SPEECH_DIALECT, countsClosing: false, voicesOf: () => [options.voiceId] });
    this.#options = options;
  }

  protected parse(json: string, isMulti: boolean): SpeechMessage {
    return parseSpeechMessage(json, isMulti);
  }

  protected messagesAfter({ own }: Context<SpeechContext>): readonly SpeechMessage[] {
    return own.waiting;
  }

  protected handle(message: SpeechMessage): void {
    const { contextId, closeContext, closeSocket } = message;
    const found = this.contexts.find(contextId);
    this.contexts.touch(found);
    if (closeSocket) this.endSocket();
    else if (found?.isClosing === true) this.#wait(found, message);
    else if (found !== undefined) this.#goOn(found, message);
    else if (!closeContext && !this.#isKeepalive(message)) this.#open(message);
  }

  /** A message for no context is the multi endpoint's own keepalive. */
  #isKeepalive({ contextId, text, flush }: SpeechMessage): boolean {
    return this.#options.isMulti && contextId === "" && text === "" && !flush;
  }

  #open(message: SpeechMessage): void {
    const { options } = message;
    const context = this.contexts.open(message.contextId, {
      options,
      buffer: new TextBuffer(this.#options.settings.hasSsml),
      schedule: new ChunkSchedule(options.chunkLengthSchedule),
      before: new SaidBefore(),
      waiting: [],
    });
    if (context !== null) this.#feed(context, message);
  }

  #goOn(context: Context<SpeechContext>, message: SpeechMessage): void {
    const changed = changedOption(context.own.options, message.options);
    if (changed !== undefined) {
      const text = `${changed} must be given in the first message of a context and be absent or unchanged after it`;
      this.contexts.fail(fault("invalid_input_message", text), context.id);
    } else if (message.closeContext) this.finish(context);
    else if (!this.#isKeepalive(message)) this.#feed(context, message);
  }

  /** A context that uses the id again comes after the one that is closing. */
  #wait({ id, own }: Context<SpeechContext>, message: SpeechMessage): void {
    const isNothing = message.closeContext || (message.text === "" && !message.flush);
    if (isNothing && own.waiting.length === 0) return;
    if (own.waiting.length < MAX_WAITING) own.waiting.push(message);
    else {
      const text = `More than ${MAX_WAITING} messages came for a context that is closing`;
      this.contexts.fail(fault("invalid_input_message", text), id);
    }
  }

  #feed(context: Context<SpeechContext>, message: SpeechMessage): void {
    const { buffer } = context.own;
    const { text, flush, triesToStart } = message;
    if (text !== null) buffer.push(text);
    if (!this.checkBounds(context)) return;
    const isEnd = !this.#options.isMulti && text === "";
    if (isEnd || flush) this.sayAll(context);
    else if (this.#options.settings.isAuto) this.#sayPieces(context, buffer.takeSettled());
    else this.#sayDue(context, triesToStart);
    if (isEnd) this.endSocket();
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

  protected sayAll(context: Context<SpeechContext>): void {
    this.#sayPieces(context, context.own.buffer.takeAll());
  }

  #sayPieces(context: Context<SpeechContext>, pieces: readonly string[]): void {
    for (const text of pieces) this.#say(context, text);
  }

  #say(context: Context<SpeechContext>, text: string): void {
    const { own, speech } = context;
    own.schedule.advance();
    speech.say(this.#requestOf(own, text), text);
    own.before.note(text);
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
      ...before.stitch(modelId, enableLogging ?? true),
    };
  }
}
