/** How a voice of one's own is set. */

/** An entry of `voices` in the file of upstreams, checked. */
export interface VoiceConfig {
  /** What clients call it. */
  readonly name: string;
  /** Voices of upstreams as clients would name them (`NAME:ID`, or an id of the first upstream), the preferred one first. */
  readonly upstreamVoices: readonly string[];
}
