/** What it takes to reach nats-server: addresses, who we are, TLS. Nothing of it is ever logged but host and port. */
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "@nats-io/transport-node";
import { GatewayError } from "../../errors.ts";
import type { NatsLibraries } from "./nats-libraries.ts";

export interface NatsAccess {
  /**
   * `nats://host:4222` or `tls://host:4222`, several with commas. `user:password@` or `token@` in the first counts for all.
   * Every server is listed, or a name that resolves to all: what the servers say of one another is not used.
   */
  readonly url: string;
  /** A file of credentials (JWT and seed), read again at each connection. */
  readonly credentialsFile?: string;
  /** PEM files. */
  readonly tlsCaFile?: string;
  readonly tlsCertFile?: string;
  readonly tlsKeyFile?: string;
}

export interface NatsServers {
  /** host:port */
  readonly addresses: readonly string[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly token: string | undefined;
  readonly isTls: boolean;
}

const DEFAULT_PORT = 4222;
const CONNECT_TIMEOUT_MS = 3000;
/** A server that hangs is noticed when the third is due: nothing else would, as it keeps its connections open. */
const PING_INTERVAL_MS = 1000;
const MAX_UNANSWERED_PINGS = 2;

export function parseNatsUrl(text: string): NatsServers {
  const urls = text.split(",").map((part) => parseOne(part.trim()));
  const [first] = urls;
  if (first === undefined) throw badUrl();
  const [user, password] = [decoded(first.username), decoded(first.password)];
  return {
    addresses: urls.map((url) => `${url.hostname}:${url.port === "" ? DEFAULT_PORT : url.port}`),
    user: password === "" ? undefined : user,
    password: password === "" ? undefined : password,
    token: password === "" && user !== "" ? user : undefined,
    isTls: first.protocol === "tls:",
  };
}

function parseOne(text: string): URL {
  const url = URL.parse(text.includes("://") ? text : `nats://${text}`);
  if (url === null || !["nats:", "tls:"].includes(url.protocol) || url.hostname === "") throw badUrl();
  if (!["", "/"].includes(url.pathname) || url.search !== "" || url.hash !== "") throw badUrl();
  return url;
}

/** The text itself may hold a password. */
function badUrl(): GatewayError {
  return new GatewayError(
    "invalid_config",
    "The cluster's URL is not nats://[user:password@]host[:port][,host[:port]]",
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new GatewayError("invalid_config", "A % in the cluster's URL is not followed by two digits", {
      cause,
    });
  }
}

export function connectionOptions(
  access: NatsAccess,
  servers: NatsServers,
  { transport }: NatsLibraries,
): ConnectionOptions {
  const { user, password, token } = servers;
  const { credentialsFile, tlsCaFile, tlsCertFile, tlsKeyFile } = access;
  const tls = {
    ...(tlsCaFile !== undefined && { caFile: tlsCaFile }),
    ...(tlsCertFile !== undefined && { certFile: tlsCertFile }),
    ...(tlsKeyFile !== undefined && { keyFile: tlsKeyFile }),
  };
  return {
    servers: [...servers.addresses],
    // The bus itself replaces a connection that is lost: nothing is sent later that was published before, and the library's own
    // way waits by the wall clock, for an hour where that goes back by one.
    reconnect: false,
    timeout: CONNECT_TIMEOUT_MS,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: MAX_UNANSWERED_PINGS,
    noAsyncTraces: true,
    ignoreClusterUpdates: true,
    ...(user !== undefined && password !== undefined && { user, pass: password }),
    ...(token !== undefined && { token }),
    ...(credentialsFile !== undefined && {
      authenticator: transport.credsAuthenticator(readCredentials(credentialsFile)),
    }),
    ...((servers.isTls || Object.keys(tls).length > 0) && { tls }),
  };
}

function readCredentials(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new GatewayError("invalid_config", `Can't read the credentials of the bus: ${path}`, { cause });
  }
}
