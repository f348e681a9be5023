/** What `GET /voices` answers: every voice that may be named here, whichever upstream speaks it. */

export interface OfferedVoice {
  /** As `voice_id` names it. */
  readonly voice_id: string;
  readonly name: string;
  /** As in the vendor's list: `gender`, `language` and the like, where they are known. */
  readonly labels: Readonly<Record<string, string>>;
  /** The service's name in the file of upstreams; null: the first upstream's, or a voice of one's own. */
  readonly upstream: string | null;
  /** The voices that stand for a voice of one's own, in order of preference. */
  readonly spoken_by?: readonly string[];
}

/** An upstream whose voices, or some of them, are not in the list. */
export interface UnlistedUpstream {
  /** null: the first upstream. */
  readonly upstream: string | null;
  readonly code: string;
  readonly message: string;
}

export interface OfferedVoices {
  readonly voices: readonly OfferedVoice[];
  readonly unlisted: readonly UnlistedUpstream[];
}
