/** Clients of others that are installed in this folder only: see package.json beside it. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const requireHere = createRequire(new URL("./node_modules/", import.meta.url));

/** Whether every one of the packages is there; else the tests that need them say so in their names. */
export function areInstalled(...names: readonly string[]): boolean {
  return names.every((name) => existsSync(new URL(`./node_modules/${name}/package.json`, import.meta.url)));
}

/** The package as it is required from this folder. */
export function load<T>(name: string): T {
  return requireHere(name) as T;
}

/** A package that is an ES module and nothing else. */
export async function importFrom<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(requireHere.resolve(name)).href)) as T;
}

/** Behind a test's name. */
export const IF_INSTALLED = "(skipped unless `npm install` was run in test/clients)";
