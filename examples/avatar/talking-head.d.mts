/** The arrays of a `viseme` or a `words` event as TalkingHead's `streamAudio` takes them; of any other nothing. */
export function streamAudioArrays(
  event: object | undefined,
  startMs: number,
): Partial<Readonly<Record<string, readonly (string | number)[]>>>;
