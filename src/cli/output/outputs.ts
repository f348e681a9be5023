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

interface OutputsPlan extends Omit<OutputPlan, "isJson"> {
  readonly isQuiet: boolean;
  /** The player's command line; undefined = no sound. */
  readonly player: readonly string[] | undefined;
  readonly format: AudioFormat;
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
    return new Outputs(io, plan, { audio, captions, player });
  };
}

interface Parts {
  readonly audio: AudioFile | undefined;
  readonly captions: CaptionFiles;
  readonly player: Player | undefined;
}

/** Longer gaps are left out of the file: who was away for a night does not want a night of silence. */
const MAX_FILLED_MS = 600_000;

export class Outputs {
  /** Rejects when a file can't be written any more (a full disk); never resolves. */
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
    // Whoever races it learns of it; before and after that a failure must not end the process.
    this.failed.catch(() => undefined);
  }

  /** Timeline position of the first frame, ms: where the files begin. To be set before the first cue. */
  get originMs(): number {
    return this.#parts.captions.originMs;
  }
  set originMs(ms: number) {
    this.#write(({ captions }) => {
      captions.originMs = ms;
    });
  }

  /** Audio that was received or filled in so far, ms. */
  get audioMs(): number {
    return this.#audioMs;
  }

  frame(frame: Uint8Array, frameMs: number): void {
    this.#audioMs += frameMs;
    this.#write(({ audio, player }) => {
      audio?.write(frame);
      player?.write(frame);
    });
  }

  /** `ms` of the timeline were missed: an audio file gets silence, so that what follows stands at its time. */
  gap(ms: number, frameMs: number): void {
    // A reader of stdout plays what comes as it comes: silence would only put it behind for good.
    if (this.#parts.audio === undefined || this.#plan.out?.path === "-") return;
    if (ms > MAX_FILLED_MS) {
      this.skip(ms, this.originMs + this.#audioMs);
      return;
    }
    const frame = silentFrame(this.#plan.format, frameMs);
    this.#write(({ audio }) => {
      for (let left = Math.round(ms / frameMs); left > 0; left--) {
        audio?.write(frame);
        this.#audioMs += frameMs;
      }
    });
  }

  /** A cue, or what cuts and settles cues. `playedMs`: what is before it on the timeline has been played. */
  caption(event: CaptionEvent, playedMs: number): void {
    this.#write(({ captions }) => captions.event(event, playedMs));
  }

  /** Captions behind `atMs` are not played here: they are left out. */
  endAt(atMs: number): void {
    this.#write(({ captions }) => captions.endAt(atMs));
  }

  /** `ms` of the timeline from `fromMs` on are left out of all files. */
  skip(ms: number, fromMs: number): void {
    this.#write(({ captions }) => captions.skip(ms, fromMs));
  }

  /** Stops the sound at once; files keep what they have. */
  silence(): void {
    this.#parts.player?.stop();
  }

  /** Completes the files and says what was written. `isFailed`: files of which nothing came are not left behind. Idempotent. */
  async close({ isFailed = false } = {}): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { audio, captions, player } = this.#parts;
    if (isFailed && this.#audioMs === 0) {
      audio?.discard();
      captions.discard();
    } else {
      audio?.close();
      captions.close();
    }
    await player?.end();
    if (!this.#plan.isQuiet && this.#audioMs > 0) this.#io.stderr.write(this.#summary());
  }

  #write(action: (parts: Parts) => void): void {
    try {
      action(this.#parts);
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
  const samples = (): Int16Array => new Int16Array(frameSamples(format, frameMs));
  const { codec } = AUDIO_FORMATS[format];
  switch (codec) {
    case "opus":
      return concealmentPacket(frameMs);
    case "ulaw":
      return encodeUlaw(samples());
    case "alaw":
      return encodeAlaw(samples());
    case "pcm_s16le":
      return new Uint8Array(samples().buffer);
  }
}
