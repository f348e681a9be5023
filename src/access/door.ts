/** All that stands at the door of a gateway, built from its settings. */
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import { Access } from "./access.ts";
import { Audit } from "./audit.ts";
import { type ProxyTrust, readProxyTrust } from "./client-address.ts";
import { KeyFile } from "./key-file.ts";
import { Leases } from "./lease.ts";

export interface Door {
  readonly access: Access;
  readonly audit: Audit;
  readonly leases: Leases;
  readonly proxyTrust: ProxyTrust;
}

export interface DoorOptions {
  /** Path of the file of keys; empty: none, and everybody may do everything. */
  readonly keysFile: string;
  readonly tokenInUrl: boolean;
  /** Reverse proxies whose word about a client's address counts, and whether the PROXY protocol does. Default: none. */
  readonly trustedProxies?: string;
  readonly proxyProtocol?: boolean;
  readonly log: Logger;
  /** Default: `log`. */
  readonly auditLog?: Logger;
  readonly clock: Clock;
}

export interface ClosableDoor extends Door {
  /** Idempotent. */
  close(): void;
}

/** Throws invalid_config. */
export function createDoor(options: DoorOptions): ClosableDoor {
  const { keysFile, tokenInUrl, log, auditLog = log, clock } = options;
  const { trustedProxies = "", proxyProtocol = false } = options;
  const proxyTrust = readProxyTrust({ trustedProxies, proxyProtocol });
  const wallMs = (): number => Date.now();
  const file =
    keysFile === "" ? null : new KeyFile({ path: keysFile, log, clock, onChange: () => leases.recheck() });
  const access = new Access({
    keys: () => file?.keys ?? null,
    nowMs: wallMs,
    takesTokensInUrl: tokenInUrl,
  });
  const audit = new Audit({ log: auditLog, nowMs: wallMs });
  const leases = new Leases({ access, audit, clock, wallMs });
  return {
    access,
    audit,
    leases,
    proxyTrust,
    close: () => {
      file?.close();
      leases.close();
    },
  };
}
