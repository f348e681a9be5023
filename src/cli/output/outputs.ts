/** Everything that say and listen write besides the terminal: the audio file, the caption files, the player. */

import { encodeAlaw, encodeUlaw } from "../../audio/codecs/g711.ts";
import { concealmentPacket } from "../../audio/codecs/opus-packet.ts";
import { AUDIO_FORMATS, frameSamples } from "../../audio/formats.ts";
import type { AudioFormat } from "../../protocol/vocabulary.ts";
import type { Io } from "../io.ts";
import { type AudioFile, prepareAudioFile } from "./audio-file.ts";
import { type CaptionEvent, CaptionFiles } from "./caption-files.ts";
import type { OutputPlan } from "./output-plan.ts";
import { type Player, startPlayer } from "./player.ts";

export interface OutputsPlan extends Omit<OutputPlan, "isJson"> {
  readonly isQuiet: boolean;
  /** The player's command line; undefined = no sound. */
  readonly player: readonly string[] | undefined;
  readonly format: AudioFormat;
}

export interface Outputs {
  /** Timeline position of the first frame, ms: where the files begin. To be set before the first cue. */
  originMs: number;
  /** Rejects when a file can't be written any more (a full disk); never resolves. */
  readonly failed: Promise<never>;
  /** Audio that was received or filled in so far, ms. */
  readonly audioMs: number;
  frame(frame: Uint8Array, frameMs: number): void;
  /** `ms` of the timeline were missed: an audio file gets silence, so that what follows stands at its time. */
  gap(ms: number, frameMs: number): void;
  /** A cue, or what cuts and settles cues. `heardMs`: what is before it on the timeline has been heard. */
  caption(event: CaptionEvent, heardMs: number): void;
  /** Captions behind `atMs` are not played here: they are left out. */
  endAt(atMs: number): void;
  /** `ms` of the timeline from `fromMs` on are left out of all files. */
  skip(ms: number, fromMs: number): void;
  /** Stops the sound at once; files keep what they have. */
  silence(): void;
  /** Completes the files and says what was written. Idempotent. */
  close(): Promise<void>;
}

/**
 * Resolves with how to open the outputs. Opening takes no time, so that a connection can be listened to in the same
 * turn and nothing of it is missed; it throws `invalid_config` where a file can't be written.
 */
export async function prepareOutputs(io: Io, plan: OutputsPlan): Promise<() => Outputs> {
  const openAudio =
    plan.out === undefined ? undefined : await prepareAudioFile({ ...plan.out, stdout: io.stdout });
  return () => {
    const audio = openAudio?.();
    const captions = new CaptionFiles({ vtt: plan.vtt, srt: plan.srt, stdout: io.stdout });
    const player = plan.player === undefined ? undefined : startPlayer(plan.player);
    return new OpenOutputs(io, plan, { audio, captions, player });
  };
}

interface Parts {
  readonly audio: AudioFile | undefined;
  readonly captions: CaptionFiles;
  readonly player: Player | undefined;
}

/** Longer gaps are left out of the file: who was away for a night does not want a night of silence. */
const MAX_FILLED_MS = 600_000;

class OpenOutputs implements Outputs {
  readonly failed: Promise<never>;
  readonly #io: Io;
  readonly #plan: OutputsPlan;
  readonly #parts: Parts;
  #fail: (error: unknown) => void = () => undefined;
  #audioMs = 0;
  #isClosed = false;

  constructor(io: Io, plan: OutputsPlan, parts: Parts) {
    this.#io = io;
    this.#plan = plan;
    this.#parts = parts;
    this.failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    // Whoever races it hears of it; before and after that a failure must not end the process.
    this.failed.catch(() => undefined);
  }

  get originMs(): number {
    return this.#parts.captions.originMs;
  }
  set originMs(ms: number) {
    this.#caption((captions) => {
      captions.originMs = ms;
    });
  }

  get audioMs(): number {
    return this.#audioMs;
  }

  frame(frame: Uint8Array, frameMs: number): void {
    this.#audioMs += frameMs;
    try {
      this.#parts.audio?.write(frame);
      this.#parts.player?.write(frame);
    } catch (error) {
      this.#fail(error);
    }
  }

  gap(ms: number, frameMs: number): void {
    // A reader of stdout hears what comes as it comes: silence would only put it behind for good.
    if (this.#parts.audio === undefined || this.#plan.out?.path === "-") return;
    if (ms > MAX_FILLED_MS) {
      this.skip(ms, this.originMs + this.#audioMs);
      return;
    }
    const frame = silentFrame(this.#plan.format, frameMs);
    try {
      for (let left = Math.round(ms / frameMs); left > 0; left--) {
        this.#parts.audio.write(frame);
        this.#audioMs += frameMs;
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  caption(event: CaptionEvent, heardMs: number): void {
    this.#caption((captions) => captions.event(event, heardMs));
  }

  endAt(atMs: number): void {
    this.#caption((captions) => captions.endAt(atMs));
  }

  skip(ms: number, fromMs: number): void {
    this.#caption((captions) => captions.skip(ms, fromMs));
  }

  silence(): void {
    this.#parts.player?.stop();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { audio, captions, player } = this.#parts;
    audio?.close();
    captions.close();
    await player?.end();
    if (!this.#plan.isQuiet && this.#audioMs > 0) this.#io.stderr.write(this.#summary());
  }

  #caption(write: (captions: CaptionFiles) => void): void {
    try {
      write(this.#parts.captions);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A line a file; what went to stdout speaks for itself. */
  #summary(): string {
    const { out, vtt, srt, format } = this.#plan;
    const files: string[] = [];
    if (out !== undefined && out.path !== "-") {
      const bytes = this.#parts.audio?.bytes ?? 0;
      files.push(
        `Wrote ${out.path}: ${(this.#audioMs / 1000).toFixed(1)} s of ${format}, ${sizeOf(bytes)}\n`,
      );
    }
    for (const path of [vtt, srt]) {
      if (path !== undefined && path !== "-")
        files.push(`Wrote ${path}: ${this.#parts.captions.count} captions\n`);
    }
    return files.join("");
  }
}

function sizeOf(bytes: number): string {
  return bytes < 10_000 ? `${bytes} bytes` : `${Math.round(bytes / 1000)} kB`;
}

function silentFrame(format: AudioFormat, frameMs: number): Uint8Array {
  const { codec } = AUDIO_FORMATS[format];
  if (codec === "opus") return concealmentPacket(frameMs);
  const samples = new Int16Array(frameSamples(format, frameMs));
  if (codec === "ulaw") return encodeUlaw(samples);
  if (codec === "alaw") return encodeAlaw(samples);
  return new Uint8Array(samples.buffer);
}
