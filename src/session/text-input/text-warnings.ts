/** Warnings to a speaker: its text may not be what it meant. */
import type { Participant } from "../connections/participant.ts";
import type { Utterance } from "../playback/utterance.ts";

/** Its text is complete, as its speaker or a long silence has it. */
export function warnOfEnd(participant: Participant, utterance: Utterance): void {
  leaveHalfOut(participant, utterance);
  warnOfMarkup(participant, utterance);
}

/** Markup without its other half is sent unchanged: the upstream decides what becomes of it. */
export function warnOfMarkup(participant: Participant, utterance: Utterance): void {
  const names = utterance.input.unbalancedTags();
  if (names.length === 0) return;
  const message = `Text of ${utterance.id} has markup without its other half: ${names.join(", ")}`;
  participant.send((base) => ({ type: "warning", ...base, code: "unbalanced_markup", message }));
}

/** Half a character whose other half has not come: it is left out. */
export function leaveHalfOut(participant: Participant, { id, text, input }: Utterance): void {
  if (input.half === "") return;
  input.leaveHalfOut();
  const message = `Text of ${id} has half a surrogate pair at index ${text.length}, which is left out`;
  participant.send((base) => ({ type: "warning", ...base, code: "half_character", message }));
}
