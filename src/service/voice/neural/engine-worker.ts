/**
 * The process of the neural engine: loads models when they are first spoken with, keeps a few of them, and speaks a piece at a
 * time. The package's native code ends its process where a model or a text is not as it expects: so it has one of its own.
 */
import { createRequire } from "node:module";
import type { FromEngine, ModelFiles, ToEngine } from "./engine-messages.ts";

/** The part of the untyped package that is used. */
interface Sherpa {
  readonly OfflineTts: new (config: object) => SherpaVoice;
}
interface SherpaVoice {
  readonly sampleRate: number;
  readonly numSpeakers: number;
  /** Throws where it can say nothing of the text. */
  generate(request: object): { readonly samples: Float32Array; readonly sampleRate: number };
}

/** Models that stay loaded: one takes 0.1 to 0.5 GB. */
const MAX_LOADED = 4;
/** What the package takes for no noise at all; it reads 0 as "not set". */
const NO_NOISE = 1e-30;
const NO_AUDIO = "TTS generation failed";

const [, , packageFile = "", threads = "1"] = process.argv;

class Engine {
  readonly #sherpa: Sherpa;
  /** The last one used is the last. */
  readonly #loaded = new Map<string, SherpaVoice>();

  constructor(sherpa: Sherpa) {
    this.#sherpa = sherpa;
  }

  take(request: ToEngine): void {
    const { id, files } = request;
    let voice: SherpaVoice;
    try {
      voice = this.#load(files, request.type === "speak" && request.piece.isRepeatable);
    } catch (thrown) {
      tell({ type: "refused", id, message: thrown instanceof Error ? thrown.message : String(thrown) });
      return;
    }
    if (request.type === "speak") tell({ type: "spoken", id, ...spoken(voice, request.piece) });
    else tell({ type: "loaded", id, sampleRate: voice.sampleRate, speakers: voice.numSpeakers });
  }

  #load(files: ModelFiles, isRepeatable: boolean): SherpaVoice {
    const key = `${isRepeatable && files.kind === "vits" ? "steady" : "lively"} ${files.model}`;
    const known = this.#loaded.get(key);
    const voice = known ?? new this.#sherpa.OfflineTts(configOf(files, isRepeatable));
    this.#loaded.delete(key);
    this.#loaded.set(key, voice);
    const [oldest] = this.#loaded.keys();
    if (this.#loaded.size > MAX_LOADED && oldest !== undefined) this.#loaded.delete(oldest);
    return voice;
  }
}

function configOf({ kind, ruleFsts, ...files }: ModelFiles, isRepeatable: boolean): object {
  const noise = kind === "vits" && isRepeatable ? { noiseScale: NO_NOISE, noiseScaleW: NO_NOISE } : {};
  return {
    model: { [kind]: { dataDir: "", ...files, ...noise }, numThreads: Number(threads), provider: "cpu" },
    ...(ruleFsts === undefined ? {} : { ruleFsts }),
    maxNumSentences: 1,
  };
}

function spoken(
  voice: SherpaVoice,
  { text, speaker, speed }: Extract<ToEngine, { type: "speak" }>["piece"],
): { samples: Int16Array<ArrayBuffer>; sampleRate: number } {
  try {
    // With this field it throws where it has nothing to say; without it, it would crash.
    const generationConfig = { sid: speaker, speed, silenceScale: 1 };
    const request = { text, sid: speaker, speed, enableExternalBuffer: false, generationConfig };
    const { samples, sampleRate } = voice.generate(request);
    return { samples: toInt16(samples), sampleRate };
  } catch (thrown) {
    if (!(thrown instanceof Error) || thrown.message !== NO_AUDIO) throw thrown;
    return { samples: new Int16Array(0), sampleRate: voice.sampleRate };
  }
}

function toInt16(samples: Float32Array): Int16Array<ArrayBuffer> {
  const made = new Int16Array(samples.length);
  for (const [at, sample] of samples.entries())
    made[at] = Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_767)));
  return made;
}

function tell(message: FromEngine): void {
  process.send?.(message);
}

// Its parent is gone.
process.on("disconnect", () => process.exit(0));
// Ctrl+C goes to the whole group: the parent ends this process when its speech is drained.
process.on("SIGINT", () => undefined);
try {
  const engine = new Engine(createRequire(packageFile)(packageFile) as Sherpa);
  process.on("message", (message) => engine.take(message as ToEngine));
  tell({ type: "ready" });
} catch (thrown) {
  tell({ type: "missing", message: thrown instanceof Error ? thrown.message : String(thrown) });
}
