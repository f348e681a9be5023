/** What ends a vendor socket, as the vendor says it, and what is refused before the upgrade. */
import type { ErrorCode, GatewayError } from "../../errors.ts";
import { POLICY_VIOLATION } from "../../kit/close-codes.ts";

/** An error message and the close that follows it. */
export interface SocketFault {
  /** The vendor's word, e.g. `invalid_api_key`. */
  readonly error: string;
  /** For people; never the user's text. */
  readonly message: string;
  /** WebSocket close code. */
  readonly code: number;
  /** Dialogue only: the offending field. */
  readonly param?: string;
}

/** RFC 6455 section 5.5: a control frame has 125 bytes, two of which are the code. */
const MAX_REASON_BYTES = 123;
/** Of a voice's id, in a message. */
const MAX_VOICE_CHARS = 64;

/** What the upstream said is repeated where it is a word of the vendor's sockets. */
const UPSTREAM_WORDS =
  /\b(quota_exceeded|insufficient_credits|detected_unusual_activity|missing_permissions)\b/;

/** Where nothing better is known. */
const WORDS: Partial<Readonly<Record<ErrorCode, string>>> = {
  malformed_json: "invalid_input_message",
  invalid_field: "invalid_input_message",
  binary_not_allowed: "invalid_input_message",
  message_too_large: "invalid_input_message",
  invalid_text: "invalid_input_message",
  queue_full: "invalid_input_message",
  inbox_full: "invalid_input_message",
  text_too_long: "max_character_limit_exceeded",
  unknown_voice: "voice_id_does_not_exist",
  upstream_unauthorized: "invalid_api_key",
  upstream_forbidden: "unauthorized",
  upstream_not_found: "invalid_input_message",
  upstream_invalid: "invalid_input_message",
  upstream_rate_limited: "system_busy",
  upstream_busy: "system_busy",
  unauthorized: "invalid_api_key",
  token_expired: "invalid_api_key",
  token_revoked: "invalid_api_key",
  forbidden: "unauthorized",
  budget_exhausted: "quota_exceeded",
  rate_limited: "system_busy",
  connection_limit: "system_busy",
};

export function fault(error: string, message: string, param?: string): SocketFault {
  // The vendor closes with this, whatever it was.
  return { error, message, code: POLICY_VIOLATION, ...(param === undefined ? {} : { param }) };
}

/** `voiceIds`: those that were asked for. The upstream's error does not say which of them it has not. */
export function faultOf(error: GatewayError, voiceIds: readonly string[] = []): SocketFault {
  if (error.code === "unknown_voice") return fault("voice_id_does_not_exist", unknownVoice(voiceIds));
  // The hint of the native interface would be a wrong one here.
  if (error.code === "unauthorized") return fault("invalid_api_key", "Invalid API key");
  // The texts of all clients together are too many: this one has done nothing wrong.
  if (error.code === "queue_full" && error.retryAfterMs !== undefined)
    return fault("system_busy", error.message);
  const said = error.code === "upstream_forbidden" ? UPSTREAM_WORDS.exec(error.message)?.[1] : undefined;
  const word = said ?? WORDS[error.code] ?? "internal_error";
  return fault(word === "insufficient_credits" ? "quota_exceeded" : word, error.message, error.field);
}

/** As the vendor words it, where it is one voice. */
function unknownVoice(voiceIds: readonly string[]): string {
  const names = voiceIds.map((id) => id.slice(0, MAX_VOICE_CHARS)).join(", ");
  if (names === "") return "The voice does not exist.";
  return voiceIds.length > 1
    ? `One of these voices does not exist: ${names}`
    : `A voice with voice_id ${names} does not exist.`;
}

/** The reason of a close frame: as much of the message as fits, in whole characters. */
export function closeReason({ message }: SocketFault): string {
  let reason = "";
  let bytes = 0;
  for (const character of message) {
    bytes += Buffer.byteLength(character);
    if (bytes > MAX_REASON_BYTES) break;
    reason += character;
  }
  return reason;
}

export interface HandshakeRefusal {
  readonly status: number;
  /** JSON. */
  readonly body: string;
}

const PARAMETER_CODES: Readonly<Record<string, string>> = {
  model_id: "unsupported_model",
  output_format: "invalid_output_format",
};

/** An error of parseSocketSettings as the answer to the handshake. */
export function handshakeRefusal(error: GatewayError): HandshakeRefusal {
  const code = PARAMETER_CODES[error.field ?? ""] ?? "invalid_parameters";
  const detail = { type: "validation_error", code, message: error.message, status: code };
  return refusalOf(400, { ...detail, ...(error.field === undefined ? {} : { param: error.field }) });
}

/** No credential came, not even with the first message. */
export function missingKey(): SocketFault {
  return fault("authentication_required", "No API key came with the handshake or the first message");
}

/** Who may not connect, or not so, as the vendor answers requests and handshakes. */
export function accessRefusal(error: GatewayError): HandshakeRefusal {
  const { httpStatus } = error;
  const { error: code, message, param } = faultOf(error);
  const type = TYPES[httpStatus] ?? "validation_error";
  return refusalOf(httpStatus, {
    type,
    code,
    message,
    status: code,
    ...(param === undefined ? {} : { param }),
  });
}

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "authorization_error",
  429: "rate_limit_error",
};

/** There is no such socket. */
export function unknownPath(): HandshakeRefusal {
  const message = "There is no WebSocket at this path.";
  return refusalOf(403, { type: "authorization_error", code: "forbidden", message, status: "forbidden" });
}

/** As many sockets as may be are open. */
export function tooManySockets(): HandshakeRefusal {
  const message = "As many sockets are open as may be.";
  return refusalOf(429, { type: "rate_limit_error", code: "system_busy", message, status: "system_busy" });
}

function refusalOf(status: number, detail: object): HandshakeRefusal {
  return { status, body: JSON.stringify({ detail }) };
}
