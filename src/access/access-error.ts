/**
 * Why a credential does not hold. The client hears one of three things: come with a credential, come with a new one, or you may
 * not do this. The reason stands in the audit log, where it helps the operator and nobody who guesses.
 */
import { type ErrorCode, GatewayError } from "../errors.ts";

interface Reason {
  readonly code: Extract<ErrorCode, "unauthorized" | "token_expired" | "forbidden" | "invalid_field">;
  readonly message: string;
}

const NO_CREDENTIAL =
  "No valid key or token: send Authorization: Bearer KEY, or the subprotocols voicewire.v1 and voicewire.token.TOKEN";

function unauthorized(message = NO_CREDENTIAL): Reason {
  return { code: "unauthorized", message };
}

const REASONS = {
  no_credential: unauthorized(),
  malformed: unauthorized(),
  token_too_long: unauthorized(),
  unknown_key: unauthorized(),
  key_expired: unauthorized(),
  wrong_algorithm: unauthorized(),
  bad_signature: unauthorized(),
  wrong_audience: unauthorized(),
  bad_claims: unauthorized(),
  unknown_grant: unauthorized(),
  lives_too_long: unauthorized(),
  revoked: unauthorized(),
  not_yet_valid: unauthorized("The token is not valid yet: compare the clocks of the two machines"),
  expired: { code: "token_expired", message: "The token has expired: come back with a new one" },
  used: { code: "token_expired", message: "The single-use token has been used: come back with a new one" },
  not_single_use: unauthorized(
    "A token in the URL has to be a single-use one (once: true), since URLs stand in logs and histories",
  ),
  two_places: {
    code: "invalid_field",
    message: "Two different credentials came with one request: send one, in one place",
  },
  header_twice: { code: "invalid_field", message: "The header came twice, expected it once" },
  wrong_origin: { code: "forbidden", message: "The token is not for web pages of this origin" },
} as const satisfies Record<string, Reason>;

type AccessReason = keyof typeof REASONS;

/** What somebody sends who tries keys and tokens: nothing that a key of the file has made. */
const GUESSES: ReadonlySet<AccessReason> = new Set([
  "malformed",
  "token_too_long",
  "unknown_key",
  "wrong_algorithm",
  "bad_signature",
]);

export function isGuess(thrown: unknown): boolean {
  return thrown instanceof AccessError && GUESSES.has(thrown.reason);
}

/** What the audit log says of a credential beside the reason. Only of one that a key of the file has made. */
export interface CredentialFacts {
  readonly key?: string;
  readonly subject?: string;
  readonly token?: string;
  /** The claim that is wrong, down to the grant: `vw.allow.0`. */
  readonly claim?: string;
}

export class AccessError extends GatewayError {
  readonly reason: AccessReason;
  readonly facts: CredentialFacts;

  /** `field`: the header that an `invalid_field` is about. */
  constructor(reason: AccessReason, facts: CredentialFacts = {}, field = "authorization") {
    const { code, message } = REASONS[reason];
    super(code, message, code === "invalid_field" ? { field } : {});
    this.reason = reason;
    this.facts = facts;
  }
}

/** Throws what the check does, with these facts where the credential does not hold. */
export function naming<T>(facts: () => CredentialFacts, check: () => T): T {
  try {
    return check();
  } catch (thrown) {
    if (thrown instanceof AccessError) throw new AccessError(thrown.reason, { ...facts(), ...thrown.facts });
    throw thrown;
  }
}

/** The credential holds, but not for this. */
export function forbidden(message: string): GatewayError {
  return new GatewayError("forbidden", message);
}
