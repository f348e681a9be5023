/** Whether a file that holds a secret is its owner's alone. On Windows nothing is said: it has no such modes. */
import { statSync } from "node:fs";

/** Permissions of group and others. */
const OTHERS = 0o077;
const MODE_BITS = 0o777;

/** Its mode in octal, as chmod takes it, where group or others may do anything with it; null: its owner alone. Throws. */
export function modeForOthers(path: string): string | null {
  if (process.getuid === undefined) return null;
  const { mode } = statSync(path);
  return (mode & OTHERS) === 0 ? null : (mode & MODE_BITS).toString(8);
}
