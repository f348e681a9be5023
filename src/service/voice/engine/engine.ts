/**
 * The one place that knows eSpeak NG's WebAssembly package. It is GPL-3.0 and optional: only the voice worker loads it.
 * The library has one global state: one engine a thread, one synthesis at a time, and nothing may be thrown through it
 * (a throw in its callback was seen to garble the next synthesis).
 */
import { GatewayError } from "../../../errors.ts";

/** What the engine says about a place in its audio. */
export interface EngineEvent {
  readonly kind: "word" | "phoneme";
  /** Index of a code point in the text given; may point past a word's digits. */
  readonly textIndex: number;
  /** Code points; words only. */
  readonly length: number;
  /** From the start of the synthesis, ms. */
  readonly atMs: number;
  /** Phonemes only: silence, not speech. */
  readonly isPause: boolean;
}

export interface EngineVoice {
  /** Language or accent and variant, e.g. `en-us+f3`. */
  readonly name: string;
  /** Words a minute, 80-450. */
  readonly rate: number;
  /** 0-100. */
  readonly pitch: number;
  /** 0-100. */
  readonly range: number;
  /** 0-200. Absent: 100. */
  readonly volume?: number | undefined;
}

/** Called with about 100 ms of samples a call and the events that fall into them; returns whether to stop. */
export type EngineListener = (samples: Int16Array, events: readonly EngineEvent[]) => boolean;

type RawModule = typeof import("@echogarden/espeak-ng-emscripten");
type LoadedModule = Awaited<ReturnType<RawModule["default"]>>;
type RawEngine = LoadedModule extends { eSpeakNGWorker: new () => infer E } ? E : never;

/** Bytes of the longest text that may be spoken after a reset; a piece's text is far shorter, see pieces.ts. */
const MAX_TEXT_BYTES = 65_536;

const USUAL_VOLUME = 100;

export class Engine {
  readonly #module: LoadedModule;
  readonly #raw: RawEngine;
  /** The engine's memory as it was loaded, without the zeros at its end. */
  readonly #fresh: Uint8Array;
  #voiceName = "";
  #isSpeaking = false;

  private constructor(module: LoadedModule) {
    this.#module = module;
    this.#raw = createRaw(module);
    // The binding keeps one buffer for texts in the engine's memory: it must never grow after this copy.
    for (const text of [" ".repeat(MAX_TEXT_BYTES), " "]) this.#raw.synthesize(text, () => true);
    this.#fresh = withoutLastZeros(module.HEAPU8);
  }

  /** Takes 0.1-0.3 s. Throws GatewayError `voice_package_missing` where the package can't be loaded. */
  static async load(): Promise<Engine> {
    let load: RawModule["default"];
    try {
      ({ default: load } = await import("@echogarden/espeak-ng-emscripten"));
    } catch (cause) {
      throw new GatewayError("voice_package_missing", VOICE_PACKAGE_MISSING, { cause });
    }
    return new Engine(await load());
  }

  /** Hz. */
  get sampleRate(): number {
    return this.#raw.samplerate;
  }

  /** Speaks `text` (SSML: escape `<` and `&`) in one go; whatever the listener throws is thrown after the engine ended. */
  speak(text: string, voice: EngineVoice, listener: EngineListener): void {
    this.#setVoice(voice);
    this.#isSpeaking = true;
    let failure: { readonly thrown: unknown } | undefined;
    this.#raw.synthesize(text, (samples, events) => {
      if (failure !== undefined) return true;
      try {
        return listener(samples, readEvents(events));
      } catch (thrown) {
        failure = { thrown };
        return true;
      }
    });
    this.#isSpeaking = false;
    if (failure !== undefined) throw failure.thrown;
  }

  /**
   * Forgets all that was spoken: what is spoken next is the same samples after every reset, in every process. Takes
   * about 2 ms, and the next voice to be set about 1.5 ms more. Throws RangeError from inside a synthesis.
   */
  reset(): void {
    if (this.#isSpeaking) throw new RangeError("Cannot reset the engine while it speaks");
    const memory = this.#module.HEAPU8;
    memory.set(this.#fresh);
    memory.fill(0, this.#fresh.length);
    this.#voiceName = "";
  }

  #setVoice(voice: EngineVoice): void {
    if (voice.name !== this.#voiceName) {
      if (this.#raw.set_voice(voice.name) !== 0) {
        throw new GatewayError("internal", `Cannot set the voice: the engine has none named "${voice.name}"`);
      }
      this.#voiceName = voice.name;
    }
    this.#raw.rate = voice.rate;
    this.#raw.pitch = voice.pitch;
    this.#raw.range = voice.range;
    this.#raw.volume = voice.volume ?? USUAL_VOLUME;
  }
}

/** The engine draws its random numbers from the time of its creation: with a fixed one they are the same in every process. */
function createRaw(module: LoadedModule): RawEngine {
  const now = Date.now;
  // Nothing else runs in this thread in between: the constructor is synchronous.
  Date.now = () => 0;
  try {
    return new module.eSpeakNGWorker();
  } finally {
    Date.now = now;
  }
}

function withoutLastZeros(memory: Uint8Array): Uint8Array {
  let end = memory.length;
  while (end > 0 && memory[end - 1] === 0) end -= 1;
  return memory.slice(0, end);
}

export const VOICE_PACKAGE = "@echogarden/espeak-ng-emscripten";
export const VOICE_PACKAGE_MISSING =
  `Cannot speak: the optional package ${VOICE_PACKAGE} is not installed, expected beside voicewire: ` +
  `run "npm install ${VOICE_PACKAGE}@^0.3.5"`;

interface RawEvent {
  readonly type: string;
  readonly text_position: number;
  readonly word_length: number;
  readonly audio_position: number;
  readonly id: string | number | undefined;
}

function readEvents(raw: readonly RawEvent[]): EngineEvent[] {
  const events: EngineEvent[] = [];
  for (const event of raw) {
    if (event.type !== "word" && event.type !== "phoneme") continue;
    events.push({
      kind: event.type,
      textIndex: event.text_position - 1,
      length: event.word_length,
      atMs: event.audio_position,
      isPause: event.type === "phoneme" && event.id === "",
    });
  }
  return events;
}
