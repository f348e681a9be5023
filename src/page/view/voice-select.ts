/** Fills a select with voices, grouped by whose they are, and the first upstream's by the language that they speak. */
import { languageName, type Voice } from "../catalog.ts";

/** Keeps the chosen voice where it still exists; otherwise `fallback` (default: the first). */
export function fillVoices(select: HTMLSelectElement, voices: readonly Voice[], fallback?: string): void {
  const chosen = select.value;
  const groups = new Map<string, HTMLOptGroupElement>();
  for (const voice of voices) {
    const label = groupOf(voice);
    const group = groups.get(label) ?? document.createElement("optgroup");
    group.label = label;
    group.append(new Option(voice.about === "" ? voice.name : `${voice.name} – ${voice.about}`, voice.id));
    groups.set(label, group);
  }
  select.replaceChildren(...groups.values());
  const isThere = (id: string | undefined) => voices.some((voice) => voice.id === id);
  if (isThere(chosen)) select.value = chosen;
  else if (fallback !== undefined && isThere(fallback)) select.value = fallback;
}

function groupOf({ isOwn, service, language }: Voice): string {
  if (isOwn) return "Own voices";
  const spoken = language === "" ? "" : languageName(language);
  if (service === null) return spoken || "Voices";
  return spoken === "" ? service : `${service}: ${spoken}`;
}
