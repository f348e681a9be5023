/**
 * The sentence for somebody who may not do something: whose grants lack what, and what they have. Who holds a token does not get
 * to know the grants of its key.
 */

import type { GatewayError } from "../errors.ts";
import { forbidden } from "./access-error.ts";
import { type Action, type Grants, isListed } from "./grants.ts";

/** Whose grants they are: what has to be allowed has to be by each. */
export interface Layer {
  readonly owner: "Your key" | "Your token" | "The key of your token";
  readonly grants: Grants;
}

/** So many entries of a list are named; it may be long. */
const MAX_NAMED = 8;

/** None of these actions is allowed by all layers. `sessionId`: null where it is about no session. */
export function lacksAction(
  layers: readonly Layer[],
  actions: readonly Action[],
  sessionId: string | null,
): GatewayError {
  const what = listed(actions, "or");
  for (const { owner, grants } of layers) {
    const { allow, sessions } = grants;
    if (!actions.some((action) => allow.includes(action))) {
      return lacks(owner, `lacks the grant ${what}`, { has: allow });
    }
    if (sessionId !== null && !isListed(sessions, sessionId)) {
      return lacks(owner, "is not for this session", { has: sessions, verb: "is for" });
    }
  }
  return forbidden(`Your token and its key do not both have the grant ${what}`);
}

/** `has`: the list in which it is missing. */
export function lacksOne(
  { owner }: Layer,
  what: "this voice" | "this model" | "this format" | `the part ${string} of the upstream's interface`,
  has: readonly string[] | undefined,
): GatewayError {
  return lacks(owner, `does not allow ${what}`, { has: has ?? [] });
}

function lacks(
  owner: Layer["owner"],
  what: string,
  { has, verb = "has" }: { readonly has: readonly string[]; readonly verb?: "has" | "is for" },
): GatewayError {
  const isHidden = owner === "The key of your token";
  return forbidden(`${owner} ${what}${isHidden ? "" : `: it ${verb} ${listed(has, "and")}`}`);
}

function listed(names: readonly string[], conjunction: "and" | "or"): string {
  if (names.length === 0) return "none";
  const surplus = names.length - MAX_NAMED;
  const named = surplus > 0 ? [...names.slice(0, MAX_NAMED), `${surplus} more`] : names;
  const last = named.at(-1) ?? "";
  return named.length === 1 ? last : `${named.slice(0, -1).join(", ")} ${conjunction} ${last}`;
}
