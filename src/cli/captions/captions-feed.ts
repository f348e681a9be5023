/** Cues of a session at their time: to files once nothing can cut them any more, to live services as they are spoken. */
import type { Connection } from "../../client/index.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { CueEvent } from "../../protocol/events.ts";
import { type CaptionEvent, CaptionFiles, type CaptionFilesOptions } from "../output/caption-files.ts";
import type { CaptionQueue } from "./captions-queue.ts";

export interface CaptionsFeedOptions extends CaptionFilesOptions {
  readonly clock: Clock;
  /** ms since 1970. */
  readonly wallMs: () => number;
  readonly queues: readonly CaptionQueue[];
}

interface Planned {
  readonly cue: CueEvent;
  readonly timer: Timer;
}

/** Cues whose time is still to come; a session emits few at a time. */
const MAX_PLANNED = 512;

export class CaptionsFeed {
  readonly #options: CaptionsFeedOptions;
  readonly #files: CaptionFiles;
  #planned: Planned[] = [];
  #leadMs = 0;

  /** Throws `invalid_config` where a file can't be written. */
  constructor(options: CaptionsFeedOptions) {
    this.#options = options;
    this.#files = new CaptionFiles(options);
    // Who reads them while they are written is not to see those of another session.
    this.#files.begin();
  }

  /** Files count from now on. */
  start(connection: Connection): void {
    this.#files.originMs = connection.hello.at_ms;
    this.#leadMs = connection.hello.settings.lead_ms;
    for (const type of ["cue", "interrupted", "utterance.done"] as const) {
      connection.on(type, (event) => this.#take(event));
    }
  }

  /** Writes what is left and completes the files. Once. */
  close(): void {
    for (const { timer } of this.#planned.splice(0)) timer.cancel();
    this.#files.close();
  }

  #take(event: CaptionEvent): void {
    this.#files.event(event, event.at_ms - this.#leadMs);
    if (event.type === "cue") this.#plan(event);
    else if (event.type === "interrupted" && event.next_ms !== null) this.#drop(event.at_ms);
  }

  /** An event comes a lead ahead of its sound, but for the cue that stands when we join. */
  #plan(cue: CueEvent): void {
    const { clock, queues, wallMs } = this.#options;
    if (queues.length === 0) return;
    const isAhead = cue.start_ms >= cue.at_ms - 1;
    const show = (): void => {
      this.#planned = this.#planned.filter((planned) => planned.cue !== cue);
      for (const queue of queues) queue.push({ cue, shownMs: wallMs() });
    };
    const timer = clock.at(clock.nowMs() + (isAhead ? this.#leadMs : 0), show);
    this.#planned.push({ cue, timer });
    if (this.#planned.length > MAX_PLANNED) this.#planned.shift()?.timer.cancel();
  }

  #drop(atMs: number): void {
    for (const { cue, timer } of this.#planned) if (cue.start_ms >= atMs) timer.cancel();
    this.#planned = this.#planned.filter(({ cue }) => cue.start_ms < atMs);
  }
}
