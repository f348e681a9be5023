// What TalkingHead's `streamAudio` takes, made of the gateway's events: array for array, nothing is computed but the start.
//
//   head.streamStart({ sampleRate: 24000, lipsyncType: "visemes" });
//   on a binary message:  head.streamAudio({ audio: message.data });
//   on "viseme", "words": head.streamAudio(streamAudioArrays(event, startMs));
//   on "interrupted":     head.streamInterrupt();
//   on "utterance.done":  head.streamNotifyEnd();
//
// Ask for `format=pcm_24000&events=words,visemes`. TalkingHead counts from the first audio of its stream: `startMs` is
// where that stood on the timeline (`audio.start_ms` of `hello`, or `start_ms` of `utterance.started`).

/** The arrays of a `viseme` or a `words` event; of any other nothing. */
export function streamAudioArrays(event, startMs) {
  if (event?.type === "viseme") {
    return {
      visemes: event.visemes,
      vtimes: event.vtimes_ms.map((ms) => ms - startMs),
      vdurations: event.vdurations_ms,
    };
  }
  if (event?.type === "words") {
    return {
      words: event.words.map((word) => word.text),
      wtimes: event.words.map((word) => word.start_ms - startMs),
      wdurations: event.words.map((word) => word.end_ms - word.start_ms),
    };
  }
  return {};
}
