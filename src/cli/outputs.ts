/** Everything that say and listen write besides the terminal: the audio file, the caption files, the player. */
import type { AudioFormat, WordsEvent } from "../protocol/vocabulary.ts";
import { type AudioFile, prepareAudioFile } from "./audio-file.ts";
import { CaptionFiles } from "./caption-files.ts";
import type { Io } from "./io.ts";
import type { OutputFormat } from "./output-format.ts";
import { type Player, startPlayer } from "./player.ts";
import type { FedText } from "./text-feeder.ts";

export interface OutputsPlan {
  readonly out: (OutputFormat & { readonly path: string }) | undefined;
  readonly vtt: string | undefined;
  readonly srt: string | undefined;
  readonly isQuiet: boolean;
  /** The player's command line; undefined = no sound. */
  readonly player: readonly string[] | undefined;
  readonly format: AudioFormat;
}

export interface Outputs {
  /** Timeline position of the first frame, ms: where the files begin. To be set before the first words. */
  originMs: number;
  /** Rejects when a file can't be written any more (a full disk); never resolves. */
  readonly failed: Promise<never>;
  frame(frame: Uint8Array, frameMs: number): void;
  /** More text of an utterance; comes before its words. */
  text(piece: FedText): void;
  /** The text that follows is another line: its captions begin anew. */
  line(): void;
  words(event: WordsEvent): void;
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
    this.#parts.captions.originMs = ms;
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

  text(piece: FedText): void {
    this.#parts.captions.text(piece);
  }

  line(): void {
    this.#parts.captions.break();
  }

  words(event: WordsEvent): void {
    try {
      this.#parts.captions.words(event);
    } catch (error) {
      this.#fail(error);
    }
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
