/**
 * What a connection brings, taken to the files, and to the terminal at the time at which a player would play it. The
 * connection may have been broken and joined again in between: it hands out nothing twice.
 */
import type { Connection } from "../../client/index.ts";
import { recovered } from "../../client/recovery.ts";
import type { AudioDescription, InterruptedEvent, WarningEvent, WordsEvent } from "../../protocol/events.ts";
import type { Io } from "../io.ts";
import type { SpeechView } from "./karaoke.ts";
import { LiveDisplay } from "./live-display.ts";
import type { Outputs } from "./outputs.ts";
import { PlayoutClock } from "./playout.ts";
import { Script } from "./script.ts";

export interface ReceivedSpeechOptions {
  readonly io: Io;
  /** Just joined. */
  readonly connection: Connection;
  readonly outputs: Outputs;
  /** null where nothing is shown: as fast as it comes, to files alone. */
  readonly view: SpeechView | null;
  /** How far ahead of their playout events come, ms; Infinity where cues wait for the end of their utterance. */
  readonly leadMs: number;
  /** Frames before it were received by an earlier run of the program; default: none were. */
  readonly fromMs?: number | undefined;
  /** Called a few times a second with how far the playout is. */
  readonly onProgress?: (positionMs: number) => void;
}

export class ReceivedSpeech {
  readonly script = new Script();
  readonly playout: PlayoutClock;
  readonly #options: ReceivedSpeechOptions;
  readonly #display: LiveDisplay | undefined;
  #frameMs: number;
  /** End of the audio that has come, ms on the timeline. */
  #endMs: number;
  #fromMs: number;
  /** From the timeline to the screen's clock, which goes on when a session begins again. */
  #shiftMs = 0;

  constructor(options: ReceivedSpeechOptions) {
    const { io, connection, outputs, view, fromMs, onProgress } = options;
    this.#options = options;
    this.playout = new PlayoutClock(io.clock);
    this.#display =
      view === null
        ? undefined
        : new LiveDisplay({ clock: io.clock, script: this.script, playout: this.playout, view, onProgress });
    const { frame_ms: frameMs = 0, start_ms: startMs = 0 } = connection.audio ?? {};
    this.#frameMs = frameMs;
    this.#fromMs = fromMs ?? startMs;
    this.#endMs = Math.max(startMs, this.#fromMs);
    outputs.originMs = this.#endMs;
  }

  /** To be called in the turn that the connection was joined in. */
  start(): void {
    const { connection, outputs, leadMs } = this.#options;
    connection.onAudio((frame, { atMs }) => this.#frame(frame, atMs));
    connection.on("words", (event) => this.#words(event));
    for (const type of ["cue", "interrupted", "utterance.done"] as const) {
      connection.on(type, (event) => outputs.caption(event, event.at_ms - leadMs));
    }
    connection.on("interrupted", (event) => this.#interrupted(event));
    connection.on("warning", (event) => this.#warning(event));
    connection.on("reconnected", ({ hello, gapMs }) => {
      // Without the first number another timeline has begun: the file goes on with it, without a hole.
      if (gapMs === null) this.#restart(hello.audio);
    });
    this.#display?.start();
  }

  /** Resolves when the playout has reached `endMs` on the timeline; at once where nothing is shown. */
  async played(endMs: number): Promise<void> {
    await this.#display?.played(endMs);
  }

  /** Leaves what was said so far on the screen. Idempotent. */
  stop(): void {
    this.#display?.stop();
  }

  /** What comes behind the audio so far is not written. */
  endFiles(): void {
    this.#options.outputs.endAt(this.#endMs);
  }

  #frame(frame: Uint8Array, atMs: number): void {
    const { outputs } = this.#options;
    // By its middle: a place that was rounded must not cost a frame.
    if (atMs + this.#frameMs / 2 < this.#fromMs) return;
    const missedMs = atMs - this.#endMs;
    if (missedMs >= this.#frameMs / 2) outputs.gap(missedMs, this.#frameMs);
    this.#endMs = atMs + this.#frameMs;
    this.playout.frame(this.#endMs + this.#shiftMs, this.#frameMs);
    outputs.frame(frame, this.#frameMs);
  }

  #words(event: WordsEvent): void {
    for (const word of event.words) {
      const startMs = word.start_ms + this.#shiftMs;
      const endMs = word.end_ms + this.#shiftMs;
      this.script.time(event.utterance_id, { ...word, start_ms: startMs, end_ms: endMs });
    }
  }

  #interrupted({ at_ms: atMs, next_ms: nextMs }: InterruptedEvent): void {
    if (nextMs === null) return;
    this.script.cut(atMs + this.#shiftMs);
    // The timeline itself goes on elsewhere: nothing was missed between, and nothing is filled in.
    this.#options.outputs.skip(nextMs - this.#endMs, this.#endMs);
    this.#endMs = nextMs;
  }

  /** The text stays, and the times of its words come again. */
  #warning(event: WarningEvent): void {
    const again = recovered(event);
    if (again !== null) this.script.recovered(again);
  }

  /** The frames that follow begin a place of their own: behind what is there already. */
  #restart(audio: AudioDescription | null): void {
    const { outputs } = this.#options;
    const startMs = audio?.start_ms ?? 0;
    // The sound of words that came ahead of it does not come any more.
    this.script.cut(this.#endMs + this.#shiftMs);
    this.endFiles();
    this.#frameMs = audio?.frame_ms ?? this.#frameMs;
    this.#shiftMs = this.playout.receivedMs - startMs;
    this.#fromMs = startMs;
    this.#endMs = startMs;
    outputs.originMs = startMs - outputs.audioMs;
  }
}
