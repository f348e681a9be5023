/** What the name of a model says of it, where rules differ: the one place that the gateway and the embedded service ask. */

/** eleven_v3, eleven_v3_conversational, eleven_v4_turbo, ...: the generations that act on audio tags. */
const EXPRESSIVE = /_v[34](?:_|\b)/;

/**
 * Whether a model takes dialogues and acts on audio tags (`[laughs]`). Such a model refuses the text around as context.
 * False for "", the upstream's own: eleven_multilingual_v2.
 */
export function isExpressiveModel(modelId: string): boolean {
  return EXPRESSIVE.test(modelId);
}
