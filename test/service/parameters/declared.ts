/** What the tests of the service say that they measure, read from their sources. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Declaration {
  readonly endpoint: string;
  readonly parameter: string;
  readonly effect: string;
  /** In test/service. */
  readonly file: string;
}

const FOLDER = join(import.meta.dirname, "..");
/** What checks the declarations makes none. */
const OWN = "parameters/";
const CALL = /\bmeasures\(/g;
const LITERALS = /\bmeasures\(\s*"([^"\n]+)",\s*"([^"\n]+)",\s*"([^"\n]+)",?\s*\)/g;

export function declarationsOfTests(): Declaration[] {
  return readdirSync(FOLDER, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith(".test.ts") && !file.startsWith(OWN))
    .toSorted()
    .flatMap((file) => declarationsIn(file, readFileSync(join(FOLDER, file), "utf8")));
}

export function declarationsIn(file: string, source: string): Declaration[] {
  const found = [...source.matchAll(LITERALS)].map(([, endpoint = "", parameter = "", effect = ""]) => ({
    endpoint,
    parameter,
    effect,
    file,
  }));
  if (found.length !== [...source.matchAll(CALL)].length) {
    throw new Error(`A call of measures() in ${file} can't be read, expected three literals`);
  }
  return found;
}
