/** One text-to-dialogue socket, single or multi: lines of registered voices in, their audio out. */
import { type DialogueMessage, parseDialogueMessage } from "../protocol/elevenlabs/dialogue-messages.ts";
import type { DictionaryLocator } from "../protocol/elevenlabs/message-json.ts";
import { DIALOGUE_DIALECT } from "../protocol/elevenlabs/server-messages.ts";
import { fault } from "../protocol/elevenlabs/socket-faults.ts";
import { maxVoices, type SocketSettings } from "../protocol/elevenlabs/socket-settings.ts";
import type { DialogueRequest } from "../upstream/types.ts";
import type { Context } from "./context-set.ts";
import { ContextSocket } from "./context-socket.ts";
import { DialogueBuffer } from "./dialogue-buffer.ts";
import type { SocketOptions, VoiceRule } from "./ports.ts";
import { sharedRequest } from "./requests.ts";

interface DialogueContext {
  readonly voices: readonly string[];
  readonly settings: { readonly stability?: number } | undefined;
  readonly locators: readonly DictionaryLocator[] | undefined;
  readonly buffer: DialogueBuffer;
}

export class DialogueSocket extends ContextSocket<DialogueMessage, DialogueContext> {
  readonly #settings: SocketSettings;
  readonly #voices: VoiceRule;

  constructor(options: SocketOptions) {
    super({ ...options, dialect: DIALOGUE_DIALECT, countsClosing: true, voicesOf: ({ voices }) => voices });
    this.#settings = options.settings;
    this.#voices = options.voices;
  }

  protected parse(json: string, isMulti: boolean): DialogueMessage {
    const message = parseDialogueMessage(json, isMulti);
    const { pinned } = this.#voices;
    if (pinned === null) return message;
    return {
      ...message,
      voices: message.voices === null ? null : [pinned],
      inputs: message.inputs.map((input) => ({ ...input, voiceId: pinned })),
    };
  }

  /** A closing context takes no messages. */
  protected messagesAfter(): readonly DialogueMessage[] {
    return [];
  }

  protected handle(message: DialogueMessage): void {
    const found = message.contextId === null ? undefined : this.contexts.find(message.contextId);
    this.contexts.touch(found);
    if (found?.isClosing === true) {
      this.#fail("context_closing", "The context is closing and takes no more messages", message);
      return;
    }
    const isForContext = message.contextId !== null && !(found === undefined && isOnlyEnd(message));
    const context = isForContext ? (found ?? this.#open(message)) : null;
    if (isForContext && context === null) return;
    if (context !== null && found !== undefined && !this.#isUnchanged(context, message)) return;
    if (context !== null && !this.#feed(context, message)) return;
    if (context !== null && message.closeContext) this.#drop(context);
    if (message.closeSocket) this.endSocket();
  }

  /** null: it was refused. */
  #open(message: DialogueMessage): Context<DialogueContext> | null {
    const { modelId } = this.#settings;
    const { voices, settings, locators } = message;
    const most = maxVoices(modelId);
    if (voices === null || new Set(voices).size > most) {
      const expected = most === 1 ? "exactly one voice id" : `1 to ${most} voice ids`;
      this.#fail(
        "invalid_input_message",
        `voices: expected ${expected} in the first message`,
        message,
        "voices",
      );
      return null;
    }
    const own = { voices, settings, locators, buffer: new DialogueBuffer() };
    return this.contexts.open(message.contextId ?? "", own);
  }

  /** What only the first message may have. */
  #isUnchanged({ own }: Context<DialogueContext>, message: DialogueMessage): boolean {
    const isOther = (first: unknown, later: unknown) =>
      later !== undefined && JSON.stringify(first) !== JSON.stringify(later);
    const param =
      message.voices !== null
        ? "voices"
        : isOther(own.settings, message.settings)
          ? "voice_settings"
          : isOther(own.locators, message.locators)
            ? "pronunciation_dictionary_locators"
            : undefined;
    if (param === undefined) return true;
    this.#fail("invalid_input_message", `${param} may only be given in the first message`, message, param);
    return false;
  }

  /** false: it was refused, and the socket is closed. */
  #feed(context: Context<DialogueContext>, message: DialogueMessage): boolean {
    const { own, speech } = context;
    this.#voices.check(own.voices);
    if (message.inputs.some(({ voiceId }) => !own.voices.includes(voiceId))) {
      const text = "inputs: a voice_id is not one of the voices of the first message";
      this.#fail("invalid_input_message", text, message, "inputs");
      return false;
    }
    for (const input of message.inputs) if (input.text !== "") own.buffer.push(input);
    if (!this.checkBounds(context)) return false;
    if (message.flush) {
      this.sayAll(context);
      speech.noteFlush();
    } else this.#say(context, own.buffer.takeDue() ?? []);
    speech.pump();
    return true;
  }

  #say({ own, speech }: Context<DialogueContext>, generations: readonly DialogueRequest["inputs"][]): void {
    for (const inputs of generations) {
      const request: DialogueRequest = {
        kind: "dialogue",
        ...sharedRequest(this.#settings, own.locators),
        inputs,
        ...(own.settings === undefined ? {} : { settings: own.settings }),
      };
      speech.say(request, inputs.map(({ text }) => text).join(""));
    }
  }

  protected sayAll(context: Context<DialogueContext>): void {
    this.#say(context, context.own.buffer.takeAll());
  }

  /** What has not begun is not said: so clients interrupt. */
  #drop(context: Context<DialogueContext>): void {
    context.own.buffer.clear();
    context.speech.dropWaiting();
    this.contexts.close(context);
  }

  #fail(error: string, text: string, { contextId }: DialogueMessage, param?: string): void {
    this.contexts.fail(fault(error, text, param), contextId ?? "");
  }
}

/** A context that is not there need not be closed. */
function isOnlyEnd({ closeContext, closeSocket, inputs, voices }: DialogueMessage): boolean {
  return (closeContext || closeSocket) && inputs.length === 0 && voices === null;
}
