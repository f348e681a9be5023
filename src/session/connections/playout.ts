/** Where the listeners are: by their own word where they said so lately, else by what they were sent. */
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { OutputRouter } from "../output/output-router.ts";
import type { SentRange } from "../output/sent-range.ts";
import type { PlaybackClock } from "../playback/playback-clock.ts";
import type { PlaybackQueue } from "../playback/playback-queue.ts";
import type { HeardAt } from "../receipts.ts";
import type { SessionDeps } from "../session-deps.ts";
import type { Moment, Participant } from "./participant.ts";

/** What a player rounds to and the way of its word to us, ms. */
const ACK_BOUND_MS = 40;

export interface ListenersHeard {
  /** The place furthest back, of those in lockstep and of those that have acknowledged. */
  readonly place: HeardAt;
  /** Where each listener stands that acknowledged. */
  readonly listeners: readonly { readonly listenerId: string; readonly place: HeardAt }[];
}

export interface PlayoutOptions {
  readonly participants: Iterable<Participant>;
  readonly deps: SessionDeps;
  readonly output: OutputRouter;
  readonly queue: PlaybackQueue;
  readonly clock: PlaybackClock;
}

export class Playout {
  readonly #options: PlayoutOptions;

  constructor(options: PlayoutOptions) {
    this.#options = options;
  }

  /** Where the listener is that is furthest behind, as far as that is known. One that gets all at once may be anywhere. */
  get heardTicks(): number {
    return this.#options.output.demand.hasRealtime ? this.heard().place.ticks : 0;
  }

  /** How far behind the playhead the listener plays that is furthest behind by its own word; 0 where none has ever said. */
  get behindTicks(): number {
    const moment = this.#moment;
    let behindTicks = 0;
    for (const participant of this.#options.participants)
      behindTicks = Math.max(behindTicks, participant.behindTicks(moment));
    return behindTicks;
  }

  heard(): ListenersHeard {
    const { participants, output, queue } = this.#options;
    const moment = this.#moment;
    const sent = output.sentRange(queue.writeTicks);
    const listeners: ListenersHeard["listeners"][number][] = [];
    let isAnySilent = false;
    for (const participant of participants) {
      const ack = participant.acknowledged(moment);
      if (ack === null) isAnySilent ||= participant.isListener && participant.settings.format !== "none";
      else {
        // Nobody has heard more than was sent.
        const ticks = Math.min(ack.ticks, participant.sentTicks(sent.mostTicks), sent.mostTicks);
        const place = { ticks, source: ack.source, boundMs: ACK_BOUND_MS };
        listeners.push({ listenerId: participant.id, place });
      }
    }
    const estimate = this.#estimate(sent, moment);
    const [first] = listeners;
    if (first === undefined) return { place: estimate, listeners };
    const place = listeners.reduce(
      (least, { place: other }) => (other.ticks < least.ticks ? other : least),
      first.place,
    );
    // Who says nothing hears no more than the clock lets it: captions that are read ahead are not the sound of a call.
    const isAhead = isAnySilent && place.ticks > estimate.ticks + ACK_BOUND_MS * TICKS_PER_MS;
    return { place: isAhead ? estimate : place, listeners };
  }

  get #moment(): Moment {
    const { clock, queue, deps } = this.#options;
    const { playheadTicks } = clock;
    const isStill = playheadTicks >= queue.writeTicks;
    return { nowMs: deps.clock.nowMs(), playheadTicks, isStill };
  }

  /** Where listeners stand that acknowledge nothing. */
  #estimate(sent: SentRange, { playheadTicks }: Moment): HeardAt {
    const { minLeadMs } = this.#options.output.demand;
    const leadMs = Number.isFinite(minLeadMs) ? minLeadMs : 0;
    // A listener starts to play at the first frame at the earliest and when its lead has come at the latest.
    const boundMs = leadMs + ACK_BOUND_MS;
    // Behind a stall the playhead is where the frames should be that are sent next.
    return { ticks: Math.min(playheadTicks, sent.leastTicks), source: "estimate", boundMs };
  }
}
