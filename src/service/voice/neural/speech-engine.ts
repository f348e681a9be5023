/** What speaks for voices that the embedded engine does not: a piece at a time, without times. */
import type { GatewayError } from "../../../errors.ts";

/** A piece's text for one voice of a model. */
export interface EnginePiece {
  /** The model's name. */
  readonly model: string;
  /** Which of its speakers, from 0. */
  readonly speaker: number;
  readonly text: string;
  /** 1: as the voice usually speaks; 2: twice as fast. */
  readonly speed: number;
  /** The same samples each time, where the model's voice varies. */
  readonly isRepeatable: boolean;
}

export interface EngineAudio {
  /** Empty where the model can say nothing of the text. */
  readonly samples: Int16Array<ArrayBuffer>;
  /** Hz. */
  readonly sampleRate: number;
}

/** Exactly one of them is called, never from inside `speak`, and none after `cancel`. */
export interface EngineHandlers {
  spoken(audio: EngineAudio): void;
  failed(error: GatewayError): void;
}

export interface SpeechEngine {
  /** Pieces are spoken in the order of the calls. */
  speak(piece: EnginePiece, handlers: EngineHandlers): { cancel(): void };
  /** Times that it was started again. */
  readonly restarts: number;
  /** Idempotent. */
  close(): Promise<void>;
}
