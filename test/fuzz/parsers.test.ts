/** The table of parsers holds every target and every parser: one that is new needs a row, and a target or a reason. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { NO_PARSERS, PARSERS } from "./parsers.ts";
import { TARGETS } from "./targets.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const SRC = fileURLToPath(new URL("../../src", import.meta.url));
/** Where strangers' bytes come in. */
const FOLDERS = [
  ..."access server protocol audio/containers service/http service/media service/text telephony".split(" "),
  ..."upstream vendor-sockets".split(" "),
];
/** How a file gives itself away that reads JSON, a query, base64 or a binary format. */
const READS =
  /JSON\.parse|safeParse|readJson\(|new URLSearchParams|, "base64|new DataView|\.readU?Int|export (?:async )?function\*? (?:parse|read|sniff)/;

function sourcesIn(folder: string): string[] {
  return readdirSync(join(SRC, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name));
}

/** The files of src/ that the targets reach by their imports. */
function reachedFiles(): Set<string> {
  const seen = new Set<string>();
  const waiting = [join(HERE, "targets.ts")];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    for (const [, to = ""] of readFileSync(path, "utf8").matchAll(/ from "(\.[^"]+\.ts)"/g))
      waiting.push(join(dirname(path), to));
  }
  return new Set([...seen].map((path) => relative(SRC, path)));
}

const listed = Object.values(PARSERS).flat();

describe("the table of parsers", () => {
  it("has every target, and no other", () => {
    const named = Object.keys(PARSERS).filter((name) => !name.endsWith("*"));
    expect(named.sort()).toEqual(Object.keys(TARGETS).sort());
  });

  it("has every file that reads what strangers send", () => {
    const known = new Set([...listed, ...Object.keys(NO_PARSERS)]);
    const reading = FOLDERS.flatMap(sourcesIn).filter((file) =>
      READS.test(readFileSync(join(SRC, file), "utf8")),
    );
    expect(reading.filter((file) => !known.has(file))).toEqual([]);
  });

  it("names files that there are, and that a target reaches", () => {
    expect([...listed, ...Object.keys(NO_PARSERS)].filter((file) => !existsSync(join(SRC, file)))).toEqual(
      [],
    );
    const reached = reachedFiles();
    expect(listed.filter((file) => !reached.has(file))).toEqual([]);
    expect(Object.keys(NO_PARSERS).filter((file) => listed.includes(file))).toEqual([]);
  });
});
