/**
 * One session as a timeline's scene. Reports come four times a second and have what is not over yet: what was seen before
 * stays on the picture until it has slid out of it.
 */
import type { LiveListener, LiveMoment, LiveUtterance, OpenedSession } from "../../protocol/live-view.ts";
import { MovingPlayhead } from "../timeline/moving-playhead.ts";
import type { SpanState, TimelineScene, TimelineSpan, TimelineWord } from "../timeline/timeline-drawing.ts";
import { LATE_MS, shortMs } from "./figures.ts";

/** More than any screen shows. */
const KEPT_MS = 60_000;
const MAX_KEPT = 2000;

const EVENT_LABELS: Readonly<Partial<Record<LiveMoment["type"], string>>> = {
  interrupted: "cut",
  failed: "failed",
  recovered: "broke off, went on",
  underrun: "ran dry",
};

interface SeenSpan extends TimelineSpan {
  readonly id: string;
}

/** One that was over before it was seen: its words and splices are not known here. */
function spanOf(id: string, startMs: number): SeenSpan {
  return { id, startMs, endMs: startMs, state: "played", label: id, splicesMs: [] };
}

interface SeenWord extends TimelineWord {
  readonly utteranceId: string;
}

export class SessionScene {
  readonly #playhead = new MovingPlayhead();
  /** By id and place: one that is cut and goes on is there twice. */
  #spans = new Map<string, SeenSpan>();
  #words = new Map<string, SeenWord>();
  #last: OpenedSession | null = null;

  report(opened: OpenedSession, nowMs: number): void {
    this.#last = opened;
    const { playhead_ms: placeMs, is_moving: isMoving, made_ms: limitMs } = opened;
    this.#playhead.report({ placeMs, isMoving, limitMs }, nowMs);
    for (const utterance of opened.utterances) this.#see(utterance, opened.made_ms);
    for (const moment of opened.moments) this.#end(moment);
    this.#forget(placeMs - KEPT_MS);
  }

  at(nowMs: number): TimelineScene {
    const opened = this.#last;
    return {
      playheadMs: this.#playhead.at(nowMs),
      renderedMs: opened?.made_ms ?? 0,
      spans: [...this.#spans.values()],
      words: [...this.#words.values()],
      events: (opened?.moments ?? []).flatMap(({ type, at_ms }) => {
        const label = EVENT_LABELS[type];
        return label === undefined ? [] : [{ atMs: at_ms, label, isBad: type !== "interrupted" }];
      }),
      lanes: (opened?.listeners ?? [])
        .filter(({ format }) => format !== "none")
        .map((listener) => this.#lane(listener, nowMs)),
    };
  }

  /** It moves with the playhead, as far behind it as it was. */
  #lane({ id, surface, format, lag_ms }: LiveListener, nowMs: number) {
    return {
      label: `${id} ${surface} ${format}${lag_ms >= LATE_MS ? `, ${shortMs(lag_ms)} behind` : ""}`,
      atMs: this.#playhead.at(nowMs) - lag_ms,
      isLate: lag_ms >= LATE_MS,
    };
  }

  #see({ id, state, start_ms, end_ms, segments, words, voice }: LiveUtterance, renderedMs: number): void {
    if (start_ms === null) return;
    const states: Readonly<Record<LiveUtterance["state"], SpanState>> = {
      queued: "coming",
      speaking: "speaking",
      played: "speaking",
      failed: "failed",
    };
    this.#spans.set(`${id} ${start_ms}`, {
      id,
      startMs: start_ms,
      endMs: end_ms ?? renderedMs,
      state: states[state],
      label: voice === "" ? id : `${id} · ${voice}`,
      splicesMs: segments.slice(1).map((segment) => segment.start_ms),
    });
    for (const word of words) {
      this.#words.set(`${id} ${start_ms} ${word.start_ms}`, {
        utteranceId: id,
        startMs: word.start_ms,
        endMs: word.end_ms,
        text: word.text,
      });
    }
  }

  /** What comes behind a cut was not heard. */
  #end({ type, at_ms, start_ms, utterance_id }: LiveMoment): void {
    const key = `${utterance_id} ${start_ms}`;
    // One that was cancelled, or cut, before it began was never on the timeline.
    if (type === "underrun" || type === "recovered" || at_ms <= start_ms) return;
    const span = this.#spans.get(key) ?? spanOf(utterance_id, start_ms);
    const state = type === "done" ? "played" : type === "failed" ? "failed" : "interrupted";
    if (span.state === state && span.endMs === at_ms) return;
    this.#spans.set(key, { ...span, endMs: at_ms, state });
    if (type !== "interrupted") return;
    for (const [wordKey, word] of this.#words) {
      if (word.utteranceId === utterance_id && word.startMs >= at_ms) this.#words.delete(wordKey);
    }
  }

  #forget(beforeMs: number): void {
    for (const [key, { endMs }] of this.#spans) if (endMs < beforeMs) this.#spans.delete(key);
    for (const [key, { endMs }] of this.#words) if (endMs < beforeMs) this.#words.delete(key);
    while (this.#words.size > MAX_KEPT) {
      const [oldest] = this.#words.keys();
      if (oldest === undefined) return;
      this.#words.delete(oldest);
    }
  }
}
