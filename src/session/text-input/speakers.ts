/** Whose texts are still coming: who is asked to pause, and what becomes of a text whose speaker's connection is gone. */

import type { Member } from "../member.ts";
import type { PlaybackClock } from "../playback/playback-clock.ts";
import type { PlaybackQueue } from "../playback/playback-queue.ts";
import type { Utterance } from "../playback/utterance.ts";
import type { SessionDeps } from "../ports.ts";
import type { Session } from "../session.ts";
import { LeftTexts, type OpenTexts } from "./left-texts.ts";
import { warnOfEnd } from "./text-warnings.ts";

/** A speaker that was told to pause goes on when this share of its credit is used up. */
const RESUME_SHARE = 1 / 4;

export interface SpeakersOptions {
  readonly session: Session;
  readonly deps: SessionDeps;
  readonly queue: PlaybackQueue;
  readonly clock: PlaybackClock;
  /** Who is there. */
  readonly members: ReadonlySet<Member>;
}

export class Speakers {
  readonly #options: SpeakersOptions;
  /** Who to tell when there is room for more text, by utterance. */
  readonly #paused = new WeakMap<Utterance, Member>();
  readonly #leftTexts: LeftTexts;

  constructor(options: SpeakersOptions) {
    this.#options = options;
    this.#leftTexts = new LeftTexts({
      clock: options.deps.clock,
      waitMs: options.deps.tuning.graceMs,
      maxSpeakers: options.deps.tuning.limits.listeners,
      onGivenUp: (ids) => {
        this.#endTexts(ids);
        options.clock.advance();
      },
    });
  }

  /** Text came: its speaker is asked to pause where too much waits. */
  noteText(member: Member, utterance: Utterance): void {
    const { deps } = this.#options;
    const limit_chars = deps.tuning.creditChars;
    if (utterance.isPaused) this.tellRoom(utterance);
    if (utterance.isPaused || utterance.pendingChars <= limit_chars) return;
    utterance.isPaused = true;
    deps.counters.textPauses += 1;
    this.#tellPaused(member, utterance);
  }

  /** Some of an utterance's text was asked for: its speaker goes on where it was asked to pause. */
  tellRoom(utterance: Utterance): void {
    if (!utterance.isPaused) return;
    const { session, deps } = this.#options;
    const limit_chars = deps.tuning.creditChars;
    if (utterance.pendingChars > limit_chars * RESUME_SHARE) return;
    utterance.isPaused = false;
    const speaker = this.#paused.get(utterance);
    this.#paused.delete(utterance);
    if (speaker === undefined || !this.#options.members.has(speaker)) return;
    speaker.send({
      type: "resumed",
      ...session.base(),
      utterance_id: utterance.id,
      pending_chars: utterance.pendingChars,
      limit_chars,
    });
  }

  /** A text that nothing came of for long is taken to be complete: whoever was sending it is told what is missing in it. */
  idled(utterance: Utterance): void {
    for (const member of this.#options.members) {
      if (member.openIds.delete(utterance.id)) warnOfEnd(member, utterance);
    }
  }

  /** The utterance is over: nobody waits any more for room in it. */
  forget(utterance: Utterance): void {
    utterance.isPaused = false;
    this.#paused.delete(utterance);
  }

  /** A connection has gone; `isFinal`: it will not come back, and its open texts end. */
  left(member: Member, isFinal: boolean): void {
    if (member.settings.role === "listener") return;
    const { deps, session, members } = this.#options;
    const isOpen = (id: string): boolean => session.utterances.findAny(id)?.isTextEnded === false;
    // Another connection goes on with it already: this one's end was seen late.
    const isHeld = (id: string): boolean => [...members].some((other) => other.openIds.has(id));
    const ids = new Set([...member.openIds].filter((id) => isOpen(id) && !isHeld(id)));
    if (isFinal || deps.tuning.graceMs === 0) this.#endTexts(ids);
    else this.#leftTexts.keep(namesOf(member), { ids, currentId: member.currentId });
  }

  /** A connection has come back: it goes on with what it left. `listenerId`: who it was; null where it does not say. */
  cameBack(member: Member, listenerId: string | null): void {
    if (member.settings.role === "listener") return;
    const texts =
      this.#leftTexts.takeBack(listenerId) ??
      (listenerId === null ? null : this.#takeFromHalfOpen(member, listenerId));
    member.formerId = listenerId;
    for (const id of texts?.ids ?? []) {
      const utterance = this.#options.session.utterances.findAny(id);
      if (utterance !== undefined) this.#takeTextOver(member, utterance);
    }
    member.currentId = texts?.currentId ?? null;
  }

  /** A text goes on with this connection's, whoever began it. */
  noteSpeaker(member: Member, utterance: Utterance): void {
    if (this.#leftTexts.takeOne(utterance.id)) this.#takeTextOver(member, utterance);
    else member.openIds.add(utterance.id);
  }

  /** Idempotent. */
  close(): void {
    this.#leftTexts.close();
  }

  /** After a change of networks the connection before may seem to be there for long: its texts are the new one's. */
  #takeFromHalfOpen(member: Member, listenerId: string): OpenTexts | null {
    for (const before of this.#options.members) {
      if (before === member || !namesOf(before).includes(listenerId)) continue;
      const texts = { ids: new Set(before.openIds), currentId: before.currentId };
      before.openIds.clear();
      before.currentId = null;
      return texts;
    }
    return null;
  }

  /** What was accepted is not lost: text that the speaker will not go on with is spoken as it stands. */
  #endTexts(ids: Iterable<string>): void {
    const { session, queue } = this.#options;
    for (const id of ids) session.utterances.findAny(id)?.endText(session.nowMs());
    queue.openNext();
  }

  /** It is told again that it is to pause: what the connection before was told may not have come. */
  #takeTextOver(member: Member, utterance: Utterance): void {
    member.openIds.add(utterance.id);
    if (utterance.isPaused) this.#tellPaused(member, utterance);
  }

  #tellPaused(member: Member, utterance: Utterance): void {
    const { session, deps } = this.#options;
    const limit_chars = deps.tuning.creditChars;
    this.#paused.set(utterance, member);
    member.send({
      type: "paused",
      ...session.base(),
      utterance_id: utterance.id,
      pending_chars: utterance.pendingChars,
      limit_chars,
    });
  }
}

/** It may come back under the name it came back with: its own may not have reached it before it was cut off again. */
function namesOf({ id, formerId }: Member): string[] {
  return formerId === null ? [id] : [id, formerId];
}
