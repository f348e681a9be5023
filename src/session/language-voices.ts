/** Which voice speaks a language, where a text names the language and no voice: setting `voices`. */
import { GatewayError } from "../errors.ts";

const LANGUAGE = /^[a-z]{2,8}(?:-[a-z0-9]{1,8})*$/u;
const MAX_VOICE_CHARS = 128;

export type LanguageVoices = ReadonlyMap<string, string>;

/** Reads `de=VOICE,pt-br=VOICE`. Throws invalid_config. */
export function languageVoicesOf(list: string): LanguageVoices {
  const voices = new Map<string, string>();
  for (const entry of list.split(",")) {
    if (entry.trim() === "") continue;
    const at = entry.indexOf("=");
    const language = normalized(entry.slice(0, Math.max(0, at)));
    const voice = entry.slice(at + 1).trim();
    const reason = !LANGUAGE.test(language)
      ? "expected LANGUAGE=VOICE, as de=VOICE or pt-br=VOICE"
      : voice === "" || voice.length > MAX_VOICE_CHARS
        ? `expected a voice of 1 to ${MAX_VOICE_CHARS} characters`
        : voices.has(language)
          ? "expected each language once"
          : null;
    if (reason !== null) {
      throw new GatewayError(
        "invalid_config",
        `Setting voices has ${JSON.stringify(entry.trim().slice(0, 40))}: ${reason}`,
        { field: "voices" },
      );
    }
    voices.set(language, voice);
  }
  return voices;
}

/** The one of the language itself, else of what it is a kind of: `de-at`, then `de`. */
export function voiceFor(voices: LanguageVoices, languageCode: string | undefined): string | undefined {
  if (voices.size === 0) return undefined;
  let language = normalized(languageCode ?? "");
  while (language !== "") {
    const voice = voices.get(language);
    if (voice !== undefined) return voice;
    language = language.slice(0, Math.max(0, language.lastIndexOf("-")));
  }
  return undefined;
}

function normalized(language: string): string {
  return language.trim().toLowerCase().replaceAll("_", "-");
}
