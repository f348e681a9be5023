/** What `doctor` says of neural voices: whether their engine is installed, and whether it can load each model. */
import type { Config } from "../../config.ts";
import { toGatewayError } from "../../errors.ts";
import { silentLog } from "../../kit/log.ts";
import { messageWithCode } from "../exit.ts";
import { type CheckResult, resultWith, type Worry } from "./check-result.ts";

const WHERE_MODELS_ARE =
  "models are archives of https://github.com/k2-fsa/sherpa-onnx/releases/tag/tts-models, e.g. vits-piper-en_US-amy-low.tar.bz2; " +
  "unpack each in its own folder there: voicewire downloads none";

/** As much of a model's voices as a line takes. */
const MAX_SHOWN_VOICES = 3;

/** Every model by itself, so that one that is broken does not hide the others. */
export async function checkVoiceModels({ voiceModels: folder }: Config): Promise<CheckResult> {
  const { findSherpa, SHERPA_ADVICE, SHERPA_PACKAGE } = await import(
    "../../service/voice/neural/sherpa-package.ts"
  );
  const packageFile = findSherpa(folder);
  if (folder === "") {
    const detail = `none: voice-models names no folder, and ${SHERPA_PACKAGE} is ${packageFile === null ? "not " : ""}installed`;
    return { status: "ok", detail: `${detail} (docs/service.md says how to get neural voices)` };
  }
  const { modelFoldersOf, readVoiceModel, withoutModels } = await import(
    "../../service/voice/neural/voice-models.ts"
  );
  const { requireLexicon } = await import("../../service/voice/neural/lexicon-check.ts");
  const { NeuralEngine } = await import("../../service/voice/neural/neural-engine.ts");
  let names: readonly string[];
  try {
    names = modelFoldersOf(folder);
  } catch (thrown) {
    return { status: "fail", detail: messageWithCode(toGatewayError(thrown)), fix: WHERE_MODELS_ARE };
  }
  if (names.length === 0) {
    return { status: "fail", detail: messageWithCode(withoutModels(folder)), fix: WHERE_MODELS_ARE };
  }
  const works: string[] = [];
  const worries: Worry[] = [];
  for (const name of names) {
    try {
      const model = readVoiceModel(folder, name);
      requireLexicon(model);
      if (packageFile !== null) {
        const engine = new NeuralEngine({ models: [model], packageFile, log: silentLog });
        await engine.load(model).finally(() => engine.close());
      }
      const shown = model.voices.slice(0, MAX_SHOWN_VOICES).map(({ id }) => id);
      const more = model.voices.length - shown.length;
      works.push(`${model.family} ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`);
    } catch (thrown) {
      worries.push({
        what: messageWithCode(toGatewayError(thrown)),
        fix: `mend the folder ${name}, or take it out`,
      });
    }
  }
  if (packageFile === null) {
    worries.push({ what: `${SHERPA_PACKAGE}, which speaks them, is not installed`, fix: SHERPA_ADVICE });
  }
  return resultWith(works.length === 0 ? "none works" : works.join("; "), worries, "fail");
}
