/** The key or token of a request, wherever clients can put one: a header, a WebSocket subprotocol or the URL. */
import type { HttpRequest } from "uWebSockets.js";
import type { Presented } from "../access/access.ts";
import { AccessError } from "../access/access-error.ts";
import type { MessageCredentials } from "../protocol/elevenlabs/message-json.ts";

/** The subprotocol of the native socket. */
const SUBPROTOCOL = "voicewire.v1";
/**
 * Browsers can't set headers on a WebSocket: the token is a second subprotocol that they offer. It is never answered with
 * (RFC 6455 section 4.2.2 has the server choose one).
 */
const TOKEN_SUBPROTOCOL = "voicewire.token.";
/** The vendor's SDKs say `Token`. */
const SCHEMES: ReadonlySet<string> = new Set(["bearer", "token"]);
const BEARER: ReadonlySet<string> = new Set(["bearer"]);
const BASIC: ReadonlySet<string> = new Set(["basic"]);
/** The native name, and the vendor's. */
const URL_NAMES = ["token", "single_use_token", "authorization"] as const;
/** A name may be written with percent signs. */
const MARKS_OF_NAMES = ["token", "authorization", "%"] as const;

/** Only before the request's handler returns. Throws AccessError where two places have different ones. */
export function presentedBy(req: HttpRequest): Presented {
  const inHeader = [keyOf(req.getHeader("authorization")), req.getHeader("xi-api-key").trim()];
  const inSubprotocol = offeredBy(req)
    .filter((name) => name.startsWith(TOKEN_SUBPROTOCOL))
    .map((name) => name.slice(TOKEN_SUBPROTOCOL.length));
  return presentedAt([inHeader, inSubprotocol, tokensIn(req.getQuery() ?? "")], req.getHeader("origin"));
}

/** What a request shows, as whichever surface reads it: where that is refused, it says so. Only before its handler returns. */
export function allPresentedBy(req: HttpRequest): Presented[] {
  const headers = new Map<string, string>();
  req.forEach((name, value) => {
    headers.set(name, value);
  });
  const readings = [
    () => presentedBy(req),
    () => presentedByCarrier({ headers, query: req.getQuery() ?? "" }),
  ];
  const found = new Map<string, Presented>();
  for (const read of readings) {
    try {
      const presented = read();
      if (presented.credential !== "") found.set(presented.credential, presented);
    } catch {
      // Two credentials that differ.
    }
  }
  return [...found.values()];
}

/** What a carrier is set up to be known by. */
interface CarrierHeaders {
  readonly headers: ReadonlyMap<string, string>;
  /** The query of the URL, still encoded, without the question mark. */
  readonly query: string;
}

/** Carriers can be made to send a bearer token, a password, Telnyx's header or a URL. Throws as `presentedBy`. */
export function presentedByCarrier({ headers, query }: CarrierHeaders): Presented {
  const authorization = headers.get("authorization") ?? "";
  const inHeader = [
    schemeValue(authorization, BEARER),
    passwordOf(schemeValue(authorization, BASIC)),
    headers.get("x-telnyx-streaming-auth-token") ?? "",
  ];
  return presentedAt([inHeader, [], tokensIn(query)], headers.get("origin") ?? "");
}

function tokensIn(query: string): string[] {
  if (!mayName(query)) return [];
  const parameters = new URLSearchParams(query);
  return URL_NAMES.flatMap((name) => parameters.getAll(name).map(keyOf));
}

/** `places`: what stands in headers, in subprotocols and in the URL. */
function presentedAt(places: readonly (readonly string[])[], origin: string): Presented {
  const found = places.map((texts) => texts.filter((text) => text !== ""));
  const credential = theOne(found.flat());
  const [headers = [], subprotocols = []] = found;
  const place = headers.length > 0 ? "header" : subprotocols.length > 0 ? "subprotocol" : "url";
  return { credential, place: credential === "" ? "header" : place, origin };
}

/** The key or token that the first message on a vendor's socket brings. Throws as `presentedBy` does. */
export function presentedIn({ keys, authorization }: MessageCredentials, origin: string): Presented {
  return { credential: theOne([...keys, keyOf(authorization)]), place: "message", origin };
}

/** Empty: there is none. */
function theOne(texts: readonly string[]): string {
  const [credential = "", ...others] = new Set(texts.filter((text) => text !== ""));
  if (others.length > 0) throw new AccessError("two_places");
  return credential;
}

/** What an upgrade is answered with: ours where it is offered, else the first; never a token. Empty: none. */
export function answeredSubprotocol(req: HttpRequest): string {
  const names = offeredBy(req).filter((name) => !name.startsWith(TOKEN_SUBPROTOCOL));
  return names.includes(SUBPROTOCOL) ? SUBPROTOCOL : (names[0] ?? "");
}

/** Whether a client shows its token where only those do that can set no headers, and see no status of a refused upgrade. */
export function offersToken(req: HttpRequest): boolean {
  return offeredBy(req).some((name) => name.startsWith(TOKEN_SUBPROTOCOL));
}

/** A query without what opens the door: for what is handed on. */
export function withoutTokens(query: string): string {
  if (!mayName(query)) return query;
  return query
    .split("&")
    .filter((pair) => !URL_NAMES.some((name) => decodedName(pair) === name))
    .join("&");
}

/** Whether a query may have a key or token: most have none. */
function mayName(query: string): boolean {
  const letters = query.toLowerCase();
  return MARKS_OF_NAMES.some((mark) => letters.includes(mark));
}

function decodedName(pair: string): string {
  const [name = ""] = new URLSearchParams(pair).keys();
  return name;
}

function offeredBy(req: HttpRequest): string[] {
  const offered = req.getHeader("sec-websocket-protocol");
  return offered === "" ? [] : offered.split(",").map((name) => name.trim());
}

/**
 * The key or token of an Authorization header, or of a parameter that stands for one; some clients send it alone. No regular expression:
 * see jwt.ts.
 */
function keyOf(authorization: string): string {
  const text = authorization.trim();
  return text.includes(" ") ? schemeValue(text, SCHEMES) : text;
}

/** Empty where the header is of another scheme. */
function schemeValue(authorization: string, schemes: ReadonlySet<string>): string {
  const text = authorization.trim();
  const at = text.indexOf(" ");
  return at > 0 && schemes.has(text.slice(0, at).toLowerCase()) ? text.slice(at + 1).trim() : "";
}

/** The password of Basic credentials (RFC 7617), whatever the name before it. */
function passwordOf(credentials: string): string {
  const text = Buffer.from(credentials, "base64").toString("utf8");
  return text.slice(text.indexOf(":") + 1);
}
