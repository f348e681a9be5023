/**
 * One thing to say: its text as the client sent it, the segments cut from it, and what was said of it so far.
 *
 *   queued --first audio--> speaking --all audio pushed--> pushed --playhead passes its end--> gone (done)
 *      \______________________\______________________________\-- interrupt, failure --> gone
 */
import type { DialogueCommand, SpeakCommand, TextCommand, Timing } from "../protocol/vocabulary.ts";
import type { Segment } from "../text/segmenter.ts";
import { Segmenter } from "../text/segmenter.ts";
import type { DialogueRequest, SpeechRequest } from "../upstream/types.ts";
import type { HeardCharacter } from "./receipts.ts";
import type { RunTimes } from "./segment-run.ts";

type Template =
  | { readonly kind: "speech"; readonly options: Omit<SpeakCommand, "type" | "text"> }
  | { readonly kind: "dialogue"; readonly command: DialogueCommand };

export interface SourceChoice {
  readonly outputFormat: string;
  readonly wantsTiming: boolean;
  readonly voiceId: string;
  readonly modelId: string;
}

export class Utterance {
  readonly id: string;
  readonly acceptedMs: number;
  readonly #template: Template;
  readonly #segmenter: Segmenter | null;
  #segments: Segment[] = [];
  /** Everything the client sent for it. */
  text: string;
  isTextEnded: boolean;
  /** Marks to echo when it has been played. */
  marks: string[] = [];
  /** Timeline bounds; null until its first, its last audio was pushed. */
  startTicks: number | null = null;
  endTicks: number | null = null;
  padTicks = 0;
  heard: HeardCharacter[] = [];
  timing: Timing | "none" = "none";
  charactersSpoken = 0;
  charactersBilled: number | null = null;
  /** The first segment's times, for the waterfall. */
  times: RunTimes | null = null;
  firstFrameMs: number | null = null;
  leadingSilenceMs: number | null = null;
  sourceFormat = "";
  voiceIds: readonly string[];

  private constructor(id: string, acceptedMs: number, template: Template, text: string | null) {
    this.id = id;
    this.acceptedMs = acceptedMs;
    this.#template = template;
    this.text = text ?? "";
    this.isTextEnded = text !== null;
    this.#segmenter = text === null ? new Segmenter({}) : null;
    if (text !== null) this.#segments = [{ text, start: 0, end: text.length }];
    this.voiceIds =
      template.kind === "dialogue"
        ? [...new Set(template.command.inputs.map((input) => input.voice_id))]
        : [template.options.voice_id ?? ""];
  }

  /** A whole text: one segment, so that the upstream hears all of it at once. */
  static ofText(id: string, acceptedMs: number, command: SpeakCommand): Utterance {
    return new Utterance(id, acceptedMs, { kind: "speech", options: command }, command.text);
  }

  /** Text that comes in tokens. */
  static ofTokens(id: string, acceptedMs: number, command: TextCommand): Utterance {
    return new Utterance(id, acceptedMs, { kind: "speech", options: command }, null);
  }

  static ofDialogue(id: string, acceptedMs: number, command: DialogueCommand): Utterance {
    const text = command.inputs.map((input) => input.text).join("");
    return new Utterance(id, acceptedMs, { kind: "dialogue", command }, text);
  }

  append(text: string): void {
    this.text += text;
    this.#segments.push(...(this.#segmenter?.push(text) ?? []));
  }

  /** Speaks what is there without waiting for the end of a sentence. */
  flush(): void {
    this.#segments.push(...(this.#segmenter?.flush() ?? []));
  }

  endText(): void {
    if (this.isTextEnded) return;
    this.isTextEnded = true;
    this.#segments.push(...(this.#segmenter?.end() ?? []));
  }

  get hasSegment(): boolean {
    return this.#segments.length > 0;
  }
  /** All its segments have been taken and none will come. */
  get isExhausted(): boolean {
    return this.isTextEnded && this.#segments.length === 0;
  }

  takeSegment(): Segment | undefined {
    return this.#segments.shift();
  }

  /** Offsets in `text` where a word must not go on: the joints of a dialogue's inputs. */
  get joints(): number[] {
    if (this.#template.kind === "speech") return [];
    let offset = 0;
    return this.#template.command.inputs.map((input) => {
      offset += input.text.length;
      return offset;
    });
  }

  /** Whether the client named the voice itself. */
  get namesVoice(): boolean {
    return this.#template.kind === "dialogue" || this.#template.options.voice_id !== undefined;
  }

  get modelId(): string | undefined {
    return this.#template.kind === "dialogue"
      ? this.#template.command.model_id
      : this.#template.options.model_id;
  }

  request(segment: Segment, choice: SourceChoice): SpeechRequest | DialogueRequest {
    const shared = { outputFormat: choice.outputFormat, wantsTiming: choice.wantsTiming };
    if (this.#template.kind === "dialogue") {
      const { command } = this.#template;
      return {
        kind: "dialogue",
        ...shared,
        ...sharedOptions(command),
        inputs: command.inputs.map((input) => ({ text: input.text, voiceId: input.voice_id })),
        ...(command.settings === undefined ? {} : { settings: command.settings }),
      };
    }
    const { options } = this.#template;
    return {
      kind: "speech",
      ...shared,
      ...sharedOptions(options),
      ...(options.model_id === undefined && choice.modelId !== "" ? { modelId: choice.modelId } : {}),
      voiceId: choice.voiceId,
      text: segment.text,
      ...(options.voice_settings === undefined ? {} : { voiceSettings: options.voice_settings }),
    };
  }

  /** The utterance from its beginning, as if nothing had been said of it. */
  rewound(): Utterance {
    const copy = new Utterance(
      this.id,
      this.acceptedMs,
      this.#template,
      this.#segmenter === null ? this.text : null,
    );
    copy.marks = this.marks;
    if (this.#segmenter !== null) {
      copy.append(this.text);
      if (this.isTextEnded) copy.endText();
    }
    return copy;
  }
}

function sharedOptions(options: Omit<SpeakCommand, "type" | "text"> | DialogueCommand) {
  return {
    ...(options.model_id === undefined ? {} : { modelId: options.model_id }),
    ...(options.language_code === undefined ? {} : { languageCode: options.language_code }),
    ...(options.seed === undefined ? {} : { seed: options.seed }),
    ...(options.apply_text_normalization === undefined
      ? {}
      : { applyTextNormalization: options.apply_text_normalization }),
    ...(options.enable_logging === undefined ? {} : { enableLogging: options.enable_logging }),
  };
}
