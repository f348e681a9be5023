/**
 * How a request gives the upstream the text around it, so that intonation goes on across segments. The rules are
 * those of the models: the expressive ones refuse all of it; request ids win over text, at most three,
 * not with zero retention.
 */

import type { ErrorCode, GatewayError } from "../errors.ts";
import { isExpressiveModel } from "../protocol/elevenlabs/models.ts";
import type { SynthesisRequest } from "./types.ts";

/** What a request says of its neighbours: all that the model takes; text only, where ids were refused; or nothing. */
export type StitchBy = "ids" | "text" | "nothing";

export interface StitchFacts {
  /** Empty = the upstream's own. */
  readonly modelId: string;
  /** false = zero retention: the upstream forgets request ids. */
  readonly isLogged: boolean;
  /** Text before and behind, as it is spoken. */
  readonly before: string;
  readonly behind: string;
  /** Ids of earlier requests, oldest first. */
  readonly requestIds: readonly string[];
}

export interface Stitch {
  readonly previousText?: string;
  readonly nextText?: string;
  readonly previousRequestIds?: readonly string[];
}

/** As much as helps with intonation, UTF-16 code units. */
const MAX_PREVIOUS_CHARS = 200;
const MAX_NEXT_CHARS = 100;
/** Most that the upstream takes. */
const MAX_REQUEST_IDS = 3;
/** Ids that are too old or not known are refused with 400, 404 or 422, and some upstreams fail with 500 over them. */
const REFUSALS_OF_IDS: ReadonlySet<ErrorCode> = new Set([
  "upstream_invalid",
  "upstream_not_found",
  "upstream_failed",
]);
const TEXT_FIELDS: ReadonlySet<string> = new Set(["previous_text", "next_text"]);

export function stitch(facts: StitchFacts, by: StitchBy = "ids"): Stitch {
  if (by === "nothing" || isExpressiveModel(facts.modelId)) return {};
  const previousText = tail(facts.before.trimEnd(), MAX_PREVIOUS_CHARS).trimStart();
  const nextText = head(facts.behind.trimStart(), MAX_NEXT_CHARS).trimEnd();
  const requestIds = by === "ids" && facts.isLogged ? facts.requestIds.slice(-MAX_REQUEST_IDS) : [];
  return {
    ...(requestIds.length > 0
      ? { previousRequestIds: requestIds }
      : previousText === ""
        ? {}
        : { previousText }),
    ...(nextText === "" ? {} : { nextText }),
  };
}

/**
 * How to ask once more for what the upstream refused, where it may have been for what the request said of its neighbours;
 * null where that can't be the reason. Each answer says less than the request did, so that asking comes to an end.
 */
export function stitchInstead(request: SynthesisRequest, { code, field }: GatewayError): StitchBy | null {
  if (request.kind !== "speech") return null;
  const { previousRequestIds, previousText, nextText } = request;
  if (previousText !== undefined || nextText !== undefined) {
    if (field !== undefined && TEXT_FIELDS.has(field)) return "nothing";
  }
  return previousRequestIds !== undefined && REFUSALS_OF_IDS.has(code) ? "text" : null;
}

/** The last words within `max`; where no space is near to cut at (Chinese, Japanese, Thai), the last characters. */
function tail(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(-max);
  const space = cut.search(/\s/);
  return space < 0 || space > max / 4 ? cut.replace(/^[\udc00-\udfff]/, "") : cut.slice(space);
}

/** The first words within `max`. */
function head(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(0, max);
  const space = cut.search(/\s\S*$/);
  return space < (max * 3) / 4 ? cut.replace(/[\ud800-\udbff]$/, "") : cut.slice(0, space);
}
