// Bundles the pages into a folder: the page itself, the live view in `admin`, recordings in `replay`. `npm run build` and the
// page's tests call it.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const PAGES = ["", "admin/", "replay/"];
/** A line that stands for a file of this folder, at the line's indent. */
const INCLUDE = /^( *)<!-- include (\S+) -->\n/gm;

function htmlOf(file) {
  return readFileSync(join(here, file), "utf8").replace(INCLUDE, (_line, indent, part) =>
    htmlOf(part).replace(/^(?=.)/gm, indent),
  );
}

/** `options`: esbuild's, beside what all pages need. */
export async function buildPages(outdir, options) {
  await build({
    ...options,
    entryPoints: PAGES.flatMap((page) => [`${page}main.ts`, `${page}style.css`]).map((file) =>
      join(here, file),
    ),
    outbase: here,
    outdir,
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
  });
  for (const page of PAGES) writeFileSync(join(outdir, page, "index.html"), htmlOf(`${page}index.html`));
}
