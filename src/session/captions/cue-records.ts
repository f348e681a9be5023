/** The cues that a session remembers for files, as they were played: `captions-max-cues` of a style, for `captions-keep-ms`. */
import type { LoggedEvent } from "../../delivery/event-log.ts";
import type { CueEvent, Event } from "../../protocol/events.ts";
import { FinalCues } from "../../protocol/final-cues.ts";
import { type CueStyle, styleKey } from "../../timing/cues/cue-profiles.ts";
import { msOfTicks } from "../../timing/ticks.ts";
import type { CaptionSettings } from "../session-deps.ts";

/** Gets each cue once it is settled, and the end. */
interface CueFollower {
  cues(cues: readonly CueEvent[]): void;
  end(): void;
}

export class CueRecords {
  readonly #settings: CaptionSettings;
  readonly #playheadTicks: () => number;
  readonly #byStyle = new Map<string, CueRecord>();

  constructor(settings: CaptionSettings, playheadTicks: () => number) {
    this.#settings = settings;
    this.#playheadTicks = playheadTicks;
  }

  /** The record of a style; it begins now where nobody has asked for it before. */
  of(style: CueStyle): CueRecord {
    const key = styleKey(style);
    const record = this.#byStyle.get(key) ?? new CueRecord(this.#settings);
    this.#byStyle.set(key, record);
    return record;
  }

  /** An event that was just logged: cues, and what cuts and settles them. */
  note({ kind, cueStyle, event }: LoggedEvent): void {
    if (this.#byStyle.size === 0 || event === null || (kind !== null && kind !== "cues")) return;
    const playheadMs = msOfTicks(this.#playheadTicks());
    for (const [key, record] of this.#byStyle) {
      if (kind === null || cueStyle === key) record.note(event, playheadMs);
    }
  }

  /** The session is over. Idempotent. */
  close(): void {
    const playheadMs = msOfTicks(this.#playheadTicks());
    for (const record of this.#byStyle.values()) record.close(playheadMs);
    this.#byStyle.clear();
  }
}

export class CueRecord {
  readonly #settings: CaptionSettings;
  readonly #settling = new FinalCues();
  readonly #followers = new Set<CueFollower>();
  #settled: CueEvent[] = [];

  constructor(settings: CaptionSettings) {
    this.#settings = settings;
  }

  /** All that is remembered; the last ones may still be cut. */
  get cues(): CueEvent[] {
    return [...this.#settled, ...this.#settling.open];
  }

  /** What is settled goes to the follower at once, what follows when it is. Returns what ends that. */
  follow(follower: CueFollower): () => void {
    this.#followers.add(follower);
    if (this.#settled.length > 0) follower.cues(this.#settled);
    return () => {
      this.#followers.delete(follower);
    };
  }

  note(event: Event, playheadMs: number): void {
    this.#keep(this.#settling.push(event, playheadMs), playheadMs);
  }

  /** Idempotent. */
  close(playheadMs: number): void {
    this.#keep(this.#settling.flush(playheadMs), playheadMs);
    const followers = [...this.#followers];
    this.#followers.clear();
    for (const follower of followers) follower.end();
  }

  #keep(cues: readonly CueEvent[], playheadMs: number): void {
    if (cues.length === 0) return;
    const oldestMs = playheadMs - this.#settings.captionsKeepMs;
    this.#settled = [...this.#settled, ...cues]
      .filter((cue) => cue.end_ms >= oldestMs)
      .slice(-this.#settings.captionsMaxCues);
    for (const follower of [...this.#followers]) follower.cues(cues);
  }
}
