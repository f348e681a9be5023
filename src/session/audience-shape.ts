/** What an audience asks of the session as a whole; the same until a lane or a rendition comes or goes. */
import type { Lane } from "../fanout/lane.ts";
import type { Rendition } from "../fanout/rendition.ts";

export interface AudienceShape {
  /** Whether anybody listens in real time. */
  readonly hasRealtime: boolean;
  /** How far ahead of the playhead audio has to be made, ms. */
  readonly maxLeadMs: number;
  /** The shortest lead of a listener that is paced; how often the session has to wake follows from it. */
  readonly minLeadMs: number;
  /** The longest frame of any rendition, ms. */
  readonly maxFrameMs: number;
  /** Whether frames of some rendition are encoded on another thread. */
  readonly isEncodedElsewhere: boolean;
}

/** `aheadMs`: how far ahead audio is made for those that take it as it comes. */
export function shapeOf(
  lanes: Iterable<Lane>,
  renditions: Iterable<Rendition>,
  aheadMs: number,
): AudienceShape {
  let maxLeadMs = 0;
  let minLeadMs = Number.POSITIVE_INFINITY;
  let hasRealtime = false;
  for (const lane of lanes) {
    const isBurst = lane.pace === "burst";
    maxLeadMs = Math.max(maxLeadMs, isBurst ? aheadMs : lane.leadMs);
    if (isBurst) continue;
    hasRealtime = true;
    minLeadMs = Math.min(minLeadMs, lane.leadMs);
  }
  let maxFrameMs = 0;
  let isEncodedElsewhere = false;
  for (const rendition of renditions) {
    maxFrameMs = Math.max(maxFrameMs, rendition.frameMs);
    isEncodedElsewhere ||= rendition.isEncodedElsewhere;
  }
  return { hasRealtime, maxLeadMs, minLeadMs, maxFrameMs, isEncodedElsewhere };
}
