/** What POST /tokens may ask for: no more than the key has that asks. */
import { z } from "zod";
import { GatewayError } from "../errors.ts";
import type { MintRequest } from "./access.ts";
import { GRANTS, type Grants, wrongField } from "./grants.ts";
import type { Key } from "./keys.ts";
import { widerGrant } from "./narrower.ts";

const MAX_LIFE_SECONDS = 86_400;
const DEFAULT_LIFE_SECONDS = 60;
/** How long the connection of a single-use token lasts, seconds: the token itself ends with its use. */
const SINGLE_USE_CONNECTION_SECONDS = 3600;
/** As long as the vendor's single-use tokens live. */
const VENDOR_LIFE_MS = 900_000;

const REQUEST = z.strictObject({
  subject: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, "expected 1 to 128 visible ASCII characters without a blank")
    .exactOptional(),
  grants: GRANTS,
  expires_in_seconds: z.number().int().min(1).max(MAX_LIFE_SECONDS).exactOptional(),
});

/** `body`: as it came. Throws invalid_field, and forbidden with the grant that the key does not have. */
export function readMintRequest(body: unknown, key: Key): MintRequest {
  const result = REQUEST.safeParse(body);
  if (!result.success) throw invalid(result.error);
  const { subject = key.id, grants, expires_in_seconds: lifeSeconds = DEFAULT_LIFE_SECONDS } = result.data;
  const wider = widerGrant(withinKey(grants, key.grants), key.grants);
  const isOtherTenant = key.tenant !== "" && grants.tenant !== undefined && grants.tenant !== key.tenant;
  const field = isOtherTenant ? "tenant" : wider;
  if (field !== null) {
    throw new GatewayError("forbidden", `Field 'grants.${field}': your key does not allow as much`, {
      field: `grants.${field}`,
    });
  }
  return { subject, grants: withConnection(grants), lifeMs: lifeSeconds * 1000 };
}

/** For one of the vendor's speech sockets, and no session: no name of one has a slash. */
export function vendorSocketToken(key: Key): MintRequest {
  const grants: Grants = { sessions: ["/"], allow: ["speak"], once: true };
  return { subject: key.id, grants: withConnection(grants), lifeMs: VENDOR_LIFE_MS };
}

/** A token has what its key sets and bounds, without saying so. */
function withinKey(grants: Grants, ofKey: Grants): Grants {
  return {
    ...ofKey,
    ...grants,
    connection: { ...ofKey.connection, ...grants.connection },
    speech: { ...ofKey.speech, ...grants.speech },
  };
}

/** The connection of a single-use token outlives it. */
function withConnection(grants: Grants): Grants {
  const { once, seconds, session_until } = grants;
  if (once !== true || seconds !== undefined || session_until !== undefined) return grants;
  return { ...grants, seconds: SINGLE_USE_CONNECTION_SECONDS };
}

function invalid(error: z.ZodError): GatewayError {
  const [issue] = error.issues;
  const field = wrongField(error).join(".");
  const subject = field === "" ? "Body" : `Field '${field.slice(0, 100)}'`;
  const isUnknown = issue?.code === "unrecognized_keys";
  const reason = isUnknown ? "it is not known" : (issue?.message ?? "it has the wrong shape");
  return new GatewayError(
    "invalid_field",
    `${subject} is not valid: ${reason}`,
    field === "" ? {} : { field },
  );
}
