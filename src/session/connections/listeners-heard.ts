/** Where the listeners are: by their own word where they said so lately, else by what they were sent. */
import { TICKS_PER_MS } from "../../timing/ticks.ts";
import type { DeliveredRange } from "../output/delivered-range.ts";
import type { HeardPlace } from "../receipts.ts";
import type { Moment, Participant } from "./participant.ts";

/** What a player rounds to and the way of its word to us, ms. */
const ACK_BOUND_MS = 40;

export interface ListenersHeard {
  /** Of the listener that is furthest behind. */
  readonly place: HeardPlace;
  /** Of each that acknowledged, by its id. */
  readonly listeners: readonly { readonly listenerId: string; readonly place: HeardPlace }[];
}

export interface ListenerFacts {
  readonly participants: Iterable<Participant>;
  readonly nowMs: number;
  /** Where a listener without delay is. */
  readonly playheadTicks: number;
  /** Whether the audio ran dry: the playhead stands still. */
  readonly isStill: boolean;
  /** How far frames were sent (OutputRouter.delivered): nobody has heard more. */
  readonly delivered: DeliveredRange;
  /** The shortest lead of a paced listener, ms; infinite without one. */
  readonly minLeadMs: number;
}

export function whereHeard(facts: ListenerFacts): ListenersHeard {
  const { delivered } = facts;
  const listeners: ListenersHeard["listeners"][number][] = [];
  let isAnySilent = false;
  for (const participant of facts.participants) {
    const ack = participant.acknowledged(facts);
    if (ack === null) isAnySilent ||= participant.isListener && participant.settings.format !== "none";
    else {
      const ticks = Math.min(ack.ticks, participant.sentTicks(delivered.mostTicks), delivered.mostTicks);
      listeners.push({
        listenerId: participant.id,
        place: { ticks, source: ack.source, boundMs: ACK_BOUND_MS },
      });
    }
  }
  const estimate = estimateOf(facts);
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

/** Of listeners that say nothing. */
function estimateOf({ delivered, playheadTicks, minLeadMs }: ListenerFacts): HeardPlace {
  const leadMs = Number.isFinite(minLeadMs) ? minLeadMs : 0;
  // A listener starts to play at the first frame at the earliest and when its lead has come at the latest.
  const boundMs = leadMs + ACK_BOUND_MS;
  // Behind a stall the playhead is where the frames should be that are sent next.
  return { ticks: Math.min(playheadTicks, delivered.leastTicks), source: "estimate", boundMs };
}

/** How far behind the playhead the listener plays that is furthest behind by its own word; 0 where none has ever said. */
export function furthestBehind(participants: Iterable<Participant>, moment: Moment): number {
  let behindTicks = 0;
  for (const participant of participants)
    behindTicks = Math.max(behindTicks, participant.behindTicks(moment));
  return behindTicks;
}

export function ticksOfMs(ms: number): number {
  return Math.round(ms * TICKS_PER_MS);
}
