/**
 * The public port over TLS. An app keeps the certificate that it began with: adding names to it while it runs loses
 * their routes, and clients that send no name keep the old one. So each new certificate gets an app of its own:
 *
 *   listening socket -> first app -> the newest app serves the connection
 *
 * Nobody notices: the listening socket stays, and open connections stay with their app.
 */
import { SSLApp, type TemplatedApp } from "uWebSockets.js";
import { GatewayError, toGatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { FileWatch } from "../../kit/file-watch.ts";
import type { Logger } from "../../kit/log.ts";
import type { Counters } from "../../metrics/counters.ts";
import { type Address, type ListeningPort, listen } from "../listen.ts";
import {
  type Certificate,
  type CertificateFiles,
  certificateFault,
  dayOf,
  isValid,
  readCertificate,
} from "./certificate.ts";
import type { RouteTable } from "./route-table.ts";

export interface TlsPortOptions extends Address {
  readonly files: CertificateFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly counters: Counters;
  /** How soon a change of the files is seen; default: a second. */
  readonly watchMs?: number | undefined;
}

interface TlsPort extends ListeningPort {
  /** That new connections get. */
  certificate(): Certificate;
}

/** The library's typings leave these out. What one app accepts is given to its children in turn. */
interface AppWithChildren {
  getDescriptor(): unknown;
  addChildAppDescriptor(descriptor: unknown): void;
  removeChildAppDescriptor(descriptor: unknown): void;
}

interface CertifiedApp {
  readonly app: TemplatedApp;
  readonly certificate: Certificate;
}

const WARN_EVERY_MS = 86_400_000;

/** Listens. Throws invalid_config; rejects with port_in_use. */
export async function listenOverTls(routes: RouteTable, options: TlsPortOptions): Promise<TlsPort> {
  const { files, clock, log, counters, watchMs } = options;
  const warnOfOthers = ({ modeForOthers: mode }: Certificate): void => {
    if (mode !== null) log.warn({ mode }, "Others may read the key of the certificate: chmod 600");
  };
  const first = certifiedApp(routes, files);
  warnOfOthers(first.certificate);
  const port = await listen(first.app, options);
  const apps = [first];
  let newest = first;
  const renew = (): void => {
    try {
      const certificate = readCertificate(files);
      // Touched, or put back.
      if (certificate.digest === newest.certificate.digest) return;
      if (!isValid(certificate, Date.now())) throw notNow(certificate);
      const next = certifiedApp(routes, files);
      hand(first, { from: newest, to: next });
      apps.push(next);
      newest = next;
      counters.tlsRenewals += 1;
      log.info(describe(newest.certificate), "New connections get the new certificate");
      warnOfOthers(newest.certificate);
    } catch (thrown) {
      counters.tlsRenewalsRefused += 1;
      const { message } = toGatewayError(thrown);
      log.error(
        { detail: message, ...describe(newest.certificate) },
        "The new certificate can't be used: the old one stays",
      );
    }
  };
  const watched = [files.certFile, files.keyFile];
  const watch = new FileWatch({ files: watched, clock, watchMs, onChange: renew });
  let timer: Timer | null = null;
  const warn = (): void => {
    const fault = certificateFault(newest.certificate, Date.now());
    if (fault !== null) log.warn({ ...describe(newest.certificate), detail: fault }, "Renew the certificate");
    timer = clock.at(clock.nowMs() + WARN_EVERY_MS, warn);
  };
  warn();
  const stopWatching = (): void => {
    watch.close();
    timer?.cancel();
  };
  return {
    port: port.port,
    certificate: () => newest.certificate,
    stopListening: () => {
      stopWatching();
      port.stopListening();
    },
    close: () => {
      stopWatching();
      port.close();
      for (const { app } of apps) app.close();
    },
  };
}

/** Throws invalid_config. */
function certifiedApp(routes: RouteTable, files: CertificateFiles): CertifiedApp {
  const certificate = readCertificate(files);
  const app = sslApp(files);
  // The library reads the files itself: they may have been replaced since they were checked.
  if (readCertificate(files).digest !== certificate.digest) {
    throw new GatewayError(
      "invalid_config",
      `Setting tls-cert: "${files.certFile}" or its key changed while it was read, expected files that stay`,
      { field: "tls-cert" },
    );
  }
  routes.mountOn(app);
  return { app, certificate };
}

function sslApp({ certFile, keyFile }: CertificateFiles): TemplatedApp {
  try {
    return SSLApp({ cert_file_name: certFile, key_file_name: keyFile });
  } catch (cause) {
    throw new GatewayError(
      "invalid_config",
      `Setting tls-cert: the server's library takes no certificate from "${certFile}", expected PEM with the ` +
        "certificate first, then those that vouch for it",
      { field: "tls-cert", cause },
    );
  }
}

/** Within one call, so that no connection comes between. */
function hand(
  first: CertifiedApp,
  { from, to }: { readonly from: CertifiedApp; readonly to: CertifiedApp },
): void {
  const acceptor = withChildren(first);
  acceptor.addChildAppDescriptor(withChildren(to).getDescriptor());
  // Without children the first app serves what it accepts.
  if (from !== first) acceptor.removeChildAppDescriptor(withChildren(from).getDescriptor());
}

function withChildren({ app }: CertifiedApp): AppWithChildren {
  return app as unknown as AppWithChildren;
}

function notNow(certificate: Certificate): GatewayError {
  const fault = certificateFault(certificate, Date.now());
  const what = `Setting tls-cert: clients do not take the certificate now, since ${fault}`;
  return new GatewayError("invalid_config", what, { field: "tls-cert" });
}

function describe({ names, endMs }: Certificate): { names: string; ends: string } {
  return { names: names.join(", "), ends: dayOf(endMs) };
}
