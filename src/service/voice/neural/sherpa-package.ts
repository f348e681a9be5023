/** Where the optional package of the neural engine is. Only its own process loads it. */
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { GatewayError } from "../../../errors.ts";

export const SHERPA_PACKAGE = "sherpa-onnx-node";
/** The range that was tried. */
const SHERPA_RANGE = "^1.13.8";
export const SHERPA_ADVICE = `run "npm install ${SHERPA_PACKAGE}@${SHERPA_RANGE}" beside voicewire or in the folder of the models`;

/** Its main file: beside voicewire, or else in the folder of the models; null where it is in neither. */
export function findSherpa(folder: string): string | null {
  for (const from of [import.meta.url, pathToFileURL(resolve(folder, "models"))]) {
    try {
      return createRequire(from).resolve(SHERPA_PACKAGE);
    } catch {
      // Not being found is an answer, and the next place is looked at.
    }
  }
  return null;
}

/** Throws GatewayError `voice_engine_missing` with the command that mends it. */
export function requireSherpa(folder: string): string {
  const found = findSherpa(folder);
  if (found !== null) return found;
  const message = `Setting voice-models: the optional package ${SHERPA_PACKAGE} is not installed, expected it for the models: ${SHERPA_ADVICE}`;
  throw new GatewayError("voice_engine_missing", message, { field: "voice-models" });
}
