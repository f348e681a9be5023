/**
 * What a model is asked to say of a text whose client gets audio alone: without the audio tags (`[laughs]`) that it would
 * read aloud. Where clients hold the vendor's timing against their own text, that text is passed on as it is.
 */
import { isExpressiveModel } from "../protocol/elevenlabs/models.ts";
import { SpokenText } from "../text/spoken-text.ts";

/** Possibly nothing. `modelId`: "" = the upstream's own. */
export function sayable(text: string, modelId: string): string {
  const spoken = new SpokenText({ dropsAudioTags: !isExpressiveModel(modelId) });
  spoken.append(text);
  spoken.end();
  return spoken.spoken;
}
