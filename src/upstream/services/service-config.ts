/** How an upstream of another service is set. */

/** An entry of the file, checked, with its key. */
export interface ServiceConfig {
  /** What its voices begin with. */
  readonly name: string;
  /** A name of SERVICES. */
  readonly service: string;
  readonly baseUrl: string;
  readonly key: string;
  /** "": the service's own. */
  readonly model: string;
  /** Rate of its PCM without a header, Hz; null: not known. */
  readonly sampleRate: number | null;
  /** Empty: all of them. */
  readonly voices: readonly string[];
  /** null: what the service is known to take. */
  readonly maxOpen: number | null;
}

/** Whether a voice may be asked for. `voices`: ids, or beginnings that end in `*`. An empty list allows all. */
export function isListedVoice(voiceId: string, voices: readonly string[]): boolean {
  if (voices.length === 0) return true;
  return voices.some((entry) =>
    entry.endsWith("*") ? voiceId.startsWith(entry.slice(0, -1)) : entry === voiceId,
  );
}
