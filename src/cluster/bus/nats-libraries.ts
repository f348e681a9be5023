/** The libraries of NATS, loaded when a bus is opened and not before, and what their errors mean here. */
import { GatewayError } from "../../errors.ts";
import { LOST_RETRY_MS } from "./bus.ts";

export interface NatsLibraries {
  readonly transport: typeof import("@nats-io/transport-node");
  readonly jetstream: typeof import("@nats-io/jetstream");
  readonly kv: typeof import("@nats-io/kv");
}

export async function loadNatsLibraries(): Promise<NatsLibraries> {
  const [transport, jetstream, kv] = await Promise.all([
    import("@nats-io/transport-node"),
    import("@nats-io/jetstream"),
    import("@nats-io/kv"),
  ]);
  return { transport, jetstream, kv };
}

/** Codes of JetStream's own errors. */
const WRONG_LAST_SEQUENCE = [10071, 10164];
const SEQUENCE_NOT_FOUND = [10043, 10057];

/** Another write came first. */
export function isConflict(error: unknown, { jetstream }: NatsLibraries): boolean {
  if (!(error instanceof jetstream.JetStreamApiError)) return false;
  return [...WRONG_LAST_SEQUENCE, ...SEQUENCE_NOT_FOUND].includes(error.code);
}

export function isBucketMissing(error: unknown, { jetstream }: NatsLibraries): boolean {
  return (
    error instanceof jetstream.JetStreamApiError && error.code === jetstream.JetStreamApiCodes.StreamNotFound
  );
}

/** `what` names the call; it holds no credentials. */
export function toBusError(error: unknown, what: string, libraries: NatsLibraries): GatewayError {
  if (error instanceof GatewayError) return error;
  const { errors } = libraries.transport;
  const { JetStreamApiError } = libraries.jetstream;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const failed = (code: "bus_lost" | "bus_timeout" | "bus_no_answer" | "bus_refused", message: string) => {
    const retry = code === "bus_lost" || code === "bus_timeout" ? { retryAfterMs: LOST_RETRY_MS } : {};
    return new GatewayError(code, `${what}: ${message}`, { cause: error, ...retry });
  };
  if (error instanceof errors.TimeoutError || cause instanceof errors.TimeoutError) {
    return failed("bus_timeout", "no answer in time");
  }
  if (error instanceof errors.RequestError && error.isNoResponders())
    return failed("bus_no_answer", "nobody answers");
  if (cause instanceof errors.AuthorizationError || cause instanceof errors.UserAuthenticationExpiredError) {
    return failed(
      "bus_refused",
      "nats-server refuses the credentials: check user and password, token or credentials file",
    );
  }
  if (cause instanceof errors.PermissionViolationError) {
    return failed(
      "bus_refused",
      `nats-server does not permit ${cause.operation} on ${cause.subject}: allow it to this user`,
    );
  }
  if (error instanceof Error && error.name === "JetStreamNotEnabled") {
    return failed("bus_refused", "nats-server runs without JetStream: start it with -js");
  }
  if (error instanceof JetStreamApiError) {
    return failed("bus_lost", `the store says "${error.message}": see that most of its servers run`);
  }
  if (isTlsError(cause)) {
    return failed("bus_refused", "no TLS that both take: check tls:// or nats://, the name and the CA file");
  }
  return failed("bus_lost", "no connection to nats-server: see that it runs and that the address is right");
}

function isTlsError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return (
    /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO_)/.test(code) || /\btls\b/i.test(error.message)
  );
}
