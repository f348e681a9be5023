/** The part of the untyped voice package that engine.ts uses. */
declare module "@echogarden/espeak-ng-emscripten" {
  interface RawEvent {
    /** word, sentence, mark, play, end, msg_terminated, phoneme, samplerate */
    readonly type: string;
    /** Code points from 1 in the text given. */
    readonly text_position: number;
    readonly word_length: number;
    /** ms from the start of the call. */
    readonly audio_position: number;
    readonly id: string | number | undefined;
  }
  interface RawEngine {
    rate: number;
    pitch: number;
    range: number;
    volume: number;
    readonly samplerate: number;
    /** 0 where the voice exists. */
    set_voice(name: string): number;
    /** Synchronous; the callback gets about 100 ms of samples a call and stops the synthesis by returning true. */
    synthesize(text: string, callback: (samples: Int16Array, events: readonly RawEvent[]) => boolean): void;
  }
  interface RawModule {
    /** The engine's memory; another array after it has grown. */
    readonly HEAPU8: Uint8Array;
    eSpeakNGWorker: new () => RawEngine;
  }
  const load: () => Promise<RawModule>;
  export default load;
}
