/** How far lanes were sent their frames, on the timeline. */
import type { Lane } from "../fanout/lane.ts";
import type { Rendition } from "../fanout/rendition.ts";

export interface Reach {
  /** Of the lane that is furthest behind, and of the one that is furthest ahead. */
  readonly leastTicks: number;
  readonly mostTicks: number;
}

/** null where no lane has frames, or none whose rendition `isMeant`. */
export function reachOf(
  lanes: Iterable<Lane>,
  isMeant: (rendition: Rendition) => boolean = () => true,
): Reach | null {
  let leastTicks = Number.POSITIVE_INFINITY;
  let mostTicks = 0;
  for (const { rendition, frame } of lanes) {
    if (rendition === null || !isMeant(rendition)) continue;
    const ticks = rendition.startTicksOf(frame);
    leastTicks = Math.min(leastTicks, ticks);
    mostTicks = Math.max(mostTicks, ticks);
  }
  return leastTicks === Number.POSITIVE_INFINITY ? null : { leastTicks, mostTicks };
}

/** Behind the last frame of a rendition that anybody was sent: by its lanes, or, up to `leftTicks`, to those who have gone. */
export function sentIndexOf(rendition: Rendition, lanes: Iterable<Lane>, leftTicks: number): number {
  let sentIndex = rendition.indexAt(leftTicks);
  for (const lane of lanes) if (lane.rendition === rendition) sentIndex = Math.max(sentIndex, lane.frame);
  return sentIndex;
}
