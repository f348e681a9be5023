/** The voices and models that the gateway offers (`GET /voices`, `GET /v1/models`). */
import type { OfferedVoice, OfferedVoices } from "../protocol/voice-list.ts";

export interface Voice {
  readonly id: string;
  readonly name: string;
  /** A few words on how it sounds, from the labels; may be empty. */
  readonly about: string;
  /** ISO 639 code of the language that it speaks by itself; empty where the labels do not say. */
  readonly language: string;
  /** Another service than the first upstream; null: that, or a voice of the operator's own. */
  readonly service: string | null;
  /** It is the operator's own: several upstreams may speak it. */
  readonly isOwn: boolean;
}

export interface Language {
  readonly id: string;
  readonly name: string;
}

export interface Model {
  readonly id: string;
  readonly name: string;
  readonly languages: readonly Language[];
}

export interface Catalog {
  readonly voices: readonly Voice[];
  readonly models: readonly Model[];
  /** Whose voices could not be listed; null: everybody's could. */
  readonly gap: { readonly what: string; readonly advice: string } | null;
}

export const NO_CATALOG: Catalog = { voices: [], models: [], gap: null };

interface RawModel {
  readonly model_id: string;
  readonly name?: string;
  readonly can_do_text_to_speech?: boolean;
  readonly languages?: readonly { readonly language_id: string; readonly name: string }[] | null;
}

/**
 * Rejects where the voices can't be had; a gateway without models has none to choose, and neither has a token that is good for
 * speech alone.
 */
export async function loadCatalog(token: string | null): Promise<Catalog> {
  const [{ voices, unlisted }, models] = await Promise.all([
    getJson<OfferedVoices>("/voices", token).catch((error: unknown) => {
      if (token !== null && error instanceof RefusedError) return { voices: [], unlisted: [] };
      throw error;
    }),
    getJson<readonly RawModel[]>("/v1/models", token).catch(() => []),
  ]);
  return {
    voices: voices.map(voiceOf),
    models: models.filter((model) => model.can_do_text_to_speech !== false).map(modelOf),
    gap: gapOf(unlisted),
  };
}

function gapOf(unlisted: OfferedVoices["unlisted"]): Catalog["gap"] {
  if (unlisted.length === 0) return null;
  const names = unlisted.map(({ upstream }) => upstream ?? "the speech service");
  const advice =
    "They can't be chosen here. `voicewire doctor` says why; load the page again when that is mended.";
  return { what: `Voices of ${names.join(", ")} can't be listed.`, advice };
}

export function voiceOf({ voice_id, name, labels, upstream, spoken_by }: OfferedVoice): Voice {
  const about = [labels.descriptive, labels.accent, labels.gender].filter(
    (label) => label !== undefined && label !== "",
  );
  return {
    id: voice_id,
    name,
    about: about.join(", ").replaceAll("_", " "),
    language: labels.language ?? "",
    service: upstream,
    isOwn: spoken_by !== undefined,
  };
}

/** What a voice is called where only its id is known: `kokoro:af_heart` as "af_heart (kokoro)". */
export function plainName(voiceId: string): string {
  const [, service, id] = /^([a-z][a-z0-9-]*):(.+)$/.exec(voiceId) ?? [];
  return service === undefined || id === undefined ? voiceId : `${id} (${service})`;
}

function modelOf(raw: RawModel): Model {
  const languages = (raw.languages ?? []).map(({ language_id, name }) => ({ id: language_id, name }));
  return { id: raw.model_id, name: raw.name ?? raw.model_id, languages };
}

/** A language's name in the reader's own; the code itself where the browser knows none. */
export function languageName(code: string): string {
  try {
    return new Intl.DisplayNames(undefined, { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** The token does not allow it. */
class RefusedError extends Error {}

async function getJson<T>(path: string, token: string | null): Promise<T> {
  const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(path, { headers: { accept: "application/json", ...authorization } });
  if (response.status === 401 || response.status === 403) {
    throw new RefusedError(`GET ${path}: answered ${response.status}`);
  }
  if (!response.ok) throw new Error(`GET ${path}: answered ${response.status}`);
  return (await response.json()) as T;
}
