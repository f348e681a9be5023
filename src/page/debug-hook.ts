/** `window.voicewire`: what the page is doing at this moment, for tests and for the curious at the console. */
import type { App } from "./app.ts";

export type PageState = ReturnType<typeof stateOf>;

declare global {
  interface Window {
    readonly voicewire?: PageState;
  }
}

export function installDebugHook(app: App, session: string): void {
  Object.defineProperty(window, "voicewire", { get: () => stateOf(app, session) });
}

function stateOf(app: App, session: string) {
  const { engine, transcript, link, lit } = app;
  return {
    session,
    /** How the connection stands. */
    state: link.state.kind,
    isSpeaking: app.isSpeaking,
    /** Whether sound can be heard (a gesture has been made). */
    isUnlocked: engine.isUnlocked,
    decoder: engine.decoderKind,
    /** Timeline position that is played now, by the audio clock, ms. */
    playedMs: engine.positionMs,
    /** Audio scheduled and not yet played, ms. */
    aheadMs: engine.aheadMs,
    /** The word played now; null between utterances. */
    litWord: lit?.isSounding === true ? { ...lit.word, utteranceId: lit.utterance.id } : null,
    /** Packets decoded, and the root mean square of all their samples (0 = silence). */
    decodedBlocks: engine.decodedBlocks,
    decodedRms: engine.wave.rms,
    /** Root mean square of what goes to the loudspeaker now. */
    level: engine.level,
    /** Times that the audio ran dry within an utterance. */
    underruns: engine.underruns,
    /** Lines of the caption that is shown now. */
    captionLines: app.captionLines,
    utterances: transcript.utterances.map(({ id, state, text, words, receipt }) => ({
      id,
      state,
      text,
      words,
      receipt,
    })),
  };
}
