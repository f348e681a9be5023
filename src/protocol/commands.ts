/** What a client can say: every message to the gateway. `native.ts` reads them; docs/protocol.md explains them. */
import type { Cleaning, ListenerSettings, Replace } from "./vocabulary.ts";

export interface VoiceOptions {
  readonly voice_id?: string;
  readonly model_id?: string;
  readonly language_code?: string;
  readonly voice_settings?: {
    readonly stability?: number;
    readonly similarity_boost?: number;
    readonly style?: number;
    readonly use_speaker_boost?: boolean;
    readonly speed?: number;
  };
  readonly seed?: number;
  readonly apply_text_normalization?: "auto" | "on" | "off";
  readonly enable_logging?: boolean;
}

/** Says `to` where the text has `from`: pronunciations, brand names. */
export interface Replacement {
  readonly from: string;
  readonly to: string;
  /** Default false. */
  readonly ignore_case?: boolean;
  /** `from` has to stand between characters that are no letters or digits; default true. */
  readonly whole_word?: boolean;
}

/** How a text is made ready for speaking. Without them the connection's own (`configure`), else the gateway's. */
export interface TextOptions {
  readonly clean?: readonly Cleaning[];
  readonly replacements?: readonly Replacement[];
}

/** Where in the queue an utterance goes. */
export interface QueueOptions {
  /** -100 to 100, default 0: before those of a lower priority that have not begun; what speaks is not interrupted. */
  readonly priority?: number;
  /** `queued`: cancels what has not begun; `all`: interrupts what speaks as well. */
  readonly replace?: Replace;
}

export interface SpeakCommand extends VoiceOptions, TextOptions, QueueOptions {
  readonly type: "speak";
  readonly text: string;
  readonly utterance_id?: string;
}
/** Tokens as they come; the first one of an utterance may carry the voice options. */
export interface TextCommand extends VoiceOptions, TextOptions, QueueOptions {
  readonly type: "text";
  readonly text: string;
  readonly utterance_id?: string;
}
export interface FlushCommand {
  readonly type: "flush";
  readonly utterance_id?: string;
}
export interface EndCommand {
  readonly type: "end";
  readonly utterance_id?: string;
}
export interface DialogueCommand extends QueueOptions {
  readonly type: "dialogue";
  /** `speaker`: the name that captions have for who says it. */
  readonly inputs: readonly { readonly text: string; readonly voice_id: string; readonly speaker?: string }[];
  readonly utterance_id?: string;
  readonly model_id?: string;
  readonly language_code?: string;
  readonly settings?: { readonly stability?: number };
  readonly seed?: number;
  readonly apply_text_normalization?: "auto" | "on" | "off";
  readonly enable_logging?: boolean;
}
export interface InterruptCommand {
  readonly type: "interrupt";
  /** Only this utterance; without it the speaking one and all that are queued. */
  readonly utterance_id?: string;
  /** Let this much more of the audio play before the cut, ms. */
  readonly keep_ms?: number;
}
/** Takes what has not begun to speak out of the queue: one utterance, or all of them. */
export interface CancelCommand {
  readonly type: "cancel";
  readonly utterance_id?: string;
}
/** Goes on with an interrupted utterance (the latest, where none is named) from the word it was cut in. */
export interface ResumeCommand {
  readonly type: "resume";
  readonly utterance_id?: string;
}
export interface MarkCommand {
  readonly type: "mark";
  readonly name: string;
}
/** Playout acknowledgement: this listener has played the timeline up to `at_ms`, or up to a mark. One of the two. */
export interface PlayedCommand {
  readonly type: "played";
  readonly seq?: number;
  readonly at_ms?: number;
  readonly mark?: string;
}
/** `clean` and `replacements`: for what this connection says from now on. */
export interface ConfigureCommand extends Partial<Omit<ListenerSettings, "role" | "caller">>, TextOptions {
  readonly type: "configure";
}
export interface PingCommand {
  readonly type: "ping";
  readonly id?: string | number;
}
export interface CloseCommand {
  readonly type: "close";
}
/** Ends a phone call of the session: this one, or all. */
export interface HangUpCommand {
  readonly type: "hangup";
  readonly call_id?: string;
}

export type Command =
  | SpeakCommand
  | TextCommand
  | FlushCommand
  | EndCommand
  | DialogueCommand
  | InterruptCommand
  | CancelCommand
  | ResumeCommand
  | MarkCommand
  | PlayedCommand
  | ConfigureCommand
  | PingCommand
  | CloseCommand
  | HangUpCommand;
