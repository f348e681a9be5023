/** What went wrong below HTTP, as one of our errors: by undici's and Node's error codes, and by how far we had come. */
import { GatewayError, toGatewayError } from "../errors.ts";

/** `answering`: the response's headers have come. */
export type Progress = "asking" | "answering";

/** Undici's own codes that say that this program is at fault. */
const OWN_FAULTS = ["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED", "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"];
/** What llhttp says when the connection ended inside the message. */
const CUT_SHORT = "Invalid EOF state";

/**
 * `origin` is named in the message. Parser errors are not kept as cause: they carry the bytes they choked on, and those
 * may be the user's text.
 */
export function transportError(
  thrown: Error,
  { origin, progress }: { origin: string; progress: Progress },
): GatewayError {
  // Undici 7.30 means to give parser errors an HPE_ code and gives them none, so they are told by name and message.
  const isParserError = thrown.name === "HTTPParserError";
  const code = "code" in thrown && typeof thrown.code === "string" ? thrown.code : "";
  const isCutShort = isParserError && thrown.message.includes(CUT_SHORT);
  if ((isParserError && !isCutShort) || code === "UND_ERR_HEADERS_OVERFLOW") {
    return new GatewayError("upstream_protocol", `The upstream's answer can't be read: ${thrown.message}`);
  }
  if (thrown instanceof GatewayError || OWN_FAULTS.includes(code) || (code === "" && !isCutShort)) {
    return toGatewayError(thrown);
  }
  const facts = isParserError ? {} : { cause: thrown };
  const fact = isCutShort ? CUT_SHORT : code;
  if (progress === "answering") {
    const what = `The upstream went away in the middle of its answer (${fact}), expected the rest of the speech`;
    return new GatewayError("upstream_truncated", what, facts);
  }
  const what = `The upstream can't be reached: ${fact} at ${origin}, expected an answer`;
  return new GatewayError("upstream_unreachable", what, facts);
}
