/**
 * The routes of a port, each behind three checks. A request comes from a page that may use the gateway, or from no page. It
 * says once how long its body is: the library takes several Content-Length headers and believes the first, another
 * proxy the last; what is a body to one is a request to the other (RFC 9112 section 6.3). And who sends it may do so: a
 * route can't be mounted without saying what it asks for.
 */
import type {
  HttpRequest,
  HttpResponse,
  us_socket_context_t,
  WebSocket,
  WebSocketBehavior,
} from "uWebSockets.js";
import { AccessError } from "../access/access-error.ts";
import { ANYBODY, type Caller } from "../access/caller.ts";
import { claimAt, type Door, identifyAt } from "../access/door.ts";
import type { Action } from "../access/grants.ts";
import type { OriginRules, RequestSource } from "../access/origin-rules.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { ABNORMAL_CLOSURE } from "../kit/close-codes.ts";
import type { CloseCounts } from "../metrics/close-counts.ts";
import { closingEvent } from "../protocol/events.ts";
import { allPresentedBy, answeredSubprotocol, offersToken, presentedBy } from "./credential.ts";
import { holdRequest } from "./held-request.ts";
import {
  allowReader,
  giveBack,
  noteBody,
  noteErrors,
  noteGiveBack,
  noteHead,
  noteHeaders,
  pathPart,
  Reply,
} from "./http.ts";
import { limitHeaders } from "./limit-headers.ts";
import { requestAddress } from "./request-address.ts";
import type { AppRoutes } from "./tls/route-table.ts";

/** What a route asks of who sends a request. */
type RouteAccess =
  /** Nothing: it says nothing about anybody. */
  | "anybody"
  /** A key or a token, whatever it allows. */
  | "known"
  /** The handler checks credentials that are not the gateway's, or come later than the request. */
  | "own"
  /** One of these actions; `inSession`: in the session that the path names first. */
  | { readonly anyOf: readonly Action[]; readonly inSession: boolean };

export function needs(...anyOf: Action[]): RouteAccess {
  return { anyOf, inSession: false };
}

export function needsInSession(...anyOf: Action[]): RouteAccess {
  return { anyOf, inSession: true };
}

type Handler = (res: HttpResponse, req: HttpRequest, caller: Caller) => void;

/** How a surface words that somebody may not; one that says nothing of it has the native interface's words. */
export interface RefusalShape {
  answer(error: GatewayError): { readonly status: number; readonly body: string };
  /** The message to a socket that was let in only to get it. */
  message?(error: GatewayError): {
    readonly json: string;
    readonly closeCode: number;
    readonly reason: string;
  };
}

/** A socket route: its upgrade handler hears who asks. */
export interface SocketBehavior<T> extends SocketLimits, Pick<WebSocketBehavior<T>, SocketHandler> {
  upgrade(res: HttpResponse, req: HttpRequest, context: us_socket_context_t, caller: Caller): void;
}

type SocketHandler = "open" | "message" | "drain" | "pong" | "close";
type SocketLimits = Pick<
  WebSocketBehavior<unknown>,
  | "maxPayloadLength"
  | "maxBackpressure"
  | "closeOnBackpressureLimit"
  | "idleTimeout"
  | "sendPingsAutomatically"
>;

/** What a route is mounted on. */
export interface Routes {
  get(pattern: string, access: RouteAccess, handler: Handler): void;
  head(pattern: string, access: RouteAccess, handler: Handler): void;
  /** What a Reply answers: HEAD gets its head. */
  getAndHead(pattern: string, access: RouteAccess, handler: Handler): void;
  post(pattern: string, access: RouteAccess, handler: Handler, shape?: RefusalShape): void;
  del(pattern: string, access: RouteAccess, handler: Handler): void;
  options(pattern: string, access: RouteAccess, handler: Handler): void;
  any(pattern: string, access: RouteAccess, handler: Handler): void;
  ws<T>(pattern: string, access: RouteAccess, behavior: SocketBehavior<T>, shape?: RefusalShape): void;
}

type Method = Exclude<keyof Routes, "ws" | "getAndHead">;

/** A route as it was mounted: for the test that asks all of them. */
export interface MountedRoute {
  readonly method: Method | "ws";
  readonly pattern: string;
  readonly access: RouteAccess;
}

export interface CheckedRoutesOptions {
  readonly origins: OriginRules;
  readonly door: Door;
  /** With which codes sockets close. */
  readonly counters?: { readonly closes: CloseCounts };
}

/**
 * What the library keeps for a socket that was let in only to get its refusal: a browser shows its page nothing of a refused
 * upgrade. The library copies the properties, so no class can mark it.
 */
interface RefusedSocket {
  readonly refusal: GatewayError;
}

/** One connection of its caller's is over. Idempotent. */
type Leave = () => void;

interface OpenSocket {
  /** It has closed. `isTooOld`: the gateway has ended it for its age, and its client comes back. */
  closed(): { readonly isTooOld: boolean };
}

interface ShapedRoute extends Omit<MountedRoute, "method"> {
  readonly shape?: RefusalShape | undefined;
}

function isRefused(data: unknown): data is RefusedSocket {
  return typeof data === "object" && data !== null && "refusal" in data;
}

export class CheckedRoutes implements Routes {
  readonly #app: AppRoutes;
  readonly #options: CheckedRoutesOptions;
  readonly #mounted: MountedRoute[] = [];
  /** By what the library keeps for a socket. */
  readonly #open = new WeakMap<object, OpenSocket>();

  constructor(app: AppRoutes, options: CheckedRoutesOptions) {
    this.#app = app;
    this.#options = options;
  }

  get mounted(): readonly MountedRoute[] {
    return this.#mounted;
  }

  get(pattern: string, access: RouteAccess, handler: Handler): void {
    this.#mount("get", { pattern, access }, handler);
  }
  head(pattern: string, access: RouteAccess, handler: Handler): void {
    this.#mount("head", { pattern, access }, handler);
  }
  getAndHead(pattern: string, access: RouteAccess, handler: Handler): void {
    this.get(pattern, access, handler);
    this.head(pattern, access, handler);
  }
  post(pattern: string, access: RouteAccess, handler: Handler, shape?: RefusalShape): void {
    this.#mount("post", { pattern, access, shape }, handler);
  }
  del(pattern: string, access: RouteAccess, handler: Handler): void {
    this.#mount("del", { pattern, access }, handler);
  }
  options(pattern: string, access: RouteAccess, handler: Handler): void {
    this.#mount("options", { pattern, access }, handler);
  }
  any(pattern: string, access: RouteAccess, handler: Handler): void {
    this.#mount("any", { pattern, access }, handler);
  }

  ws<T>(pattern: string, access: RouteAccess, behavior: SocketBehavior<T>, shape?: RefusalShape): void {
    this.#mounted.push({ method: "ws", pattern, access });
    const { upgrade, open, message, drain, pong, close, ...limits } = behavior;
    // From an upgrade to its socket, which the library opens before `upgrade` returns.
    let leaveUpgraded: Leave | null = null;
    this.#app.ws<T | RefusedSocket>(pattern, {
      ...limits,
      upgrade: (res, asked, context) => {
        if (!this.#isSound(res, asked, pattern)) return;
        this.#whenClaimed(res, asked, access, (req, unclaimed) => {
          try {
            const { caller, leave } = this.#admit(res, req, { pattern, access, kind: "ws", unclaimed });
            leaveUpgraded = leave;
            upgrade(res, req, context, caller);
          } catch (thrown) {
            const error = toGatewayError(thrown);
            giveBack(res);
            if (isHeardInSocket(req, error)) upgradeToRefuse(res, req, { context, error });
            else refuse(res, error, shape);
          } finally {
            // Still here: no socket was opened.
            leaveUpgraded?.();
            leaveUpgraded = null;
          }
        });
      },
      open: (socket) => {
        const data = socket.getUserData();
        if (isRefused(data)) {
          sendRefusal(socket, data.refusal, shape);
          return;
        }
        if (isObject(data)) this.#opened(data, socket, leaveUpgraded);
        leaveUpgraded = null;
        open?.(socket as WebSocket<T>);
      },
      message: (socket, ...rest) => {
        if (!isRefused(socket.getUserData())) message?.(socket as WebSocket<T>, ...rest);
      },
      drain: (socket) => {
        if (!isRefused(socket.getUserData())) drain?.(socket as WebSocket<T>);
      },
      pong: (socket, ...rest) => {
        if (!isRefused(socket.getUserData())) pong?.(socket as WebSocket<T>, ...rest);
      },
      close: (socket, ...rest) => {
        this.#options.counters?.closes.count(rest[0]);
        const data = socket.getUserData();
        if (isRefused(data)) return;
        const ended = isObject(data) ? this.#open.get(data)?.closed() : undefined;
        const [code, ...more] = rest;
        // As after a connection that broke.
        close?.(socket as WebSocket<T>, ended?.isTooOld === true ? ABNORMAL_CLOSURE : code, ...more);
      },
    });
  }

  #opened(data: object, socket: WebSocket<unknown>, leave: Leave | null): void {
    let isTooOld = false;
    const closeAge = this.#options.door.ages.begin(({ closeCode, code }) => {
      isTooOld = true;
      socket.end(closeCode, code);
    });
    this.#open.set(data, {
      closed: () => {
        leave?.();
        closeAge();
        return { isTooOld };
      },
    });
  }

  #mount(method: Method, { shape, ...route }: ShapedRoute, handler: Handler): void {
    this.#mounted.push({ method, ...route });
    this.#app[method](route.pattern, (res, asked) => {
      if (asked.getMethod() === "head") noteHead(res);
      if (!this.#isSound(res, asked, route.pattern)) return;
      this.#whenClaimed(res, asked, route.access, (req, unclaimed) => {
        let caller: Caller;
        try {
          ({ caller } = this.#admit(res, req, { ...route, kind: method, unclaimed }));
        } catch (thrown) {
          refuse(res, toGatewayError(thrown), shape);
          return;
        }
        const { door } = this.#options;
        const place = { surface: route.pattern, address: requestAddress(res, req, door.proxyTrust) };
        noteCaller(res, req, { ...place, sessionId: sessionOf(req, route.access), door, caller });
        handler(res, req, caller);
      });
    });
  }

  /**
   * Handles the request: at once, or where it shows a single-use token and there are other nodes, once they know of it.
   * `unclaimed`: why the token is not this node's.
   */
  #whenClaimed(
    res: HttpResponse,
    req: HttpRequest,
    access: RouteAccess,
    handle: (req: HttpRequest, unclaimed: unknown) => void,
  ): void {
    const claim = this.#claim(res, req, access);
    if (claim === null) {
      handle(req, null);
      return;
    }
    const goOn = holdRequest(res, req);
    claim.then(
      (letGo) => {
        try {
          goOn((held) => handle(held, null));
        } finally {
          letGo();
        }
      },
      (thrown: unknown) => goOn((held) => handle(held, thrown)),
    );
  }

  #claim(res: HttpResponse, req: HttpRequest, access: RouteAccess): Promise<() => void> | null {
    const { door } = this.#options;
    if (access === "anybody" || !door.access.isShared) return null;
    const address = requestAddress(res, req, door.proxyTrust);
    for (const presented of allPresentedBy(req)) {
      const claim = claimAt(address, presented, door);
      if (claim !== null) return claim;
    }
    return null;
  }

  /** Whether its length is clear and its page may use the gateway; where not, that is answered, the same way on all surfaces. */
  #isSound(res: HttpResponse, req: HttpRequest, pattern: string): boolean {
    noteErrors(res, (thrown) => this.#options.door.audit.sent(thrown));
    try {
      const repeated = repeatedHeader(req);
      const reader = this.#readerOf(res, req, { pattern, repeated });
      if (reader !== null) allowReader(res, reader);
      return true;
    } catch (thrown) {
      refuse(res, toGatewayError(thrown));
      return false;
    }
  }

  /** The origin that may read the answer; null: there is none. Throws AccessError, host_not_allowed, origin_not_allowed. */
  #readerOf(res: HttpResponse, req: HttpRequest, { pattern, repeated }: Addressed): string | null {
    const { origins, door } = this.#options;
    try {
      if (repeated !== null) throw new AccessError("header_twice", {}, repeated);
      return origins.check(sourceOf(req));
    } catch (thrown) {
      const address = requestAddress(res, req, door.proxyTrust);
      door.audit.refused({ thrown, surface: pattern, address, caller: null });
      throw thrown;
    }
  }

  /** Throws where they may not. */
  #admit(res: HttpResponse, req: HttpRequest, asking: Asking): Admitted {
    const { pattern, access, kind, unclaimed } = asking;
    const { door } = this.#options;
    if (access === "anybody" || (access === "own" && unclaimed === null))
      return { caller: ANYBODY, leave: null };
    const address = requestAddress(res, req, door.proxyTrust);
    const sessionId = sessionOf(req, access);
    let caller: Caller | null = null;
    let leave: Leave | null = null;
    try {
      if (access === "own") throw unclaimed;
      caller = door.access.isOpen ? ANYBODY : identifyAt(address, presentedBy(req), door);
      if (unclaimed !== null) throw unclaimed;
      if (access !== "known") caller.mustAny(access.anyOf, sessionId);
      if (kind === "ws") leave = door.limits.enter(caller, address);
      // HEAD opens nothing: players ask for it before they open what it is about.
      if (kind !== "head") redeemFor(res, caller, door);
      door.audit.admitted(caller, { surface: pattern, address, sessionId });
      return { caller, leave };
    } catch (thrown) {
      leave?.();
      door.audit.refused({ thrown, surface: pattern, address, caller, sessionId });
      throw thrown;
    }
  }
}

/** Who asks, at which route. */
interface Asked {
  readonly door: Door;
  readonly caller: Caller;
  readonly surface: string;
  readonly address: string;
  /** null: it is about no session. */
  readonly sessionId: string | null;
}

/**
 * From now on the request counts for this caller: the bytes of its body, and what its answer says of limits. A route that finds out
 * itself who asks (`own`) says so again. Only before the request's handler returns.
 */
export function noteCaller(
  res: HttpResponse,
  req: HttpRequest,
  { door, caller, surface, address, sessionId }: Asked,
): void {
  const { limits, audit } = door;
  const onRefused = (thrown: unknown): void => audit.refused({ thrown, surface, address, caller, sessionId });
  noteBody(res, limits.body(caller, address, onRefused));
  const path = req.getUrl();
  if (!caller.isAnybody) noteHeaders(res, () => limitHeaders(limits, caller, path));
}

/** Uses a single-use token up, unless its request is refused later. Throws AccessError, rate_limited. */
export function redeemFor(res: HttpResponse, caller: Caller, { access }: Door): void {
  access.redeem(caller);
  if (caller.isSingleUse) noteGiveBack(res, () => access.giveBack(caller));
}

interface Addressed {
  readonly pattern: string;
  /** A header that came twice. */
  readonly repeated: string | null;
}

interface Admitted {
  readonly caller: Caller;
  /** null: it is no socket, or none that counts. */
  readonly leave: Leave | null;
}

interface Asking extends Omit<MountedRoute, "method"> {
  readonly kind: MountedRoute["method"];
  /** Why a single-use token is not this node's; null: there is none, or it is. */
  readonly unclaimed: unknown;
}

/** That the path names, where the route is about one. */
function sessionOf(req: HttpRequest, access: RouteAccess): string | null {
  return typeof access === "object" && access.inSession ? pathPart(req) : null;
}

function isObject(data: unknown): data is object {
  return typeof data === "object" && data !== null;
}

function sourceOf(req: HttpRequest): RequestSource {
  return {
    method: req.getMethod(),
    host: req.getHeader("host"),
    origin: req.getHeader("origin"),
    fetchSite: req.getHeader("sec-fetch-site"),
    fetchMode: req.getHeader("sec-fetch-mode"),
  };
}

/**
 * They say how long a request is, for whom it is and from whom: of two, a proxy in front may believe the other one (RFC 9112
 * sections 3.2 and 6.3). Subprotocols may come in several headers (RFC 6455 section 11.3.4), but the library reads one, and a
 * token may stand in the other.
 */
const ONCE: ReadonlySet<string> = new Set([
  "content-length",
  "host",
  "origin",
  "authorization",
  "xi-api-key",
  "x-telnyx-streaming-auth-token",
  "sec-websocket-protocol",
]);

/** One of these that came twice. Throws invalid_field where that is Content-Length, or where it is empty: the library takes it for none. */
function repeatedHeader(req: HttpRequest): string | null {
  const seen: string[] = [];
  let twice: string | null = null;
  let isLengthOk = true;
  req.forEach((name, value) => {
    if (!ONCE.has(name)) return;
    if (seen.includes(name)) twice = name;
    seen.push(name);
    if (name === "content-length" && (twice === name || value === "")) isLengthOk = false;
  });
  if (isLengthOk) return twice;
  const what = "Header content-length: more than one, or an empty one; expected one number";
  throw new GatewayError("invalid_field", what, { field: "content-length" });
}

/** A client that sees no status, and whose credential is missing, does not hold or allows something else. */
function isHeardInSocket(req: HttpRequest, { code }: GatewayError): boolean {
  if (req.getHeader("sec-websocket-key") === "") return false;
  // A page of an allowed origin, or the client package in Node.
  if (req.getHeader("origin") === "" && !offersToken(req)) return false;
  return code === "unauthorized" || code === "token_expired" || code === "forbidden";
}

function upgradeToRefuse(
  res: HttpResponse,
  req: HttpRequest,
  { context, error }: { readonly context: us_socket_context_t; readonly error: GatewayError },
): void {
  const key = req.getHeader("sec-websocket-key");
  const data: RefusedSocket = { refusal: error };
  res.cork(() => res.upgrade(data, key, answeredSubprotocol(req), "", context));
}

function sendRefusal(socket: WebSocket<unknown>, error: GatewayError, shape?: RefusalShape): void {
  const { json, closeCode, reason } = shape?.message?.(error) ?? nativeMessage(error);
  socket.send(json);
  socket.end(closeCode, reason);
}

function nativeMessage(error: GatewayError) {
  const json = JSON.stringify(closingEvent(error));
  return { json, closeCode: error.closeCode, reason: error.code };
}

function refuse(res: HttpResponse, error: GatewayError, shape?: RefusalShape): void {
  const reply = new Reply(res);
  // A turn later: answered at once, the library would read what follows in the same piece as the next request. While it is
  // owed an answer it cuts the connection instead.
  setImmediate(() => reply.failAndClose(error, shape?.answer(error)));
}
