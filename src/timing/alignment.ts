/** The upstream's character timing as it stands on the wire: three arrays of equal length. */
export interface Alignment {
  readonly characters: readonly string[];
  /** Seconds from the start of the response. */
  readonly character_start_times_seconds: readonly number[];
  readonly character_end_times_seconds: readonly number[];
}

/** A span of a dialogue spoken by one voice; indices into the response's characters. */
export interface VoiceSegment {
  readonly voice_id: string;
  readonly start_time_seconds: number;
  readonly end_time_seconds: number;
  readonly character_start_index: number;
  /** Exclusive. */
  readonly character_end_index: number;
  readonly dialogue_input_index: number;
}

/** An alignment without characters counts as none. */
export function hasCharacters(alignment: Alignment | null): alignment is Alignment {
  return alignment !== null && alignment.characters.length > 0;
}
