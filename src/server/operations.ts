/**
 * The operations port: figures and details for the people who run the gateway, on an address of its own, so that who
 * reaches the public port does not read them.
 */

import { App } from "uWebSockets.js";
import { fileURLToPath } from "node:url";
import type { Door } from "../access/door.ts";
import type { OriginRules } from "../access/origin-rules.ts";
import { GatewayError } from "../errors.ts";
import type { Clock } from "../kit/clock.ts";
import type { Sessions } from "../session/sessions.ts";
import { Reply } from "./http.ts";
import { type ListeningPort, listen } from "./listen.ts";
import type { LiveSource } from "./live-view/live-source.ts";
import { routeLiveView } from "./live-view/live-view.ts";
import { CheckedRoutes, needs } from "./routes.ts";

export interface UpstreamState {
  /** Requests that hold a connection, and that wait for one. */
  readonly open: number;
  readonly queued: number;
  readonly regions: readonly { readonly name: string; readonly healthy: boolean }[];
}

export interface OperationsOptions {
  readonly host: string;
  /** 0: the system picks a free one. */
  readonly port: number;
  /** Which web pages may use the port. */
  readonly origins: OriginRules;
  readonly door: Door;
  /** Name and version. */
  readonly server: string;
  readonly sessions: SessionCounts;
  readonly upstream: () => UpstreamState;
  /** Prometheus text. */
  readonly metrics: () => Promise<string>;
  /** What the live view shows. */
  readonly liveView: LiveSource;
  readonly clock: Clock;
  /** Folder of the live view's page; default: as it is built. */
  readonly liveFolder?: string | undefined;
  /** More of the answers of /healthz and /readyz. */
  readonly details?: () => object;
}

type SessionCounts = Pick<Sessions, "count" | "isLeaving">;

/** Listens. Rejects with port_in_use. */
export async function startOperations(options: OperationsOptions): Promise<ListeningPort> {
  const { host, port, server, sessions, details = () => ({}) } = options;
  const app = App();
  const routes = new CheckedRoutes(app, options);
  routes.getAndHead("/healthz", "anybody", (res) =>
    new Reply(res, "same-origin").json(200, { status: "ok", server, ...details() }),
  );
  routes.getAndHead("/readyz", "anybody", (res) => {
    const { status, body } = readiness(sessions);
    const detail = { ...body, server, sessions: sessions.count, ...details(), upstream: options.upstream() };
    new Reply(res, "same-origin").json(status, detail);
  });
  routes.getAndHead("/metrics", needs("admin"), (res) => {
    const reply = new Reply(res, "same-origin");
    options.metrics().then(
      (body) =>
        reply.send({
          status: 200,
          contentType: "text/plain; version=0.0.4; charset=utf-8",
          body,
        }),
      (thrown: unknown) => reply.fail(thrown),
    );
  });
  const { liveView: source, liveFolder = fileURLToPath(new URL("../page/admin", import.meta.url)) } = options;
  routeLiveView(routes, { ...options, source, folder: liveFolder });
  routes.any("/*", "known", (res) => {
    const what = "No such path on the operations port, expected /admin, /metrics, /healthz or /readyz";
    new Reply(res, "same-origin").fail(new GatewayError("not_found", what));
  });
  return await listen(app, { host, port, flag: "ops-port" });
}

/** Whether new callers are taken: the whole answer on the public port, and the beginning of the one here. */
export function readiness(sessions: SessionCounts): {
  status: 200 | 503;
  body: { status: "ready" | "draining" };
} {
  return sessions.isLeaving
    ? { status: 503, body: { status: "draining" } }
    : { status: 200, body: { status: "ready" } };
}
