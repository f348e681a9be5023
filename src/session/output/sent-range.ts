/** How far on the timeline delivery groups were sent their frames. */
import type { DeliveryGroup } from "../../delivery/delivery-group.ts";
import type { Rendition } from "../../delivery/rendition.ts";

export interface SentRange {
  /** How far the group is that is furthest behind, and the one that is furthest ahead. */
  readonly leastTicks: number;
  readonly mostTicks: number;
}

/** null where no group has frames, or none whose rendition `isMeant`. */
export function sentRangeOf(
  groups: Iterable<DeliveryGroup>,
  isMeant: (rendition: Rendition) => boolean = () => true,
): SentRange | null {
  let leastTicks = Number.POSITIVE_INFINITY;
  let mostTicks = 0;
  for (const { rendition, frame } of groups) {
    if (rendition === null || !isMeant(rendition)) continue;
    const ticks = rendition.startTicksOf(frame);
    leastTicks = Math.min(leastTicks, ticks);
    mostTicks = Math.max(mostTicks, ticks);
  }
  return leastTicks === Number.POSITIVE_INFINITY ? null : { leastTicks, mostTicks };
}

/** Behind the last frame of a rendition that anybody was sent: by its groups, or, up to `leftTicks`, to those who have gone. */
export function sentIndexOf(
  rendition: Rendition,
  groups: Iterable<DeliveryGroup>,
  leftTicks: number,
): number {
  let sentIndex = rendition.indexAt(leftTicks);
  for (const group of groups) if (group.rendition === rendition) sentIndex = Math.max(sentIndex, group.frame);
  return sentIndex;
}
