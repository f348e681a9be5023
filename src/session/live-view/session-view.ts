/** What operators see of a session. It is read when it is asked for, and changes nothing. */
import type {
  LiveListener,
  LiveSession,
  LiveUtterance,
  LiveWord,
  OpenedSession,
} from "../../protocol/live-view.ts";
import { msOfTicks, TICKS_PER_MS } from "../../timing/ticks.ts";
import type { Moment, Participant } from "../connections/participant.ts";
import type { PlaybackQueue } from "../playback/playback-queue.ts";
import type { SpokenWord } from "../playback/transcript.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { SessionDeps } from "../session-deps.ts";
import { listenerOf, type PlacesOptions, placeOf } from "./listener-places.ts";
import type { SessionHistory } from "./session-history.ts";

/** What a view shows of the past, ms. */
const SHOWN_MS = 20_000;
/** The most rows of one session in one view. */
const MAX_UTTERANCES = 16;
const MAX_SEGMENTS = 50;
const MAX_WORDS = 200;
const MAX_LISTENERS = 100;

export interface SessionViewOptions {
  readonly name: string;
  readonly deps: Pick<SessionDeps, "clock" | "counters" | "settings">;
  readonly participants: ReadonlySet<Participant>;
  readonly queue: PlaybackQueue;
  readonly history: SessionHistory;
  readonly playhead: { readonly playheadTicks: number; readonly isMoving: boolean };
}

/** A row, but for the name of its node. */
export type SessionRow = Omit<LiveSession, "node">;

export class SessionView {
  readonly #options: SessionViewOptions;
  readonly #openedMs: number;

  constructor(options: SessionViewOptions) {
    this.#options = options;
    this.#openedMs = options.deps.clock.nowMs();
  }

  row(): SessionRow {
    const { name, deps, participants, queue, history, playhead } = this.#options;
    const { playheadTicks } = playhead;
    const places = this.#places(playheadTicks);
    let [listeners, speakers, calls, lagMs, queueBytes, dropped] = [0, 0, 0, 0, 0, 0];
    let tenant = "";
    for (const participant of participants) {
      const { settings, listener, subscription } = participant;
      if (settings.role !== "listener") speakers += 1;
      if (listener.surface === "call") calls += 1;
      tenant ||= participant.tenant;
      dropped += subscription.cursor.framesDropped;
      if (!participant.isListener) continue;
      listeners += 1;
      const place = placeOf(participant, places);
      lagMs = Math.max(lagMs, place.lagMs);
      queueBytes = Math.max(queueBytes, place.queueBytes);
    }
    const first = queue.first;
    return {
      name,
      tenant: tenant || (first?.subject?.payer?.tenant ?? ""),
      age_s: Math.floor((deps.clock.nowMs() - this.#openedMs) / 1000),
      state: first === null ? "idle" : playhead.isMoving ? "speaking" : "waiting",
      lead_ms: Math.round((queue.writeTicks - playheadTicks) / TICKS_PER_MS),
      utterances: queue.length,
      voice: first?.voiceIds[0] ?? "",
      listeners,
      speakers,
      calls,
      lag_ms: lagMs,
      queue_bytes: queueBytes,
      dropped_frames: dropped,
      underruns: history.underruns,
      interrupts: history.interrupts,
    };
  }

  /** `showsText`: of words. */
  open(showsText: boolean): Omit<OpenedSession, "session"> & { readonly session: SessionRow } {
    const { queue, history, playhead } = this.#options;
    const { playheadTicks, isMoving } = playhead;
    const fromTicks = playheadTicks - SHOWN_MS * TICKS_PER_MS;
    return {
      session: this.row(),
      playhead_ms: msOfTicks(playheadTicks),
      is_moving: isMoving,
      made_ms: msOfTicks(queue.writeTicks),
      shows_text: showsText,
      utterances: queue.notOver
        .slice(0, MAX_UTTERANCES)
        .map((utterance) => utteranceOf(utterance, { showsText, fromTicks, writeTicks: queue.writeTicks })),
      listeners: this.#listeners(playheadTicks),
      moments: history.moments,
    };
  }

  /** Those that are furthest behind. */
  #listeners(playheadTicks: number): LiveListener[] {
    const places = this.#places(playheadTicks);
    const all: LiveListener[] = [];
    for (const participant of this.#options.participants) all.push(listenerOf(participant, places));
    if (all.length > MAX_LISTENERS) all.sort((one, other) => other.lag_ms - one.lag_ms);
    return all.slice(0, MAX_LISTENERS);
  }

  #places(playheadTicks: number): PlacesOptions {
    const { deps, queue } = this.#options;
    const { writeTicks } = queue;
    const moment: Moment = {
      nowMs: deps.clock.nowMs(),
      playheadTicks,
      isStill: playheadTicks >= writeTicks,
    };
    const { audioSent } = deps.counters;
    return { moment, writeTicks, audioSent, fullBytes: deps.settings.maxOutboxBytes };
  }
}

interface UtteranceReading {
  readonly showsText: boolean;
  /** What ended before is not shown. */
  readonly fromTicks: number;
  readonly writeTicks: number;
}

function utteranceOf(utterance: Utterance, reading: UtteranceReading): LiveUtterance {
  const { id, state, startTicks, endTicks, voiceIds, text, transcript } = utterance;
  const { fromTicks, writeTicks } = reading;
  const segments = transcript.segments
    .slice(-MAX_SEGMENTS)
    .map((segment) => ({ startTicks: segment.startTicks, endTicks: segment.endTicks ?? writeTicks }))
    .filter((segment) => segment.endTicks >= fromTicks);
  return {
    id,
    // One that was interrupted is in the queue no more.
    state: state.kind === "interrupted" || state.kind === "rendered" ? "played" : state.kind,
    start_ms: startTicks === null ? null : msOfTicks(startTicks),
    end_ms: endTicks === null ? null : msOfTicks(endTicks),
    voice: voiceIds[0] ?? "",
    characters: text.length,
    segments: segments.map((segment) => ({
      start_ms: msOfTicks(segment.startTicks),
      end_ms: msOfTicks(segment.endTicks),
    })),
    words: lastWords(transcript.words, fromTicks).map((word) => wordOf(word, utterance, reading.showsText)),
  };
}

function lastWords(words: readonly SpokenWord[], fromTicks: number): readonly SpokenWord[] {
  const first = words.findIndex(({ endTicks }) => endTicks >= fromTicks);
  return first < 0 ? [] : words.slice(first, first + MAX_WORDS);
}

function wordOf(word: SpokenWord, { spoken, text }: Utterance, showsText: boolean): LiveWord {
  const { start, end } = spoken.clientRange(word.start, word.end);
  return {
    start_ms: msOfTicks(word.startTicks),
    end_ms: msOfTicks(word.endTicks),
    text: showsText ? text.slice(start, end) : "",
  };
}
