/** The page as the gateway serves it, bundled from its source into a folder of the test's own. */
import { copyFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const SOURCE = fileURLToPath(new URL("../../src/page/", import.meta.url));

/** Returns the folder with index.html, style.css and main.js, and those of the live view in `admin`. */
export async function buildPage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-page-"));
  await build({
    entryPoints: ["main.ts", "style.css", "admin/main.ts", "admin/style.css"].map((file) =>
      join(SOURCE, file),
    ),
    outbase: SOURCE,
    outdir: folder,
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    logLevel: "silent",
  });
  for (const page of ["index.html", "admin/index.html"]) copyFileSync(join(SOURCE, page), join(folder, page));
  return folder;
}
