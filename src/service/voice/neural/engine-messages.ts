/** What the service and the process of the neural engine say to each other. */
import type { EnginePiece } from "./speech-engine.ts";

/** Files of a model, as the engine's settings name them; absent: it has none. */
export interface ModelFiles {
  readonly kind: ModelKind;
  readonly model: string;
  readonly tokens: string;
  /** With commas where there are several. */
  readonly lexicon?: string;
  readonly dataDir?: string;
  /** Kokoro's and Kitten's. */
  readonly voices?: string;
  /** Rules that write numbers out, with commas. */
  readonly ruleFsts?: string;
}

export type ModelKind = "vits" | "kokoro" | "kitten";

export type ToEngine =
  /** Loads the model and says what it is. Only what the process writes meanwhile may be read: else it may be of a text. */
  | { readonly type: "load"; readonly id: number; readonly files: ModelFiles }
  | {
      readonly type: "speak";
      readonly id: number;
      readonly files: ModelFiles;
      readonly piece: Omit<EnginePiece, "model">;
    };

export type FromEngine =
  /** Before anything else: the package can be loaded. */
  | { readonly type: "ready" }
  | { readonly type: "missing"; readonly message: string }
  | { readonly type: "loaded"; readonly id: number; readonly sampleRate: number; readonly speakers: number }
  | {
      readonly type: "spoken";
      readonly id: number;
      readonly samples: Int16Array<ArrayBuffer>;
      readonly sampleRate: number;
    }
  /** The model can't be loaded, and the engine lives on. */
  | { readonly type: "refused"; readonly id: number; readonly message: string };
