/** Exit codes, and which error leads to which. docs/configuration.md and `voicewire --help` name the same ones. */
import { VoicewireError } from "../client/client-error.ts";
import { GatewayError, toGatewayError } from "../errors.ts";

export const EXIT = {
  ok: 0,
  other: 1,
  usage: 2,
  portInUse: 3,
  upstream: 4,
  /** 128 + SIGINT, as shells expect it. */
  interrupted: 130,
} as const;

const BY_CODE: Readonly<Record<string, number>> = {
  invalid_config: EXIT.usage,
  invalid_field: EXIT.usage,
  invalid_text: EXIT.usage,
  text_too_long: EXIT.usage,
  port_in_use: EXIT.portInUse,
  voice_package_missing: EXIT.upstream,
  voice_engine_missing: EXIT.upstream,
  voice_model_incomplete: EXIT.usage,
  voice_model_broken: EXIT.usage,
  recording_unreadable: EXIT.usage,
  recording_version: EXIT.usage,
  unknown_voice: EXIT.upstream,
  unauthorized: EXIT.upstream,
  token_expired: EXIT.upstream,
  token_revoked: EXIT.upstream,
  forbidden: EXIT.upstream,
  draining: EXIT.upstream,
  bus_lost: EXIT.upstream,
  bus_timeout: EXIT.upstream,
  bus_refused: EXIT.upstream,
  node_name_taken: EXIT.usage,
  // The client's own: no gateway, or none any more.
  connect_failed: EXIT.upstream,
  connect_timeout: EXIT.upstream,
  connection_lost: EXIT.upstream,
  not_connected: EXIT.upstream,
};

/** The exit code for whatever a command threw. */
export function exitCodeOf(thrown: unknown): number {
  const code = thrown instanceof VoicewireError ? thrown.code : toGatewayError(thrown).code;
  return BY_CODE[code] ?? (code.startsWith("upstream_") ? EXIT.upstream : EXIT.other);
}

/** What a command threw, as a person reads it, with the code by which docs/protocol.md and docs/service.md explain it. */
export function messageWithCode(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const hasCode = thrown instanceof VoicewireError || thrown instanceof GatewayError;
  return hasCode ? `${thrown.message} (${thrown.code})` : thrown.message;
}

/** A mistake in how the command was called; `field` is the flag or argument. */
export function usageError(message: string, field?: string): GatewayError {
  return new GatewayError("invalid_config", message, field === undefined ? {} : { field });
}
