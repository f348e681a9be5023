/**
 * What went wrong below HTTP, as one of our errors: by undici's and Node's error codes, and by how far we had come. The
 * client learns what happened and an id; where the upstream is and what the system said is in the log under that id.
 */
import { type ErrorCode, GatewayError } from "../../errors.ts";
import type { FaultLog } from "./fault-log.ts";

/** `answering`: the response's headers have come. */
export type Progress = "asking" | "answering";

/** Undici's own codes that say that this program is at fault. */
const OWN_FAULTS = ["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED", "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"];
/** What llhttp says when the connection ended inside the message. */
const CUT_SHORT = "Invalid EOF state";

const MESSAGES = {
  upstream_protocol: "The upstream's answer can't be read as HTTP",
  upstream_truncated: "The upstream went away in the middle of its answer: ask again for the rest",
  upstream_unreachable: "The upstream can't be reached: try again later",
  internal: "The gateway could not send the request upstream",
} as const satisfies Partial<Record<ErrorCode, string>>;

/**
 * Parser errors are neither logged nor kept as cause: they carry the bytes they choked on, and those may be the user's
 * text.
 */
export function transportError(
  thrown: Error,
  { faults, progress }: { readonly faults: FaultLog; readonly progress: Progress },
): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const code = codeOf(thrown, progress);
  const isParserError = isFromParser(thrown);
  const id = faults.note("Request to the upstream failed", {
    cause: `${code} ${causeOf(thrown)}`,
    ...(isParserError ? {} : { detail: thrown.message }),
  });
  const hint = `For the operator: error id ${id} in the gateway's log, or run \`voicewire doctor\``;
  return new GatewayError(code, `${MESSAGES[code]}. ${hint}`, isParserError ? {} : { cause: thrown });
}

function codeOf(thrown: Error, progress: Progress): keyof typeof MESSAGES {
  const code = systemCodeOf(thrown);
  const isCutShort = isFromParser(thrown) && thrown.message.includes(CUT_SHORT);
  if ((isFromParser(thrown) && !isCutShort) || code === "UND_ERR_HEADERS_OVERFLOW")
    return "upstream_protocol";
  if (OWN_FAULTS.includes(code) || (code === "" && !isCutShort)) return "internal";
  return progress === "answering" ? "upstream_truncated" : "upstream_unreachable";
}

/** Undici 7.30 means to give parser errors an HPE_ code and gives them none, so they are known by name. */
function isFromParser(thrown: Error): boolean {
  return thrown.name === "HTTPParserError";
}

/** A word for the log: the system's or library's code; llhttp's words are fixed ones, too. */
function causeOf(thrown: Error): string {
  return isFromParser(thrown) ? thrown.message : systemCodeOf(thrown) || thrown.name;
}

function systemCodeOf(thrown: Error): string {
  return "code" in thrown && typeof thrown.code === "string" ? thrown.code : "";
}
