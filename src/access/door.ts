/** All that stands at the door of a gateway, built from its settings. */
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import type { RefusalCounts } from "../kit/refusal-counts.ts";
import { Access, type Presented } from "./access.ts";
import { isGuess } from "./access-error.ts";
import { Audit, type AuditLog } from "./audit.ts";
import type { Caller } from "./caller.ts";
import { type ProxyTrust, readProxyTrust } from "./client-address.ts";
import { KeyFile } from "./key-file.ts";
import { Leases } from "./lease.ts";
import { ConnectionAges } from "./limits/connection-age.ts";
import { type LimitSettings, Limits } from "./limits/limits.ts";
import type { Usage } from "./limits/usage.ts";
import type { OtherNodes } from "./other-nodes.ts";

export interface Door {
  readonly access: Access;
  readonly audit: Audit;
  readonly leases: Leases;
  readonly proxyTrust: ProxyTrust;
  readonly limits: Limits;
  readonly ages: ConnectionAges;
  /** The file of keys can't be read as it is now: those from before hold. */
  readonly hasBrokenKeys: boolean;
  /** What keys and tenants use of their bounds; nothing without keys. */
  usage(): readonly Usage[];
}

export interface DoorOptions extends LimitSettings {
  /** Longest age of a connection; 0: no limit. */
  readonly maxConnectionMinutes: number;
  /** Path of the file of keys; empty: none, and everybody may do everything. */
  readonly keysFile: string;
  readonly tokenInUrl: boolean;
  /** Reverse proxies whose word about a client's address counts, and whether the PROXY protocol does. Default: none. */
  readonly trustedProxies?: string;
  readonly proxyProtocol?: boolean;
  readonly log: Logger;
  /** Default: `log`. */
  readonly auditLogger?: AuditLog;
  readonly clock: Clock;
  /** Where refusals are counted; default: the door's own. */
  readonly refusals?: RefusalCounts | undefined;
  /** How soon a change of the file of keys is seen; default: a second. */
  readonly watchMs?: number | undefined;
  /** Default: the gateway is alone. */
  readonly otherNodes?: () => OtherNodes | null;
}

export interface ClosableDoor extends Door {
  /** Idempotent. */
  close(): void;
}

/** Who shows this, at an address that has not tried too many keys and tokens. Throws AccessError, rate_limited. */
export function identifyAt(
  address: string,
  presented: Presented,
  { access, limits }: Pick<Door, "access" | "limits">,
): Caller {
  limits.mustTryNow(address);
  try {
    return access.identify(presented);
  } catch (thrown) {
    if (isGuess(thrown)) limits.failed(address);
    throw thrown;
  }
}

/**
 * Before somebody who shows this is let in: see Access.claim. null: nobody has to be asked, or it does not hold, which `identifyAt`
 * says and counts.
 */
export function claimAt(
  address: string,
  presented: Presented,
  { access, limits }: Pick<Door, "access" | "limits">,
): Promise<() => void> | null {
  if (!access.isShared) return null;
  try {
    limits.mustTryNow(address);
    return access.claim(presented);
  } catch {
    return null;
  }
}

/** Throws invalid_config. */
export function createDoor(options: DoorOptions): ClosableDoor {
  const { keysFile, tokenInUrl, log, auditLogger = log, clock, watchMs, otherNodes = () => null } = options;
  const { trustedProxies = "", proxyProtocol = false } = options;
  const proxyTrust = readProxyTrust({ trustedProxies, proxyProtocol });
  const wallMs = (): number => Date.now();
  const onChange = (): void => leases.recheck();
  const file = keysFile === "" ? null : new KeyFile({ path: keysFile, log, clock, watchMs, onChange });
  const access = new Access({
    keys: () => file?.keys ?? null,
    nowMs: wallMs,
    takesTokensInUrl: tokenInUrl,
    otherNodes,
  });
  const audit = new Audit({ log: auditLogger, nowMs: wallMs, counts: options.refusals });
  const leases = new Leases({ access, audit, clock, wallMs });
  const limits = new Limits({
    settings: options,
    clock,
    wallMs,
    onLow: (low) => audit.budgetLow(low),
    tenantLimits: (tenant) => file?.keys.tenants.get(tenant) ?? {},
  });
  const ages = new ConnectionAges({
    clock,
    maxMinutes: options.maxConnectionMinutes,
    onEnd: (error) => audit.sent(error),
  });
  return {
    access,
    audit,
    leases,
    proxyTrust,
    limits,
    ages,
    get hasBrokenKeys() {
      return file?.isBroken === true;
    },
    usage: () => (file === null ? [] : limits.usage(file.keys)),
    close: () => {
      file?.close();
      leases.close();
      ages.close();
    },
  };
}
