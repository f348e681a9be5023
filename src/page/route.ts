/** The page's address: which session, whether it only listens, and what tests ask for. */

export interface Route {
  readonly session: string;
  readonly isListener: boolean;
  /** `?decoder=wasm`: do without the browser's own Opus decoder. */
  readonly isWasmForced: boolean;
}

export function routeOf(address: URL): Route {
  const query = address.searchParams;
  return {
    session: query.get("session") || randomSession(),
    isListener: query.get("role") === "listener",
    isWasmForced: query.get("decoder") === "wasm",
  };
}

/** Other names may hold what a shell would run. */
const PLAIN_NAME = /^[\w.-]+$/;

/** What makes a token for this page, on the gateway's machine. Whoever made the page's address has chosen the session's name. */
export function tokenCommand({ session, isListener }: Route): string {
  const name = PLAIN_NAME.test(session) && !session.startsWith("-") ? session : "SESSION";
  const allow = isListener ? "listen" : "open,speak,listen,interrupt,proxy";
  return `voicewire token --sessions ${name} --allow ${allow} --for me --expires-in 3600`;
}

const TOKEN_FRAGMENT = "#token=";

/** The token of `#token=...`, which browsers send to nobody; null where there is none. */
export function tokenOf({ hash }: URL): string | null {
  return hash.startsWith(TOKEN_FRAGMENT) ? hash.slice(TOKEN_FRAGMENT.length) || null : null;
}

/** The address that names this session, so that a reload or a bookmark comes back to it; never with a token in it. */
export function sessionAddress(address: URL, session: string): URL {
  const url = new URL(address);
  if (url.hash.startsWith(TOKEN_FRAGMENT)) url.hash = "";
  url.searchParams.set("session", session);
  return url;
}

export function listenerAddress(address: URL, session: string): URL {
  const url = new URL("/", address);
  url.searchParams.set("session", session);
  url.searchParams.set("role", "listener");
  return url;
}

export function speakerAddress(address: URL, session: string): URL {
  const url = new URL("/", address);
  url.searchParams.set("session", session);
  return url;
}

/**
 * Whoever knows the name can hear and speak there, so nobody can guess it: 16 of 32 characters are 80 random bits. Without
 * look-alikes, because people may read it out.
 */
function randomSession(): string {
  const alphabet = "abcdefghijkmnpqrstuvwxyz23456789";
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => alphabet[byte % 32]).join("");
}
