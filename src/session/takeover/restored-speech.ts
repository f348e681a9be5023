/**
 * Speech of a session that another node had. Its texts are queued at once, so that their speakers go on with them; they are
 * asked for when the first listener is there, who says how much it has of them.
 */
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { Marks } from "../client-marks.ts";
import type { PlaybackQueue } from "../playback/playback-queue.ts";
import { Utterance, type UtteranceOptions } from "../playback/utterance.ts";
import type { UtteranceCommands } from "../playback/utterance-commands.ts";
import type { HeardUpTo, SavedSession, SavedUtterance } from "../saved-session.ts";
import type { SessionDeps } from "../session-deps.ts";
import { traceOf } from "../utterance-trace.ts";

const SPACE = /\s/u;

export interface RestoredSpeechOptions {
  readonly session: { readonly id: string; readonly epoch: string };
  readonly deps: SessionDeps;
  readonly queue: PlaybackQueue;
  readonly commands: UtteranceCommands;
  readonly marks: Marks;
}

export class RestoredSpeech {
  readonly #options: RestoredSpeechOptions;
  readonly #saved: SavedSession;
  readonly #texts: readonly { readonly saved: SavedUtterance; readonly utterance: Utterance }[];
  #begunMs: number | null = null;

  /** Nobody listens yet. */
  constructor(saved: SavedSession, options: RestoredSpeechOptions) {
    this.#options = options;
    this.#saved = saved;
    const heldIds = new Set(saved.connections.flatMap(({ openIds }) => openIds));
    this.#texts = saved.utterances.map((text) => ({
      saved: text,
      utterance: this.#restore(text, heldIds.has(text.id)),
    }));
  }

  /** Whose connection had this token there. */
  find(token: string, holder: string): SavedSession["connections"][number] | undefined {
    return this.#saved.connections.find((known) => known.token === token && known.holder === holder);
  }

  /** Goes on behind what the first listener has; `sentMs` null: behind what listeners were sent, as far as that is known. */
  begin(sentMs: number | null): void {
    if (this.#begunMs !== null) return;
    const ms = sentMs ?? this.#saved.sentMs;
    this.#begunMs = ms;
    for (const { saved, utterance } of this.#texts) {
      if (utterance.state.kind !== "queued") continue;
      const place = heardAt(saved.heard, ms);
      if (place.end === 0) continue;
      const heardMs = saved.heardMs + Math.max(0, Math.min(ms, place.ms) - (saved.startMs ?? ms));
      const spokenStart = spokenStartOf(utterance, place.end);
      this.#options.queue.continueFrom(utterance, { spokenStart, heardTicks: heardMs * TICKS_PER_MS });
    }
  }

  /** Where a listener goes on that comes behind the first one: at the beginning, but for words that it has heard itself. */
  ticksFor(sentMs: number | null): number {
    const ms = sentMs ?? this.#saved.sentMs;
    let ticks = 0;
    for (const { saved, utterance } of this.#texts) {
      const { end } = heardAt(saved.heard, ms);
      if (end <= heardAt(saved.heard, this.#begunMs ?? ms).end) continue;
      const { spoken, transcript, endTicks } = utterance;
      const next = transcript.characters.find(({ start }) => spoken.clientEnd(start) >= end);
      ticks = Math.max(ticks, next?.startTicks ?? endTicks ?? 0);
    }
    return ticks;
  }

  #restore(saved: SavedUtterance, isHeld: boolean): Utterance {
    const { deps, queue, commands, marks, session } = this.#options;
    const nowMs = deps.clock.nowMs();
    const id = commands.readmit(saved.id);
    const { traceparent } = saved.command;
    const utterance = utteranceOf(saved, {
      id,
      session,
      trace: traceOf(deps, { sessionId: session.id, utteranceId: id, traceparent }),
      acceptedMs: nowMs,
      textDefaults: deps.settings.textDefaults,
      defaultModel: deps.settings.model,
      ownVoices: deps.settings.ownVoices,
      subject: saved.subject ?? undefined,
      holder: saved.holder,
      // A phone call may be back before those who want words.
      isTimed: true,
    });
    // Its speaker had left: what it said is complete.
    if (saved.isEnded || !isHeld) utterance.input.end(nowMs);
    queue.add(utterance);
    for (const name of saved.marks) marks.add(name, { last: utterance, atTicks: 0 });
    return utterance;
  }
}

function utteranceOf({ command, text, half, leftOut }: SavedUtterance, options: UtteranceOptions): Utterance {
  switch (command.type) {
    case "speak":
      return Utterance.ofText(options, { ...command, text });
    case "dialogue":
      return Utterance.ofDialogue(options, command);
    case "text": {
      const utterance = Utterance.ofTokens(options, command);
      utterance.input.append(text, options.acceptedMs);
      utterance.input.holdHalf(half);
      utterance.input.noteLeftOut(leftOut);
      return utterance;
    }
  }
}

/** The last place that was heard by then. */
function heardAt(places: readonly HeardUpTo[], ms: number): HeardUpTo {
  return places.findLast((place) => place.ms <= ms) ?? { end: 0, ms: 0 };
}

/** Where the next word is in the spoken text, when the client's text was heard up to `end`. */
function spokenStartOf({ spoken: text }: Utterance, end: number): number {
  const { spoken } = text;
  let at = text.isSame ? end : 0;
  while (at < spoken.length && text.clientHeardEnd(at) < end) at += 1;
  while (SPACE.test(spoken[at] ?? "")) at += 1;
  return at;
}
