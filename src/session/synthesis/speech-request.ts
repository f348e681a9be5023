/** What is asked of the upstream for a segment: the client's options, and the text around it. */
import type { DialogueCommand, QueueOptions, SpeakCommand, TextCommand } from "../../protocol/commands.ts";
import type { Segment } from "../../text/segmenter.ts";
import { type Stitch, type StitchBy, stitch } from "../../upstream/stitching.ts";
import type { DialogueRequest, SpeechRequest, SpokenIn, Subject } from "../../upstream/types.ts";

export type RequestTemplate =
  | { readonly kind: "text"; readonly options: Omit<SpeakCommand, "type" | "text"> }
  | { readonly kind: "tokens"; readonly options: Omit<TextCommand, "type" | "text"> }
  | { readonly kind: "dialogue"; readonly command: DialogueCommand }
  /** Nothing of it is asked of the upstream. */
  | { readonly kind: "sound"; readonly options: QueueOptions & Omit<SpeakCommand, "type" | "text"> };

interface SourceChoice {
  readonly outputFormat: string;
  readonly wantsTiming: boolean;
  readonly voiceId: string;
  /** Where the client names none; empty = the upstream's own. */
  readonly modelId: string;
  /** For whom. */
  readonly subject: Subject | undefined;
  /** What it is a part of. */
  readonly utterance: SpokenIn;
  /** See SpeechRequest. */
  readonly aheadMs: number | undefined;
}

interface Neighbours {
  /** Spoken text before and behind the segment. */
  readonly before: string;
  readonly behind: string;
  /** `request-id`s of the segments before it. */
  readonly requestIds: readonly string[];
  /** What of this goes to the upstream. */
  readonly by: StitchBy;
}

export function speechRequest(
  template: RequestTemplate,
  segment: Segment,
  { choice, neighbours }: { readonly choice: SourceChoice; readonly neighbours: Neighbours },
): SpeechRequest | DialogueRequest {
  const { outputFormat, wantsTiming, subject, utterance, aheadMs } = choice;
  const ahead = aheadMs === undefined ? {} : { aheadMs };
  const shared = { outputFormat, wantsTiming, subject, utterance, ...ahead };
  if (template.kind === "dialogue") {
    const { command } = template;
    return {
      kind: "dialogue",
      ...shared,
      ...sharedOptions(command),
      inputs: inputsFrom(command, segment.start),
      ...(command.settings === undefined ? {} : { settings: command.settings }),
    };
  }
  const { options } = template;
  const modelId = options.model_id ?? choice.modelId;
  return {
    kind: "speech",
    ...shared,
    ...sharedOptions(options),
    ...(modelId === "" ? {} : { modelId }),
    voiceId: choice.voiceId,
    text: segment.text,
    ...(options.voice_settings === undefined ? {} : { voiceSettings: options.voice_settings }),
    ...stitchOf(modelId, options.enable_logging, neighbours),
  };
}

/** The inputs of a dialogue that go on behind `start`, the first of them from there. */
function inputsFrom({ inputs }: DialogueCommand, start: number): DialogueRequest["inputs"] {
  if (start === 0) return inputs.map(({ text, voice_id }) => ({ text, voiceId: voice_id }));
  let end = 0;
  return inputs.flatMap(({ text, voice_id }) => {
    end += text.length;
    return end <= start
      ? []
      : [{ text: text.slice(Math.max(0, text.length - end + start)), voiceId: voice_id }];
  });
}

function stitchOf(modelId: string, isLogged: boolean | undefined, { by, ...around }: Neighbours): Stitch {
  return stitch({ modelId, isLogged: isLogged ?? true, ...around }, by);
}

function sharedOptions(options: Omit<SpeakCommand, "type" | "text"> | DialogueCommand) {
  return {
    ...(options.model_id === undefined ? {} : { modelId: options.model_id }),
    ...(options.language_code === undefined ? {} : { languageCode: options.language_code }),
    ...(options.seed === undefined ? {} : { seed: options.seed }),
    ...(options.priority === undefined ? {} : { priority: options.priority }),
    ...(options.apply_text_normalization === undefined
      ? {}
      : { applyTextNormalization: options.apply_text_normalization }),
    ...(options.enable_logging === undefined ? {} : { enableLogging: options.enable_logging }),
    ...(options.vendor_options === undefined ? {} : { vendorOptions: options.vendor_options }),
  };
}
