/** Request stitching: which texts a request says that others speak before and after its own. */

import { ApiError } from "../../api-error.ts";
import type { Neighbours } from "../../voice/plan/stitched-text.ts";
import type { Model } from "./models-catalogue.ts";

/** How long a request can be stitched to, seconds. */
export const MAX_STITCHED_AGE_S = 7200;
/** Code points of each text around a dialogue. */
export const MAX_DIALOGUE_NEIGHBOUR = 100;

export interface AskedNeighbours {
  readonly isLogged: boolean;
  readonly previousText: string | undefined;
  /** A dialogue's `future_text`. */
  readonly nextText: string | undefined;
  /** In the order in which they are spoken. */
  readonly previousRequestIds: readonly string[];
  readonly nextRequestIds: readonly string[];
}

export interface NeighbourRules {
  readonly isDialogue: boolean;
  readonly model: Model;
  /** What the request with that id said; undefined where it is not known, or no longer. */
  readonly findText: (requestId: string) => string | undefined;
}

/** Throws the 400 of texts that the model refuses, that are too long, and of ids that are not known. Ids win over texts. */
export function acceptNeighbours(asked: AskedNeighbours, rules: NeighbourRules): Neighbours {
  const { previousText = "", nextText = "", previousRequestIds, nextRequestIds, isLogged } = asked;
  requireText("previous_text", previousText, rules);
  requireText(rules.isDialogue ? "future_text" : "next_text", nextText, rules);
  for (const [param, ids] of [
    ["previous_request_ids", previousRequestIds],
    ["next_request_ids", nextRequestIds],
  ] as const) {
    if (isLogged || ids.length === 0) continue;
    const message = `${param} can not be used with enable_logging=false: request stitching is not available then.`;
    throw ApiError.unfit("invalid_parameters", message, { param });
  }
  const before = previousRequestIds.map((id) => requireKnown("previous_request_ids", id, rules));
  const after = nextRequestIds.map((id) => requireKnown("next_request_ids", id, rules));
  return {
    before: before.length === 0 ? previousText : before.join(" "),
    after: after.length === 0 ? nextText : after.join(" "),
  };
}

function requireText(param: string, text: string, { isDialogue, model }: NeighbourRules): void {
  if (text === "") return;
  if (!isDialogue && model.isExpressive) {
    const message = `Providing previous_text or next_text is not yet supported with the '${model.id}' model.`;
    throw ApiError.unfit("unsupported_model", message, { param });
  }
  if (isDialogue && [...text].length > MAX_DIALOGUE_NEIGHBOUR) {
    const message = `${param} can have at most ${MAX_DIALOGUE_NEIGHBOUR} characters in a dialogue.`;
    throw ApiError.unfit("invalid_parameters", message, { param });
  }
}

function requireKnown(param: string, id: string, { findText }: NeighbourRules): string {
  const text = findText(id);
  if (text !== undefined) return text;
  const message =
    `No speech with the request id '${id.slice(0, 64)}' is known, ` +
    "expected one of the last two hours that the history has.";
  throw ApiError.unfit("invalid_parameters", message, { param });
}
