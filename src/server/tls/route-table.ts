/**
 * Routes that are mounted on one app after another: an app has one certificate as long as it lives. What the handlers hold, their
 * limits too, is there once for all apps.
 */
import type { HttpRequest, HttpResponse, WebSocketBehavior } from "uWebSockets.js";
import { hostOfHeader, isLoopback } from "../../access/origin-rules.ts";
import { demandTls } from "../http.ts";

type Handler = (res: HttpResponse, req: HttpRequest) => void;

/** What the gateway uses of an app of the library. */
export interface AppRoutes {
  get(pattern: string, handler: Handler): unknown;
  head(pattern: string, handler: Handler): unknown;
  post(pattern: string, handler: Handler): unknown;
  del(pattern: string, handler: Handler): unknown;
  options(pattern: string, handler: Handler): unknown;
  any(pattern: string, handler: Handler): unknown;
  ws<T>(pattern: string, behavior: WebSocketBehavior<T>): unknown;
}

export class RouteTable implements AppRoutes {
  readonly #mounts: ((app: AppRoutes) => void)[] = [];
  readonly #hstsSeconds: number;

  /** `hstsSeconds`: for HSTS; 0 = it is not said. */
  constructor(hstsSeconds: number) {
    this.#hstsSeconds = hstsSeconds;
  }

  mountOn(app: AppRoutes): void {
    for (const mount of this.#mounts) mount(app);
  }

  get(pattern: string, handler: Handler): void {
    this.#mounts.push((app) => app.get(pattern, this.#overTls(handler)));
  }
  head(pattern: string, handler: Handler): void {
    this.#mounts.push((app) => app.head(pattern, this.#overTls(handler)));
  }
  post(pattern: string, handler: Handler): void {
    this.#mounts.push((app) => app.post(pattern, this.#overTls(handler)));
  }
  del(pattern: string, handler: Handler): void {
    this.#mounts.push((app) => app.del(pattern, this.#overTls(handler)));
  }
  options(pattern: string, handler: Handler): void {
    this.#mounts.push((app) => app.options(pattern, this.#overTls(handler)));
  }
  any(pattern: string, handler: Handler): void {
    this.#mounts.push((app) => app.any(pattern, this.#overTls(handler)));
  }

  ws<T>(pattern: string, behavior: WebSocketBehavior<T>): void {
    const { upgrade } = behavior;
    if (upgrade === undefined) {
      this.#mounts.push((app) => app.ws(pattern, behavior));
      return;
    }
    this.#mounts.push((app) =>
      app.ws<T>(pattern, {
        ...behavior,
        upgrade: (res, req, context) => {
          this.#note(res, req);
          return upgrade(res, req, context);
        },
      }),
    );
  }

  #overTls(handler: Handler): Handler {
    return (res, req) => {
      this.#note(res, req);
      handler(res, req);
    };
  }

  #note(res: HttpResponse, req: HttpRequest): void {
    if (this.#hstsSeconds === 0) return;
    const host = hostOfHeader(req.getHeader("host"));
    // It holds for all ports of a host: other programs of this machine would not be reached any more.
    if (host !== null && !isLoopback(host)) demandTls(res, this.#hstsSeconds);
  }
}
