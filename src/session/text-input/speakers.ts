/** Whose texts are still coming: who is asked to pause, and what becomes of a text whose speaker's connection is gone. */

import type { Participant } from "../connections/participant.ts";
import type { PlaybackClock } from "../playback/playback-clock.ts";
import type { PlaybackQueue } from "../playback/playback-queue.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { SessionDeps } from "../session-deps.ts";
import { LeftTexts, type OpenTexts } from "./left-texts.ts";
import { warnOfEnd } from "./text-warnings.ts";

/** A paused speaker goes on when no more than this share of its credit waits. */
const RESUME_SHARE = 1 / 4;

export interface SpeakersOptions {
  readonly deps: SessionDeps;
  readonly queue: PlaybackQueue;
  readonly clock: PlaybackClock;
  /** Who is there. */
  readonly participants: ReadonlySet<Participant>;
}

export class Speakers {
  readonly #options: SpeakersOptions;
  /** Paused speakers, by utterance: each gets `resumed` when there is room for more text. */
  readonly #paused = new WeakMap<Utterance, Participant>();
  readonly #leftTexts: LeftTexts;

  constructor(options: SpeakersOptions) {
    this.#options = options;
    this.#leftTexts = new LeftTexts({
      clock: options.deps.clock,
      waitMs: options.deps.settings.graceMs,
      maxSpeakers: options.deps.settings.maxListeners,
      onGivenUp: (ids) => {
        this.#endTexts(ids);
        options.clock.advance();
      },
    });
  }

  /** Text came: its speaker is asked to pause where too much waits. */
  noteText(participant: Participant, utterance: Utterance): void {
    const { deps } = this.#options;
    const limit_chars = deps.settings.creditChars;
    if (this.isPaused(utterance)) this.reportRoom(utterance);
    if (this.isPaused(utterance) || utterance.input.pendingChars <= limit_chars) return;
    deps.counters.textPauses += 1;
    this.#sendPaused(participant, utterance);
  }

  /** Whether the utterance's speaker was asked to pause. */
  isPaused(utterance: Utterance): boolean {
    return this.#paused.has(utterance);
  }

  /** Some of an utterance's text was asked for: its speaker goes on where it was asked to pause. */
  reportRoom(utterance: Utterance): void {
    const speaker = this.#paused.get(utterance);
    if (speaker === undefined) return;
    const limit_chars = this.#options.deps.settings.creditChars;
    if (utterance.input.pendingChars > limit_chars * RESUME_SHARE) return;
    this.#paused.delete(utterance);
    if (!this.#options.participants.has(speaker)) return;
    speaker.send((base) => ({
      type: "resumed",
      ...base,
      utterance_id: utterance.id,
      pending_chars: utterance.input.pendingChars,
      limit_chars,
    }));
  }

  /** No text came for long, so it counts as complete: its speaker gets a warning of what is missing. */
  idled(utterance: Utterance): void {
    for (const participant of this.#options.participants) {
      if (participant.openIds.delete(utterance.id)) warnOfEnd(participant, utterance);
    }
  }

  /** The utterance is over: nobody waits any more for room in it. */
  forget(utterance: Utterance): void {
    this.#paused.delete(utterance);
  }

  /** A connection has gone; `isFinal`: it will not come back, and its open texts end. */
  left(participant: Participant, isFinal: boolean): void {
    if (participant.settings.role === "listener") return;
    const { deps, queue, participants } = this.#options;
    const isOpen = (id: string): boolean => queue.findAny(id)?.input.isEnded === false;
    // Another connection goes on with it already: this one's end was seen late.
    const isHeld = (id: string): boolean => [...participants].some((other) => other.openIds.has(id));
    const ids = new Set([...participant.openIds].filter((id) => isOpen(id) && !isHeld(id)));
    if (isFinal || deps.settings.graceMs === 0) this.#endTexts(ids);
    else this.#leftTexts.keep(namesOf(participant), { ids, currentId: participant.currentId });
  }

  /** A connection was cut off with the node that it was at. `listenerId`: who it was there. */
  leftElsewhere(listenerId: string, texts: OpenTexts): void {
    this.#leftTexts.keep([listenerId], texts);
  }

  /** A connection has come back: it goes on with what it left. `listenerId`: who it was. */
  cameBack(participant: Participant, listenerId: string): void {
    if (participant.settings.role === "listener") return;
    const texts = this.#leftTexts.takeBack(listenerId) ?? this.#takeFromHalfOpen(participant, listenerId);
    participant.formerId = listenerId;
    for (const id of texts?.ids ?? []) {
      const utterance = this.#options.queue.findAny(id);
      if (utterance !== undefined) this.#takeTextOver(participant, utterance);
    }
    participant.currentId = texts?.currentId ?? null;
  }

  /** A text goes on with this connection's, whoever began it. */
  noteSpeaker(participant: Participant, utterance: Utterance): void {
    if (this.#leftTexts.takeOne(utterance.id)) this.#takeTextOver(participant, utterance);
    else participant.openIds.add(utterance.id);
  }

  /** Idempotent. */
  close(): void {
    this.#leftTexts.close();
  }

  /** After a change of networks the connection before may seem to be there for long: its texts are the new one's. */
  #takeFromHalfOpen(participant: Participant, listenerId: string): OpenTexts | null {
    for (const before of this.#options.participants) {
      if (before === participant || !namesOf(before).includes(listenerId)) continue;
      const texts = { ids: new Set(before.openIds), currentId: before.currentId };
      before.openIds.clear();
      before.currentId = null;
      return texts;
    }
    return null;
  }

  /** What was accepted is not lost: text that the speaker will not go on with is spoken unchanged. */
  #endTexts(ids: Iterable<string>): void {
    const { deps, queue } = this.#options;
    for (const id of ids) queue.findAny(id)?.input.end(deps.clock.nowMs());
    queue.requestNext();
  }

  /** `paused` is sent again: it may not have reached the connection before. */
  #takeTextOver(participant: Participant, utterance: Utterance): void {
    participant.openIds.add(utterance.id);
    if (this.isPaused(utterance)) this.#sendPaused(participant, utterance);
  }

  #sendPaused(participant: Participant, utterance: Utterance): void {
    this.#paused.set(utterance, participant);
    participant.send((base) => ({
      type: "paused",
      ...base,
      utterance_id: utterance.id,
      pending_chars: utterance.input.pendingChars,
      limit_chars: this.#options.deps.settings.creditChars,
    }));
  }
}

/** It may come back under the name it came back with: its own may not have reached it before it was cut off again. */
function namesOf({ id, formerId }: Participant): string[] {
  return formerId === null ? [id] : [id, formerId];
}
