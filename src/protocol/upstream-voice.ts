/** Voices of other upstreams than the first one: `NAME:ID`, where NAME is what `upstreams` calls it. */

/** What upstreams may be called. No id of the vendor's has a colon. */
const PREFIXED = /^([a-z][a-z0-9-]{0,31}):/;

export function isUpstreamName(name: string): boolean {
  return PREFIXED.test(`${name}:`);
}

/** The name of the upstream, and its own id; null: the first upstream's. */
export function splitUpstreamVoice(voiceId: string): { readonly name: string; readonly id: string } | null {
  const name = PREFIXED.exec(voiceId)?.[1];
  return name === undefined ? null : { name, id: voiceId.slice(name.length + 1) };
}

/** The model of a text that names none: the one that is set is the first upstream's, and no other knows it. */
export function defaultModelFor(voiceId: string | undefined, model: string): string {
  return voiceId !== undefined && splitUpstreamVoice(voiceId) !== null ? "" : model;
}
