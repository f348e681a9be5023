/** What the address of a socket says of every request that is made for it. */
import type { DictionaryLocator } from "../protocol/elevenlabs/message-json.ts";
import type { SocketSettings } from "../protocol/elevenlabs/socket-settings.ts";
import type { SynthesisRequest } from "../upstream/types.ts";

type Shared = Omit<Extract<SynthesisRequest, { kind: "dialogue" }>, "kind" | "inputs" | "settings">;

export function sharedRequest(
  settings: SocketSettings,
  locators: readonly DictionaryLocator[] | undefined,
): Shared {
  const { modelId, outputFormat, languageCode, seed, enableLogging } = settings;
  const { applyTextNormalization, applyLanguageTextNormalization } = settings;
  return {
    outputFormat,
    wantsTiming: true,
    modelId,
    ...(languageCode === undefined ? {} : { languageCode }),
    ...(seed === undefined ? {} : { seed }),
    ...(enableLogging === undefined ? {} : { enableLogging }),
    ...(applyTextNormalization === undefined ? {} : { applyTextNormalization }),
    ...(applyLanguageTextNormalization === undefined ? {} : { applyLanguageTextNormalization }),
    ...(locators === undefined ? {} : { locators }),
  };
}
