/** The page as the gateway serves it, bundled from its source into a folder of the test's own. */
import { copyFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const SOURCE = fileURLToPath(new URL("../../src/page/", import.meta.url));

const ENTRIES = ["", "admin/", "replay/"].flatMap((page) => [`${page}main.ts`, `${page}style.css`]);

/** Returns the folder with index.html, style.css and main.js, and those of the live view in `admin` and for recordings in `replay`. */
export async function buildPage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-page-"));
  await build({
    entryPoints: ENTRIES.map((file) => join(SOURCE, file)),
    outbase: SOURCE,
    outdir: folder,
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    logLevel: "silent",
  });
  for (const page of ["index.html", "admin/index.html", "replay/index.html"])
    copyFileSync(join(SOURCE, page), join(folder, page));
  return folder;
}
