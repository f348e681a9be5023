/**
 * The routes of a port, each behind two checks. A request comes from a page that may use the gateway, or from no page. And it
 * says once how long its body is: the library takes several Content-Length headers and believes the first, another
 * proxy the last; what is a body to one is a request to the other (RFC 9112 section 6.3).
 */
import type { HttpRequest, HttpResponse, TemplatedApp, WebSocketBehavior } from "uWebSockets.js";
import type { OriginRules, RequestSource } from "../access/origin-rules.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import { allowReader, Reply } from "./http.ts";

type Handler = (res: HttpResponse, req: HttpRequest) => void;

/** What a route is mounted on. */
export interface Routes {
  get(pattern: string, handler: Handler): unknown;
  head(pattern: string, handler: Handler): unknown;
  post(pattern: string, handler: Handler): unknown;
  del(pattern: string, handler: Handler): unknown;
  options(pattern: string, handler: Handler): unknown;
  any(pattern: string, handler: Handler): unknown;
  ws<T>(pattern: string, behavior: WebSocketBehavior<T>): unknown;
}

export class CheckedRoutes implements Routes {
  readonly #app: TemplatedApp;
  readonly #origins: OriginRules;

  constructor(app: TemplatedApp, origins: OriginRules) {
    this.#app = app;
    this.#origins = origins;
  }

  get(pattern: string, handler: Handler): void {
    this.#app.get(pattern, this.#checked(handler));
  }
  head(pattern: string, handler: Handler): void {
    this.#app.head(pattern, this.#checked(handler));
  }
  post(pattern: string, handler: Handler): void {
    this.#app.post(pattern, this.#checked(handler));
  }
  del(pattern: string, handler: Handler): void {
    this.#app.del(pattern, this.#checked(handler));
  }
  options(pattern: string, handler: Handler): void {
    this.#app.options(pattern, this.#checked(handler));
  }
  any(pattern: string, handler: Handler): void {
    this.#app.any(pattern, this.#checked(handler));
  }

  ws<T>(pattern: string, behavior: WebSocketBehavior<T>): void {
    const { upgrade } = behavior;
    // The library's own would upgrade unchecked.
    if (upgrade === undefined) throw new Error(`Socket route ${pattern}: no upgrade handler, expected one`);
    this.#app.ws<T>(pattern, {
      ...behavior,
      upgrade: (res, req, context) => {
        if (this.#isTaken(res, req)) upgrade(res, req, context);
      },
    });
  }

  #checked(handler: Handler): Handler {
    return (res, req) => {
      if (this.#isTaken(res, req)) handler(res, req);
    };
  }

  /** False: the request is answered already. */
  #isTaken(res: HttpResponse, req: HttpRequest): boolean {
    try {
      checkLength(req);
      const reader = this.#origins.check(sourceOf(req));
      if (reader !== null) allowReader(res, reader);
      return true;
    } catch (thrown) {
      refuse(res, toGatewayError(thrown), req.getMethod() === "head");
      return false;
    }
  }
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

/** At most one Content-Length, and not an empty one, which the library takes for none. Throws invalid_field. */
function checkLength(req: HttpRequest): void {
  let isOk = true;
  let count = 0;
  req.forEach((name, value) => {
    if (name !== "content-length") return;
    count += 1;
    isOk = count === 1 && value !== "";
  });
  if (isOk) return;
  const what = "Header content-length: more than one, or an empty one; expected one number";
  throw new GatewayError("invalid_field", what, { field: "content-length" });
}

function refuse(res: HttpResponse, error: GatewayError, isHead: boolean): void {
  const reply = new Reply(res, "same-origin");
  // A turn later: answered at once, the library would read what follows in the same piece as the next request. While it is
  // owed an answer it cuts the connection instead.
  setImmediate(() => reply.failAndClose(error, { isHead }));
}
