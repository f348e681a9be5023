/** What `doctor` says of a key file: what opens it to others, and what will stop working. */
import type { Key } from "../../access/keys.ts";
import { modeForOthers } from "../../kit/private-file.ts";
import { loadKeys } from "../keys/key-store.ts";
import { type CheckResult, resultWith } from "./check-result.ts";

const DAY_MS = 86_400_000;
/** So early an operator can still act. */
const SOON_DAYS = 14;

/** Throws invalid_config where the gateway would not start with it. */
export function checkKeyFile(path: string, nowMs: number): CheckResult {
  const ring = loadKeys(path);
  const all = [...ring];
  const mode = modeForOthers(path);
  const expired = endingBefore(all, nowMs);
  const soon = endingBefore(all, nowMs + SOON_DAYS * DAY_MS).filter((id) => !expired.includes(id));
  const worries = [
    ...(mode === null ? [] : [{ what: `others may read it (${mode})`, fix: `chmod 600 ${path}` }]),
    ...(expired.length === 0
      ? []
      : [{ what: `expired: ${expired.join(", ")}`, fix: "voicewire keys remove, then keys new" }]),
    ...(soon.length === 0
      ? []
      : [
          {
            what: `expire within ${SOON_DAYS} days: ${soon.join(", ")}`,
            fix: "make new ones with voicewire keys new",
          },
        ]),
    ...(ring.mintingAt(nowMs, { forOthers: true }) !== undefined
      ? []
      : [
          {
            what: "no key mints for others, so POST /tokens fails",
            fix: 'add a key with a secret and "mints": true, without tenant, grants and limits',
          },
        ]),
  ];
  const count = `${all.length} key${all.length === 1 ? "" : "s"}`;
  return resultWith(`${path}: ${count}`, worries);
}

function endingBefore(keys: readonly Key[], timeMs: number): string[] {
  return keys.filter(({ expiresMs }) => expiresMs !== null && expiresMs <= timeMs).map(({ id }) => id);
}
