/** Says before all tests what the tests of programs and threads would say one by one: dist/ is not what src/ is. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** The first and the last that a build makes. */
const BUILT = ["dist/main.js", "dist/page"];

/** What is wrong with `dist/` of this folder; null: nothing. */
export function staleness(root: string): "missing" | "older than src/" | null {
  if (!BUILT.every((name) => existsSync(join(root, name)))) return "missing";
  const builtMs = Math.min(...BUILT.map((name) => statSync(join(root, name)).mtimeMs));
  const sources = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true });
  const isOlder = sources.some(
    (entry) => entry.isFile() && statSync(join(entry.parentPath, entry.name)).mtimeMs > builtMs,
  );
  return isOlder ? "older than src/" : null;
}

/** Vitest calls it once. An older dist/ is told and does no harm to tests that load src/ alone. */
export default function setup(): void {
  const fault = staleness(new URL("../..", import.meta.url).pathname);
  if (fault === null) return;
  const message = `dist/ is ${fault}: npm run build`;
  if (fault === "missing") throw new Error(message);
  console.warn(message);
}
