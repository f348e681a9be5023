/**
 * Every error voicewire can report, as one table: what it means, the WebSocket close code when it ends a
 * connection, the HTTP status when it answers a request, and whether the same call may work later.
 * docs/protocol.md prints the same table; test/errors.test.ts holds the two together.
 *
 * The vendor's sockets and jambonz's close with the code that their own interface has: protocol/elevenlabs/socket-faults.ts,
 * vendor-sockets/jambonz-tts.ts. Codes of RFC 6455 have names in kit/close-codes.ts.
 */

interface ErrorRow {
  /** What happened, in the words of docs/protocol.md. */
  readonly meaning: string;
  /** WebSocket close code when this error ends the connection (RFC 6455 section 7.4; 4000-4999 are ours). */
  readonly closeCode: number;
  /** HTTP status when this error answers a request. */
  readonly httpStatus: number;
  /** Whether the very same call may succeed later. */
  readonly isRetryable: boolean;
}

function row(meaning: string, closeCode: number, httpStatus: number, isRetryable: boolean): ErrorRow {
  return { meaning, closeCode, httpStatus, isRetryable };
}

export const ERRORS = {
  // What the client sent.
  malformed_json: row("A text message is not one JSON object", 4400, 400, false),
  unknown_type: row("The message type is not one this protocol knows", 4400, 400, false),
  invalid_field: row("A field is missing, has the wrong type or is out of its range", 4400, 400, false),
  binary_not_allowed: row("A binary message came where only text messages are due", 4400, 400, false),
  message_too_large: row("A message is larger than the limit stated in hello", 4413, 413, false),
  text_too_long: row("The text of an utterance is over the limit stated in hello", 4413, 413, false),
  invalid_text: row("The text has lone surrogates or control characters", 4400, 400, false),
  unknown_format: row("The audio format is not one that listeners can ask for", 4400, 400, false),
  unknown_event: row("An event name in events= is not known", 4400, 400, false),
  invalid_path: row(
    "The path has dot or empty segments, encoded slashes, control characters or broken percent encoding",
    4400,
    400,
    false,
  ),
  not_found: row("There is nothing at this path", 4404, 404, false),
  unknown_session: row("No session has this id", 4404, 404, true),
  unknown_utterance: row("No queued or speaking utterance has this id", 4404, 404, false),
  unknown_call: row("The session has no phone call with this id", 4404, 404, false),
  utterance_id_taken: row("Another utterance of this session already has this id", 4409, 409, false),
  text_after_end: row("Text came for an utterance whose text has ended", 4409, 409, false),
  text_missing: row(
    "Text before the offset of a token has not come: send from what was received",
    4409,
    409,
    false,
  ),
  utterance_over: row(
    "Text came for an utterance that was interrupted, cancelled or failed",
    4409,
    409,
    false,
  ),
  nothing_to_interrupt: row("There is nothing speaking or queued to interrupt", 4409, 409, false),
  nothing_to_cancel: row("No utterance waits that could be cancelled", 4409, 409, false),
  nothing_to_resume: row("No utterance was interrupted that could go on", 4409, 409, false),
  resume_expired: row(
    "The interrupted utterance can't go on: its audio is gone; speak the unheard_text of its receipt",
    4409,
    410,
    false,
  ),
  not_a_speaker: row("The connection joined as a listener and may not speak", 4403, 403, false),
  host_not_allowed: row("The Host header names no host of this gateway", 4403, 421, false),
  origin_not_allowed: row(
    "A web page of an origin that is not listed may not use the gateway",
    4403,
    403,
    false,
  ),
  // Who may do what.
  unauthorized: row("No key or token came, or one that does not hold", 4401, 401, false),
  token_expired: row("The token has expired or was used: come back with a new one", 4401, 401, false),
  token_revoked: row("The key or token was withdrawn while its connection stood", 4403, 403, false),
  forbidden: row("The key or token does not allow this", 4403, 403, false),
  budget_exhausted: row("The token's characters are spoken", 4403, 402, false),
  rate_limited: row(
    "More comes than the key, tenant, token or address may send; see retry-after",
    4429,
    429,
    true,
  ),
  connection_limit: row(
    "The key, tenant, token or address has as many connections as it may",
    4429,
    429,
    true,
  ),
  // What a carrier sent.
  carrier_protocol: row("A carrier's message is not what its interface allows", 1008, 400, false),
  carrier_unauthorized: row("A carrier's connection shows no valid token", 1008, 401, false),
  carrier_signature: row("A carrier's connection is not signed as it has to be", 1008, 403, false),
  // What is full.
  queue_full: row(
    "The session's queue of utterances is full, or what all sessions may hold of texts",
    4429,
    429,
    true,
  ),
  not_prepared: row("Nothing is prepared under this id: it expired, failed, or never was", 4404, 404, false),
  sounds_full: row(
    "Sounds and prepared speech take as much memory as they may (sounds-mb), or are too many",
    4429,
    429,
    true,
  ),
  session_limit: row(
    "The gateway, or the key, tenant, token or address, holds as many sessions as it may",
    4429,
    503,
    true,
  ),
  listener_limit: row("The session holds as many listeners as it may", 4429, 503, true),
  memory_limit: row(
    "What all clients have sent and is not handled is as much as the gateway may hold",
    4429,
    503,
    true,
  ),
  upload_limit: row("The client's address has as many uploads under way as it may", 4429, 429, true),
  too_many_refusals: row(
    "The connection goes on sending what is refused: more than 5000 messages in a second",
    4429,
    429,
    true,
  ),
  inbox_full: row(
    "The connection sends faster than it is handled: more waits than the limit stated in hello",
    4429,
    429,
    true,
  ),
  slow_consumer: row(
    "The listener reads too slowly: events that it needs are gone, or its socket is full",
    4408,
    503,
    true,
  ),
  // What the upstream did.
  unknown_voice: row("The upstream knows no voice with this id", 4404, 404, false),
  upstream_unreachable: row("The upstream can't be reached", 4502, 502, true),
  upstream_timeout: row("The upstream did not answer or fell silent within its deadline", 4504, 504, true),
  upstream_unauthorized: row("The upstream refused the key (401)", 4502, 502, false),
  upstream_forbidden: row(
    "The upstream does not allow this with this key or plan (402, 403)",
    4502,
    502,
    false,
  ),
  upstream_not_found: row("The upstream does not know what was asked for (404)", 4404, 404, false),
  upstream_invalid: row("The upstream refused the request as invalid (400, 422)", 4400, 400, false),
  upstream_rate_limited: row("The upstream is at its concurrency or rate limit (429)", 4429, 429, true),
  upstream_failed: row("The upstream failed (5xx)", 4502, 502, true),
  upstream_protocol: row("The upstream sent something that its interface does not allow", 4502, 502, true),
  upstream_truncated: row("The upstream ended before the speech was complete", 4502, 502, true),
  upstream_not_speech: row(
    "The upstream answers with what can't be spoken: a web page, a text, or sound of another kind",
    4502,
    502,
    false,
  ),
  upstream_audio_rate: row(
    "The upstream's audio is at another sample rate than it says: too fast or too slow",
    4502,
    502,
    false,
  ),
  upstream_busy: row("As many upstream requests wait as the gateway allows", 4429, 503, true),
  // What the bus between the nodes of a cluster did.
  bus_lost: row("The bus between the nodes, or its store, can't be reached", 4502, 503, true),
  bus_no_answer: row("No node answers for what was asked over the bus", 4502, 503, true),
  bus_timeout: row(
    "The node that was asked over the bus did not answer within its deadline",
    4504,
    504,
    true,
  ),
  bus_full: row("More waits to be sent over the bus than the gateway keeps", 4429, 503, true),
  node_version: row("The session's node speaks another version of the bus than this one", 4502, 503, true),
  bus_too_large: row("A message is larger than the bus takes", 4413, 413, false),
  // What the gateway itself does.
  encoder_failed: row("An audio encoder or decoder failed", 4500, 500, true),
  draining: row("The gateway is shutting down and takes nothing new", 1001, 503, true),
  connection_age: row("The connection is as old as it may be: connect again", 1001, 503, true),
  session_closed: row("The session was closed", 1000, 410, false),
  internal: row("A fault inside the gateway", 4500, 500, true),
  // What stops a start.
  invalid_config: row("A setting has a value outside its range", 1000, 500, false),
  port_in_use: row("The port is taken by another program", 1000, 500, false),
  bus_refused: row("The bus refused the gateway: credentials, permissions or version", 1000, 500, false),
  node_name_taken: row("Another living node of the cluster has this node's name", 1000, 500, false),
  voice_package_missing: row("The optional voice package is not installed", 1000, 503, false),
  voice_engine_missing: row(
    "The optional package that speaks voice models is not installed",
    1000,
    503,
    false,
  ),
  voice_model_incomplete: row("The folder of a voice model lacks a file", 1000, 500, false),
  voice_model_broken: row("A voice model can't be loaded", 1000, 500, false),
  // What can't be replayed.
  recording_unreadable: row("A recording was edited, or is none of voicewire", 1000, 400, false),
  recording_version: row("A recording has a form that this version does not read", 1000, 400, false),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text);
}

interface ErrorFacts {
  /** The offending field, as the client named it. */
  readonly field?: string;
  /** How long to wait before trying again, in milliseconds. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** The one error class of the project: a row of the table, a message for people, and what is known besides. */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly retryAfterMs: number | undefined;

  /** `message` says what failed, what is the case and what was expected; never the user's text. */
  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = "GatewayError";
    this.code = code;
    this.field = facts.field;
    this.retryAfterMs = facts.retryAfterMs;
  }

  get isRetryable(): boolean {
    return ERRORS[this.code].isRetryable;
  }
  get closeCode(): number {
    return ERRORS[this.code].closeCode;
  }
  get httpStatus(): number {
    return ERRORS[this.code].httpStatus;
  }
}

/** Any thrown value as a GatewayError: ours as it is, anything else as `internal` with its cause kept. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new GatewayError("internal", `Internal fault: ${message}`, { cause: thrown });
}
