/**
 * Every regular expression of src/ takes time linear in its text: strangers choose most texts, and a text that is ten times
 * as long must not take a hundred times as long.
 *
 * The analysis takes most of a minute, and its verdict of a pattern never changes: linear-patterns.json keeps those that it
 * found linear. UPDATE_DOCS=1 adds new ones to it. Where the list is empty, all are analysed again.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseSync, Visitor } from "oxc-parser";
import { expect, it } from "vitest";

/** What is used of recheck. `summary`: how time grows. */
type Check = (
  source: string,
  flags: string,
  options: { readonly timeout: number; readonly maxIteration: number },
) =>
  | { readonly status: "safe" | "unknown" }
  | { readonly status: "vulnerable"; readonly complexity: { readonly summary: string } };

/** JavaScript alone, in this process. */
process.env.RECHECK_SYNC_BACKEND = "pure";
const require = createRequire(import.meta.url);
const { checkSync } = require("recheck") as { checkSync: Check };
const { version: RECHECK } = require("recheck/package.json") as { version: string };

/** What was found linear, by which version of the analysis: another one's verdicts don't count. */
interface Known {
  readonly recheck: string;
  readonly linear: readonly string[];
}

const KNOWN = new URL("./linear-patterns.json", import.meta.url);

function knownLinear(): ReadonlySet<string> {
  const { recheck, linear }: Known = JSON.parse(readFileSync(KNOWN, "utf8"));
  return new Set(recheck === RECHECK ? linear : []);
}

const SRC = fileURLToPath(new URL("../src", import.meta.url));

interface Pattern {
  /** Under src/. */
  readonly file: string;
  readonly source: string;
  readonly flags: string;
}

/**
 * File and a part of a pattern that the analysis doesn't call linear, and why it may stay: strangers don't choose its
 * text, or the code bounds the text by a constant.
 */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "cli/session/join-session.ts \\/+$": "the user's own address",
  "cli/serve/upstream.ts \\/+$": "the operator's setting",
  "cli/say/voices.ts \\/+$": "the operator's setting",
  "client/address.ts \\/+$": "the client's own address; old browsers have no lookbehind",
  "upstream/transport/requester.ts \\/+$": "the operator's setting",
  "upstream/services/upstreams-file.ts \\/+$": "the operator's setting",
  "upstream/vendors/vendor-regions.ts \\/+$": "the operator's setting",
  "timing/visemes/letter-rules.ts ^([^()]*)": "reads the project's own tables",
  "vendor-sockets/text-buffer.ts <(phoneme|say-as|sub|emphasis|w)": "MAX_GENERATION_CHARS: 4000 characters",
  "session/playback/splice.ts \\p{Quotation_Mark}*_]|": "MAX_TAIL: 256 characters",
  "text/prepare/addresses.ts ^(?!.*(?::\\/\\/|www\\.))": "isStoppedWord: MAX_LOCAL, 64 characters",
  "timing/estimate/punctuation.ts \\p{P}{0,32}": "bounded in the pattern: 32 marks",
  "service/text/rules.ts (?:\\d{1,3}(?:,\\d{3})+|\\d+)":
    "linear, as no number begins within another (BEGIN), or behind one currency sign",
};

/** Files that build patterns not on import: of what nobody but the operator or the project writes. */
const BUILT_LATER = new Map([
  ["server/proxy/proxy-paths.ts", "paths of the setting proxy-paths"],
  ["service/http/server.ts", "the service's own routes"],
  ["text/prepare/special.ts", "a set of marks, or the first character of an emoji"],
  ["timing/visemes/tagged-phones.ts", "names of two attributes; tags have 512 characters at most"],
]);

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .sort();

function literalsOf(file: string): Pattern[] {
  const found: Pattern[] = [];
  const { program } = parseSync(file, readFileSync(`${SRC}/${file}`, "utf8"));
  new Visitor({
    Literal: (node) => {
      if ("regex" in node) found.push({ file, source: node.regex.pattern, flags: node.regex.flags });
    },
  }).visit(program);
  return found;
}

/** What `new RegExp` makes while the files are imported that have it. */
async function builtOnImport(named: readonly string[]): Promise<Pattern[]> {
  const built: Pattern[] = [];
  const { RegExp: original } = globalThis;
  globalThis.RegExp = new Proxy(original, {
    construct(target, given: [string, string?]) {
      const pattern = new target(...given);
      const caller = new Error("where").stack?.split("\n")[2] ?? "";
      const at = caller.indexOf(`${SRC}/`);
      if (at >= 0) {
        const file = relative(SRC, caller.slice(at).replace(/\.ts.*$/, ".ts"));
        built.push({ file, source: pattern.source, flags: pattern.flags });
      }
      return pattern;
    },
  });
  try {
    for (const file of named) await import(pathToFileURL(`${SRC}/${file}`).href);
  } finally {
    globalThis.RegExp = original;
  }
  return built;
}

function isNamed(key: string, { file, source }: Pattern): boolean {
  const [named = ""] = key.split(" ", 1);
  return file === named && source.includes(key.slice(named.length + 1));
}

/** Without a repetition that has no end there is nothing that could grow with the text. */
function isUnbounded({ source }: Pattern): boolean {
  return /[*+]|\{\d+,\}/.test(source);
}

/** "safe", or what the analysis says. Its own clock runs out on a busy machine: only what it says three times counts. */
function judged(source: string, flags: string): string {
  let verdict = "";
  for (let tries = 0; tries < 3; tries += 1) {
    const found = checkSync(source, flags, { timeout: 60_000, maxIteration: 5 });
    if (found.status === "safe") return "safe";
    verdict = found.status === "vulnerable" ? found.complexity.summary : found.status;
  }
  return verdict;
}

it("patterns: time is linear in the text", { timeout: 600_000 }, async () => {
  const builders = files.filter((file) => readFileSync(`${SRC}/${file}`, "utf8").includes("new RegExp("));
  // The rules of letters and of normalization are built by who imports them.
  const named = [
    ...builders.filter((file) => !BUILT_LATER.has(file)),
    "timing/visemes/pronounce.ts",
    "service/text/normalizer.ts",
  ];
  const built = await builtOnImport(named);
  const seen = new Set(built.map(({ file }) => file));
  expect(builders.filter((file) => !seen.has(file))).toEqual([...BUILT_LATER.keys()]);

  const patterns = [...files.flatMap(literalsOf), ...built].filter(isUnbounded);
  expect(patterns.length).toBeGreaterThan(100);
  const exceptions = Object.keys(EXCEPTIONS);
  const isException = (pattern: Pattern) => exceptions.some((key) => isNamed(key, pattern));
  const known = knownLinear();
  const verdicts = new Map(
    patterns
      .filter((pattern) => !isException(pattern))
      .map(({ source, flags }) => [`/${source}/${flags}`, { source, flags }] as const)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, { source, flags }]) => [key, known.has(key) ? "safe" : judged(source, flags)] as const),
  );
  const verdictOf = ({ source, flags }: Pattern) => verdicts.get(`/${source}/${flags}`);
  const faults = patterns.filter((pattern) => !isException(pattern) && verdictOf(pattern) !== "safe");
  expect(faults.map((fault) => `${fault.file} ${fault.source} (${verdictOf(fault)})`)).toEqual([]);
  // No exception stays behind its pattern.
  expect(exceptions.filter((key) => !patterns.some((pattern) => isNamed(key, pattern)))).toEqual([]);
  const kept: Known = { recheck: RECHECK, linear: [...verdicts.keys()] };
  if (process.env.UPDATE_DOCS === "1") writeFileSync(KNOWN, `${JSON.stringify(kept, null, 2)}\n`);
  else
    expect(
      JSON.parse(readFileSync(KNOWN, "utf8")),
      "out of date: UPDATE_DOCS=1 npx vitest run test/linear-patterns.test.ts",
    ).toEqual(kept);
});
