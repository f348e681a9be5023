/** What requests for a session's audio and captions over HTTP have in common: who asks is a listener like any other. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { forbidden } from "../access/access-error.ts";
import type { Caller } from "../access/caller.ts";
import type { Door } from "../access/door.ts";
import type { LiveCluster } from "../cluster/cluster.ts";
import type { Listener } from "../delivery/listener.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Joining } from "../session/connections/connection-registry.ts";
import type { Participant } from "../session/connections/participant.ts";
import { type ParsedSettings, parseSettings, type SettingsDefaults } from "../session/listener-settings.ts";
import { enterSession, type SessionPlace } from "../session/place.ts";
import type { Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import { endWithoutBody, pathPart, writeHeaders } from "./http.ts";
import { requestAddress } from "./request-address.ts";
import type { ResponseTerms } from "./response-lease.ts";
import { checkSettings, queryOf } from "./sockets/live-access.ts";
import { audited } from "./speech-access.ts";

/** What is read of a request before its callback returns. */
export interface LiveCall {
  readonly sessionId: string;
  /** With what the caller's key and token set. */
  readonly query: URLSearchParams;
  readonly caller: Caller;
  readonly address: string;
  /** As the audit log names it. */
  readonly surface: string;
}

/** What such a request is answered with. */
export interface LiveDeps {
  readonly sessions: Sessions;
  readonly door: Door;
  /** The nodes that sessions may be at; null: this one is alone. */
  readonly cluster: LiveCluster | null;
}

/** Who asks, at which door, and what for. */
export interface LiveAsker extends Pick<LiveCall, "caller" | "surface"> {
  readonly door: Door;
}

export function liveCallOf(
  res: HttpResponse,
  req: HttpRequest,
  { caller, door, surface }: LiveAsker,
): LiveCall {
  const sessionId = pathPart(req);
  const query = queryOf(req.getQuery() ?? "", caller, sessionId);
  return { sessionId, query, caller, address: requestAddress(res, req, door.proxyTrust), surface };
}

/**
 * What the session is joined with: `own` settings of the surface, and the query's `keys`, which mean the same as on a
 * socket. Unknown keys are passed over: players and pages add their own. Throws invalid_field with the key.
 */
export function parseJoining(
  query: URLSearchParams,
  { own, keys }: { readonly own: Readonly<Record<string, string>>; readonly keys: readonly string[] },
  defaults: SettingsDefaults,
): ParsedSettings {
  const socketQuery = new URLSearchParams({ role: "listener", ...own });
  for (const key of keys) {
    const value = query.get(key);
    if (value !== null) socketQuery.set(key, value);
  }
  return parseSettings(socketQuery, defaults);
}

/** One more of the caller's connections. Gives what ends it (idempotent). Throws connection_limit, rate_limited. */
export function enter(call: LiveCall, door: Door): () => void {
  return audited({ ...call, door }, () => door.limits.enter(call.caller, call.address));
}

/** Throws invalid_field. */
export function flagOf(query: URLSearchParams, key: string, fallback: boolean): boolean {
  const value = query.get(key);
  if (value === null) return fallback;
  if (value === "true" || value === "false") return value === "true";
  throw invalidQuery(key, value, "true or false");
}

export function invalidQuery(field: string, value: string, expected: string): GatewayError {
  const got = JSON.stringify(value.slice(0, 40));
  return new GatewayError("invalid_field", `Query ${field} is ${got}, expected ${expected}`, { field });
}

/** See enterSession. Rejects with forbidden, too. */
export async function enterFor(
  call: LiveCall,
  joining: ParsedSettings,
  { cluster, door }: LiveDeps,
  enter: (place: SessionPlace) => void,
): Promise<void> {
  audited({ ...call, door }, () => checkJoining(call, joining));
  const { sessionId } = call;
  await enterSession(cluster, { sessionId, mayOpen: mayWait(call, joining), mayMove: true }, enter);
}

/**
 * Throws forbidden, session_limit, and unknown_session unless somebody has opened it or the listener would wait and may open
 * it.
 */
export function sessionFor(call: LiveCall, joining: ParsedSettings, { sessions, door }: LiveDeps): Session {
  const { sessionId, caller, address } = call;
  return audited({ ...call, door }, () => {
    checkJoining(call, joining);
    if (!mayWait(call, joining)) return sessions.get(sessionId);
    return sessions.open(sessionId, () => door.limits.openSession(caller, address));
  });
}

function mayWait({ caller, sessionId }: LiveCall, joining: ParsedSettings): boolean {
  return joining.mayWait && caller.may("open", sessionId);
}

/** A file has the format of its name, which may be another than the token sets. Throws forbidden. */
function checkJoining({ caller, sessionId }: LiveCall, { settings }: ParsedSettings): void {
  checkSettings(caller, sessionId, settings);
  const { format: set = settings.format } = caller.connectionSettings;
  if (settings.format !== "none" && set !== settings.format)
    throw forbidden(`Your token sets the format ${set}`);
}

/** A response lasts for as long as its client likes, but not longer than it may join, or than any connection may. */
export function termsOf(call: LiveCall, joining: ParsedSettings, { door }: LiveDeps): ResponseTerms {
  const mustStay = (caller: Caller): void => checkJoining({ ...call, caller }, joining);
  return { door, caller: call.caller, mustStay, isEndless: true };
}

/** Throws what joining throws, and session_closed where the session ends the listener at once. */
export function joinSession(
  session: Session,
  listener: Listener,
  { joining, isClosed }: { readonly joining: Joining; readonly isClosed: () => boolean },
): Participant {
  const participant = session.join(listener, joining);
  if (!isClosed()) return participant;
  session.leave(participant);
  throw new GatewayError("session_closed", `Session ended: ${session.id}`);
}

/** The head of what GET would answer, whose request `read` checks: nobody joins and no session is opened. */
export function answerHead(
  res: HttpResponse,
  { call, ...deps }: LiveDeps & { readonly call: LiveCall },
  read: () => { readonly joining: ParsedSettings; readonly headers: Readonly<Record<string, string>> },
): void {
  let isAborted = false;
  res.onAborted(() => {
    isAborted = true;
  });
  const write = (status: number, headers: Readonly<Record<string, string>>): void => {
    if (isAborted) return;
    res.cork(() => {
      res.writeStatus(String(status));
      writeHeaders(res, headers);
      endWithoutBody(res, null);
    });
  };
  headersFor(call, deps, read).then(
    (headers) => write(200, headers),
    (thrown: unknown) => write(toGatewayError(thrown).httpStatus, { "content-type": "application/json" }),
  );
}

async function headersFor(
  call: LiveCall,
  { sessions, cluster, door }: LiveDeps,
  read: Parameters<typeof answerHead>[2],
): Promise<Readonly<Record<string, string>>> {
  const { joining, headers } = read();
  audited({ ...call, door }, () => checkJoining(call, joining));
  const { sessionId } = call;
  if (mayWait(call, joining)) return headers;
  await enterSession(cluster, { sessionId, mayOpen: false, mayMove: false }, (place) => {
    if (place === "here") sessions.get(sessionId);
  });
  return headers;
}
