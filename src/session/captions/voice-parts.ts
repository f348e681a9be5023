/** Who says which part of an utterance's text. */
import type { CueVoice } from "../../timing/cues/cue-builder.ts";
import type { RequestTemplate } from "../synthesis/speech-request.ts";

export interface VoicePart extends CueVoice {
  /** End in the client's text. */
  readonly end: number;
}

/** What is asked for, and of which voices. */
export interface Voiced {
  readonly template: RequestTemplate;
  readonly voiceIds: readonly string[];
}

/** In the order of the text; the last one goes on as long as the text does. */
export function voiceParts({ template, voiceIds }: Voiced): VoicePart[] {
  if (template.kind !== "dialogue") {
    return [{ end: Number.POSITIVE_INFINITY, voiceId: voiceIds[0] ?? "" }];
  }
  const { inputs } = template.command;
  const isNamed = voiceIds.length > 1 || inputs.some((input) => input.speaker !== undefined);
  const parts: VoicePart[] = [];
  let end = 0;
  for (const { text, voice_id, speaker } of inputs) {
    end += text.length;
    const name = speaker ?? `Speaker ${voiceIds.indexOf(voice_id) + 1}`;
    const part = { end, voiceId: voice_id, ...(isNamed ? { speaker: name } : {}) };
    const last = parts.at(-1);
    if (last !== undefined && last.voiceId === voice_id && last.speaker === part.speaker) parts.pop();
    parts.push(part);
  }
  return parts;
}
