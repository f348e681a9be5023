/** What the public port's routes are mounted on, and how it is listened on: plain, or over TLS. */
import { App } from "uWebSockets.js";
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { Counters } from "../metrics/counters.ts";
import { type ListeningPort, listen } from "./listen.ts";
import type { Certificate, CertificateFiles } from "./tls/certificate.ts";
import { type AppRoutes, RouteTable } from "./tls/route-table.ts";
import { listenOverTls } from "./tls/tls-port.ts";

export interface PublicAppOptions {
  readonly host: string;
  readonly port: number;
  /** By other processes of this program. Default: false. */
  readonly isPortShared?: boolean;
  /** null: plain HTTP. */
  readonly tls: {
    readonly files: CertificateFiles;
    readonly hstsSeconds: number;
    readonly watchMs?: number | undefined;
  } | null;
  readonly clock: Clock;
  readonly log: Logger;
  readonly counters: Counters;
}

export interface CertifiedPort extends ListeningPort {
  /** That new connections get; null: the port speaks plain HTTP. */
  certificate(): Certificate | null;
}

interface PublicApp {
  readonly routes: AppRoutes;
  /** Once all routes are there. Rejects with port_in_use, invalid_config. */
  listen(): Promise<CertifiedPort>;
}

export function publicApp(options: PublicAppOptions): PublicApp {
  const { host, port, isPortShared = false, tls, clock, log, counters } = options;
  const address = { host, port, flag: "port", isShared: isPortShared } as const;
  if (tls === null) {
    const app = App();
    return {
      routes: app,
      listen: async () => ({ ...(await listen(app, address)), certificate: () => null }),
    };
  }
  const routes = new RouteTable(tls.hstsSeconds);
  return {
    routes,
    listen: () => listenOverTls(routes, { ...address, ...tls, clock, log, counters }),
  };
}
