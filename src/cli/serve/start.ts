/** Starts a gateway with its upstream, for `voicewire serve` and for programs that embed it; both end together. */

import { checkBinding } from "../../access/binding.ts";
import type { Config } from "../../config.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import { openLedgerFile } from "../../ledger/ledger-file.ts";
import { openFolder } from "../../recording/recordings.ts";
import { type Certificate, certificateFiles, readCertificate } from "../../server/tls/certificate.ts";
import { tracingSettings } from "../../tracing/tracing-settings.ts";
import type { Io } from "../io.ts";
import { createFileLog } from "../log.ts";
import { openCluster } from "./cluster.ts";
import { listenFailure, portAdvice } from "./port-check.ts";
import { readServices, servicesLabel } from "./services.ts";
import { chooseUpstream, openUpstream } from "./upstream.ts";

export interface StartOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  /** The embedded service gets it without its secrets. */
  readonly env: Io["env"];
}

export interface Started {
  readonly port: number;
  readonly url: string;
  /** URL of the operations port; null where there is none. */
  readonly opsUrl: string | null;
  /** That new connections get; null without TLS. */
  readonly certificate: Certificate | null;
  /** In a cluster; null where the gateway is alone. */
  readonly nodeName: string | null;
  /** The upstream, in words. */
  readonly label: string;
  /** Takes nothing new, waits for speech to end (at most `drainMs`), then closes. */
  drain(): Promise<void>;
  /** Ends everything now, the embedded service too. Both may be called in any order, any number of times. */
  close(): Promise<void>;
}

/**
 * Rejects with GatewayError: invalid_config, port_in_use, voice_package_missing, upstream_unreachable, encoder_failed; in a
 * cluster also bus_lost, bus_timeout, bus_refused, node_name_taken.
 */
export async function startWithUpstream({ config, log, clock, env }: StartOptions): Promise<Started> {
  checkBinding(config);
  chooseUpstream(config);
  checkFiles(config);
  const { services, voices } = readServices(config, env);
  const tracing = tracingSettings(config.otlpEndpoint, env);
  await checkPorts(config);
  // Loaded only now: the help and wrong settings are answered even where the server's binary does not load.
  const { startGateway } = await import("../../gateway.ts");
  // Before the service, which takes seconds.
  const cluster = await openCluster({ config, log, clock });
  const upstream = await openUpstream({ config, log, clock, env }).catch(async (thrown: unknown) => {
    await cluster?.close();
    throw thrown;
  });
  const gateway = await startGateway({
    config,
    upstreamBaseUrl: upstream.baseUrl,
    upstreamKey: upstream.key,
    passesFaults: upstream.service !== undefined,
    service: upstream.service,
    services,
    voices,
    tracing,
    log,
    auditLog: config.auditLog === "" ? log : createFileLog(config.auditLog, log),
    cluster,
  }).catch(async (thrown: unknown) => {
    await Promise.all([upstream.stop(), cluster?.close()]);
    throw thrown;
  });
  const close = async (): Promise<void> => {
    await gateway.close();
    await upstream.stop();
  };
  return {
    port: gateway.port,
    url: gateway.url,
    opsUrl: gateway.opsUrl,
    certificate: gateway.certificate(),
    nodeName: cluster?.nodeName ?? null,
    label: upstream.label + servicesLabel(services),
    drain: async () => {
      await gateway.drain();
      await close();
    },
    close,
  };
}

/** Read before the service is started, which takes seconds. */
function checkFiles(config: Config): void {
  const files = certificateFiles(config);
  if (files !== null) readCertificate(files);
  if (config.ledger !== "") openLedgerFile(config.ledger);
  if (config.record !== "") openFolder(config.record);
}

/** Asked before the service is started: the answer to the commonest mistake should not take seconds. */
export async function checkPorts({ host, port, opsHost, opsPort }: Config): Promise<void> {
  await checkPort({ host, port, flag: "port" });
  if (opsPort !== "off") await checkPort({ host: opsHost, port: opsPort, flag: "ops-port" });
}

async function checkPort({ host, port, flag }: PortToCheck): Promise<void> {
  const failure = port === 0 ? undefined : await listenFailure({ host, port });
  if (failure === undefined) return;
  throw new GatewayError(
    "port_in_use",
    `Can't listen on ${host}:${port} (${flag}: ${failure}), expected a free port; ${portAdvice(failure, flag)}`,
    { field: flag },
  );
}

interface PortToCheck {
  readonly host: string;
  readonly port: number;
  readonly flag: "port" | "ops-port";
}
