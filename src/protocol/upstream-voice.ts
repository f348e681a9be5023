/**
 * Voices of other upstreams than the first one: `NAME:ID`, where NAME is what `upstreams` calls it. And voices of one's own,
 * which stand for several of these.
 */

/** What upstreams may be called. No id of the vendor's has a colon. */
const PREFIXED = /^([a-z][a-z0-9-]{0,31}):/;

export function isUpstreamName(name: string): boolean {
  return PREFIXED.test(`${name}:`);
}

/** What a voice of one's own may be called: an id of the vendor's, too, so that it can stand for that. */
export function isOwnVoiceName(name: string): boolean {
  return /^[A-Za-z0-9][\w.-]{0,63}$/.test(name);
}

/** The name of the upstream, and its own id; null: the first upstream's. */
export function splitUpstreamVoice(voiceId: string): { readonly name: string; readonly id: string } | null {
  const name = PREFIXED.exec(voiceId)?.[1];
  return name === undefined ? null : { name, id: voiceId.slice(name.length + 1) };
}

/**
 * The model of a text that names none: the one that is set is the first upstream's, and no other knows it. `ownVoices`: the
 * names of voices that more than that upstream may speak.
 */
export function defaultModelFor(
  voiceId: string | undefined,
  model: string,
  ownVoices: ReadonlySet<string> = NO_VOICES,
): string {
  if (voiceId === undefined) return model;
  return splitUpstreamVoice(voiceId) !== null || ownVoices.has(voiceId) ? "" : model;
}

const NO_VOICES: ReadonlySet<string> = new Set();
