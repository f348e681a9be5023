/**
 * The routes of a port, each behind one check: a request says once how long its body is. The library takes several
 * Content-Length headers and believes the first, another proxy the last; what is a body to one is a request to the
 * other (RFC 9112 section 6.3).
 */
import type { HttpRequest, HttpResponse, TemplatedApp, WebSocketBehavior } from "uWebSockets.js";
import { GatewayError } from "../errors.ts";
import { Reply } from "./http.ts";

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

  constructor(app: TemplatedApp) {
    this.#app = app;
  }

  get(pattern: string, handler: Handler): void {
    this.#app.get(pattern, checked(handler));
  }
  head(pattern: string, handler: Handler): void {
    this.#app.head(pattern, checked(handler));
  }
  post(pattern: string, handler: Handler): void {
    this.#app.post(pattern, checked(handler));
  }
  del(pattern: string, handler: Handler): void {
    this.#app.del(pattern, checked(handler));
  }
  options(pattern: string, handler: Handler): void {
    this.#app.options(pattern, checked(handler));
  }
  any(pattern: string, handler: Handler): void {
    this.#app.any(pattern, checked(handler));
  }

  ws<T>(pattern: string, behavior: WebSocketBehavior<T>): void {
    const { upgrade } = behavior;
    // The library's own would upgrade unchecked.
    if (upgrade === undefined) throw new Error(`Socket route ${pattern}: no upgrade handler, expected one`);
    this.#app.ws<T>(pattern, {
      ...behavior,
      upgrade: (res, req, context) => {
        if (hasClearLength(req)) return upgrade(res, req, context);
        refuse(res);
      },
    });
  }
}

function checked(handler: Handler): Handler {
  return (res, req) => {
    if (hasClearLength(req)) handler(res, req);
    else refuse(res);
  };
}

/** At most one Content-Length, and not an empty one, which the library takes for none. */
function hasClearLength(req: HttpRequest): boolean {
  let isOk = true;
  let count = 0;
  req.forEach((name, value) => {
    if (name !== "content-length") return;
    count += 1;
    isOk = count === 1 && value !== "";
  });
  return isOk;
}

function refuse(res: HttpResponse): void {
  const reply = new Reply(res, "same-origin");
  const what = "Header content-length: more than one, or an empty one; expected one number";
  const error = new GatewayError("invalid_field", what, { field: "content-length" });
  // A turn later: answered at once, the library would read what follows in the same piece as the next request. While it is
  // owed an answer it cuts the connection instead.
  setImmediate(() => reply.failAndClose(error));
}
