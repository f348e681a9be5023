/** All that stands at the door of a gateway, built from its settings. */
import type { Clock } from "../kit/clock.ts";
import type { Logger } from "../kit/log.ts";
import { Access } from "./access.ts";
import { Audit } from "./audit.ts";
import { KeyFile } from "./key-file.ts";
import { Leases } from "./lease.ts";

export interface Door {
  readonly access: Access;
  readonly audit: Audit;
  readonly leases: Leases;
}

export interface DoorOptions {
  /** Path of the file of keys; empty: none, and everybody may do everything. */
  readonly keysFile: string;
  readonly tokenInUrl: boolean;
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
export function createDoor({ keysFile, tokenInUrl, log, auditLog = log, clock }: DoorOptions): ClosableDoor {
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
    close: () => {
      file?.close();
      leases.close();
    },
  };
}
