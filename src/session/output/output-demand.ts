/** What all listeners together ask of the session; the same until a delivery group or a rendition comes or goes. */
import type { DeliveryGroup } from "../../delivery/delivery-group.ts";
import type { Rendition } from "../../delivery/rendition.ts";

export interface OutputDemand {
  /** Whether anybody listens in real time. */
  readonly hasRealtime: boolean;
  /** How far ahead of the playhead audio has to be rendered, ms. */
  readonly maxLeadMs: number;
  /** The shortest lead of a listener that is paced; how often the session has to wake follows from it. */
  readonly minLeadMs: number;
  /** The longest frame of any rendition, ms. */
  readonly maxFrameMs: number;
  /** Whether frames of some rendition are encoded on another thread. */
  readonly isEncodedElsewhere: boolean;
}

/** `aheadMs`: how far ahead audio is rendered where all take it as it comes. */
export function demandOf(
  groups: Iterable<DeliveryGroup>,
  renditions: Iterable<Rendition>,
  aheadMs: number,
): OutputDemand {
  let maxLeadMs = 0;
  let minLeadMs = Number.POSITIVE_INFINITY;
  let hasRealtime = false;
  for (const group of groups) {
    if (group.pace === "burst") continue;
    hasRealtime = true;
    maxLeadMs = Math.max(maxLeadMs, group.leadMs);
    minLeadMs = Math.min(minLeadMs, group.leadMs);
  }
  // Where somebody listens in real time nothing is rendered for the others' sake: what happens now would come behind the
  // events of all that.
  if (!hasRealtime) maxLeadMs = aheadMs;
  let maxFrameMs = 0;
  let isEncodedElsewhere = false;
  for (const rendition of renditions) {
    maxFrameMs = Math.max(maxFrameMs, rendition.frameMs);
    isEncodedElsewhere ||= rendition.isEncodedElsewhere;
  }
  return { hasRealtime, maxLeadMs, minLeadMs, maxFrameMs, isEncodedElsewhere };
}
