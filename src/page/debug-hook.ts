/**
 * `window.voicewire`: what the page is doing, for tests and for the curious at the console. Everything is read live;
 * nothing can be changed through it.
 */
import type { Word } from "../protocol/events.ts";
import type { App } from "./app.ts";
import type { LinkState } from "./gateway-link.ts";
import type { DecoderKind } from "./sound/decoder.ts";
import type { Receipt, UtteranceState } from "./speech/utterance.ts";

export interface DebugHook {
  readonly session: string;
  /** How the connection stands. */
  readonly state: LinkState["kind"];
  readonly isSpeaking: boolean;
  /** Whether sound can be heard (a gesture has been made). */
  readonly isUnlocked: boolean;
  readonly decoder: DecoderKind | null;
  /** Timeline position that is heard now, by the audio clock, ms. */
  readonly playedMs: number;
  /** Audio scheduled and not yet heard, ms. */
  readonly aheadMs: number;
  /** The word heard now; null between utterances. */
  readonly litWord: (Word & { readonly utteranceId: string }) | null;
  /** Packets decoded, and the root mean square of all their samples (0 = silence). */
  readonly decodedBlocks: number;
  readonly decodedRms: number;
  /** Root mean square of what goes to the loudspeaker now. */
  readonly level: number;
  /** Times that the audio ran dry within an utterance. */
  readonly underruns: number;
  /** Lines of the caption that is shown now. */
  readonly captionLines: readonly string[];
  readonly utterances: readonly {
    readonly id: string;
    readonly state: UtteranceState;
    readonly text: string;
    readonly words: readonly Word[];
    readonly receipt: Receipt | null;
  }[];
}

declare global {
  interface Window {
    voicewire?: DebugHook;
  }
}

export function installDebugHook(app: App, session: string): void {
  const { engine, transcript, link } = app;
  window.voicewire = {
    session,
    get state() {
      return link.state.kind;
    },
    get isSpeaking() {
      return app.isSpeaking;
    },
    get isUnlocked() {
      return engine.isUnlocked;
    },
    get decoder() {
      return engine.decoderKind;
    },
    get playedMs() {
      return engine.positionMs;
    },
    get aheadMs() {
      return engine.aheadMs;
    },
    get litWord() {
      const { lit } = app;
      return lit?.isSounding === true ? { ...lit.word, utteranceId: lit.utterance.id } : null;
    },
    get decodedBlocks() {
      return engine.decodedBlocks;
    },
    get decodedRms() {
      return engine.wave.rms;
    },
    get level() {
      return engine.level;
    },
    get underruns() {
      return engine.underruns;
    },
    get captionLines() {
      return app.captionLines;
    },
    get utterances() {
      return transcript.utterances.map(({ id, state, text, words, receipt }) => ({
        id,
        state,
        text,
        words,
        receipt,
      }));
    },
  };
}
