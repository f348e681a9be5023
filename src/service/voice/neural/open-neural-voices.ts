/** The voices of a folder of models, and what speaks them. */
import type { Logger } from "../../../kit/log.ts";
import { NeuralEngine } from "./neural-engine.ts";
import { requireSherpa } from "./sherpa-package.ts";
import type { SpeechEngine } from "./speech-engine.ts";
import { type NeuralVoice, readVoiceModels, type VoiceModel } from "./voice-models.ts";

export interface NeuralVoices {
  readonly engine: SpeechEngine | undefined;
  /** By id. */
  readonly voices: ReadonlyMap<string, NeuralVoice & Pick<VoiceModel, "family" | "isRepeatable">>;
}

/** As many as the engine keeps. */
const MAX_WARM = 4;

/**
 * `folder`: undefined where there are no models. Throws as readVoiceModels and requireSherpa do, and where it warms up, also
 * GatewayError `voice_model_broken` for a model that the engine can't load.
 */
export async function openNeuralVoices(
  folder: string | undefined,
  { log, warmsUp }: { readonly log: Logger; readonly warmsUp: boolean },
): Promise<NeuralVoices> {
  if (folder === undefined) return { engine: undefined, voices: new Map() };
  const models = readVoiceModels(folder);
  const engine = new NeuralEngine({ models, packageFile: requireSherpa(folder), log });
  try {
    if (warmsUp) for (const model of models.slice(0, MAX_WARM)) await engine.load(model);
  } catch (thrown) {
    await engine.close();
    throw thrown;
  }
  const voices = models.flatMap(({ voices: ofModel, family, isRepeatable }) =>
    ofModel.map((voice) => ({ ...voice, family, isRepeatable })),
  );
  log.info({ models: models.length, voices: voices.length }, "Neural voices found");
  return { engine, voices: new Map(voices.map((voice) => [voice.id, voice])) };
}
