/** Holds the surfaces of docs/README.md against the files, and every page, link and command of the documents against what there is. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const SURFACES_PAGE = "docs/README.md";
const MOST_COLUMNS = 140;
const LINK = /\[[^\]]*\]\(([^()\s]+)\)/g;
const CODE = /`([^`]+)`/g;
const IS_PATH = /^(?:examples|test|docs|src|bench)\/[\w./*-]*$/;

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

interface Surface {
  readonly name: string;
  readonly example: string;
  readonly tests: string;
  readonly proof: string;
}

const SURFACES: readonly Surface[] = (read(SURFACES_PAGE).split("\n## Surfaces\n")[1] ?? "")
  .split("\n### ")
  .slice(1)
  .map((section) => ({
    name: section.split("\n", 1)[0] ?? "",
    example: itemOf(section, "Example"),
    tests: itemOf(section, "Tests"),
    proof: itemOf(section, "Proved with"),
  }));

/** The text of a list item `- Name: text`, which may go on in indented lines. */
function itemOf(section: string, name: string): string {
  return new RegExp(`^- ${name}: (.+(?:\\n {2}.+)*)`, "m").exec(section)?.[1] ?? "";
}

const pathsIn = (cell: string): string[] =>
  [...cell.matchAll(CODE)].map(([, code = ""]) => code).filter((code) => IS_PATH.test(code));

/** The files that a path names: itself, or with `*` in its last part those that fit. */
function filesOf(path: string): string[] {
  if (!path.includes("*")) return existsSync(join(ROOT, path)) ? [path] : [];
  const folder = dirname(path);
  const pattern = new RegExp(
    `^${path
      .slice(folder.length + 1)
      .replaceAll(".", "\\.")
      .replaceAll("*", ".*")}$`,
  );
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder))
    .filter((name) => pattern.test(name))
    .map((name) => join(folder, name));
}

function holdsTests(file: string): boolean {
  if (file.endsWith(".test.ts")) return true;
  if (!file.endsWith("/")) return false;
  return readdirSync(join(ROOT, file), { recursive: true }).some((name) => String(name).endsWith(".test.ts"));
}

/** Heading -> its section down to the next heading, by the anchor that GitHub gives it. */
function sectionsOf(text: string): Map<string, string> {
  const sections = new Map<string, string>();
  let anchor = "";
  let isCode = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) isCode = !isCode;
    const heading = isCode ? undefined : /^#{1,6} (.+)$/.exec(line)?.[1];
    if (heading === undefined) sections.set(anchor, `${sections.get(anchor) ?? ""}${line}\n`);
    else {
      anchor = heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-");
      sections.set(anchor, "");
    }
  }
  return sections;
}

/** What a relative link of `file` points to; null: nothing that is there. */
function target(file: string, link: string): { file: string; section: string | null } | null {
  const [path = "", anchor] = link.split("#");
  const to = path === "" ? file : relative(ROOT, join(ROOT, dirname(file), path));
  if (!existsSync(join(ROOT, to))) return null;
  if (anchor === undefined) return { file: to, section: null };
  const section = sectionsOf(read(to)).get(anchor);
  return section === undefined ? null : { file: to, section };
}

const linksIn = (text: string): string[] =>
  [...text.matchAll(LINK)].map(([, link = ""]) => link).filter((link) => !/^[a-z]+:/.test(link));

const DOCUMENTS = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "src/README.md",
  "test/README.md",
  "bench/README.md",
  "bench/bounds.md",
  "bench/results.md",
  "CHANGELOG.md",
  ...["docs", "examples"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true })
      .map((name) => join(folder, String(name)))
      .filter((name) => name.endsWith(".md") && !name.includes("node_modules")),
  ),
];

describe("the surfaces", () => {
  it("are there", () => {
    expect(SURFACES.length).toBeGreaterThan(15);
  });

  describe.each(SURFACES)("$name", ({ name, example, tests, proof }) => {
    it("names files that exist", () => {
      const named = [name, example, tests, proof].flatMap(pathsIn);
      expect(named.filter((path) => filesOf(path).length === 0)).toEqual([]);
    });

    it("has an example, or a section with a command or a program", () => {
      const files = pathsIn(example).filter((path) => path.startsWith("examples/"));
      const sections = linksIn(example).map((link) => target(SURFACES_PAGE, link)?.section ?? "");
      expect(files.length + sections.length).toBeGreaterThan(0);
      for (const section of sections) expect(section).toMatch(/^```(?:sh|js|ts)?$/m);
    });

    it("has tests, and says what proved it", () => {
      const named = pathsIn(tests);
      expect(named.length).toBeGreaterThan(0);
      expect(named.filter((path) => !filesOf(path).every(holdsTests))).toEqual([]);
      expect(proof).not.toBe("");
    });
  });

  it("have every example", () => {
    const shown = SURFACES.flatMap(({ example }) => pathsIn(example));
    const there = readdirSync(join(ROOT, "examples"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() || entry.name.endsWith(".mjs"))
      // What the examples share.
      .filter(({ name }) => name !== "lib")
      .map((entry) => `examples/${entry.name}`);
    expect(there.filter((path) => !shown.some((one) => one === path || one.startsWith(`${path}/`)))).toEqual(
      [],
    );
  });
});

describe("docs/README.md", () => {
  it("links to every page of docs", () => {
    const linked = linksIn(read(SURFACES_PAGE)).map((link) => target(SURFACES_PAGE, link)?.file);
    const pages = DOCUMENTS.filter((file) => file.startsWith("docs/") && file !== SURFACES_PAGE);
    expect(pages.filter((page) => !linked.includes(page))).toEqual([]);
  });
});

describe.each(DOCUMENTS)("%s", (file) => {
  const text = read(file);

  it(`has lines of at most ${MOST_COLUMNS} columns, those of tables too`, () => {
    expect(text.split("\n").filter((line) => line.length > MOST_COLUMNS)).toEqual([]);
  });

  it("links to what is there", () => {
    expect(linksIn(text).filter((link) => target(file, link) === null)).toEqual([]);
  });

  it("has no command whose script is gone", () => {
    const scripts = [...text.matchAll(/\bnode ((?:examples|bench)\/[\w./-]+)/g)].map(([, path = ""]) => path);
    expect(scripts.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});
