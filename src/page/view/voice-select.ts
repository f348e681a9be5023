/** Fills a select with voices, grouped by the language that they speak. */
import { languageName, type Voice } from "../catalog.ts";

/** Keeps the chosen voice where it still exists; otherwise `fallback` (default: the first). */
export function fillVoices(select: HTMLSelectElement, voices: readonly Voice[], fallback?: string): void {
  const chosen = select.value;
  const groups = new Map<string, HTMLOptGroupElement>();
  for (const voice of voices) {
    const group = groups.get(voice.language) ?? document.createElement("optgroup");
    group.label = voice.language === "" ? "Voices" : languageName(voice.language);
    group.append(new Option(voice.about === "" ? voice.name : `${voice.name} – ${voice.about}`, voice.id));
    groups.set(voice.language, group);
  }
  select.replaceChildren(...groups.values());
  const isThere = (id: string | undefined) => voices.some((voice) => voice.id === id);
  if (isThere(chosen)) select.value = chosen;
  else if (fallback !== undefined && isThere(fallback)) select.value = fallback;
}
