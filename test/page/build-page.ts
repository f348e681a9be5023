/** The page as the gateway serves it, bundled from its source into a folder of the test's own. */
import { copyFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const SOURCE = fileURLToPath(new URL("../../src/page/", import.meta.url));

/** Returns the folder with index.html, style.css and main.js. */
export async function buildPage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-page-"));
  await build({
    entryPoints: [join(SOURCE, "main.ts"), join(SOURCE, "style.css")],
    outdir: folder,
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    logLevel: "silent",
  });
  copyFileSync(join(SOURCE, "index.html"), join(folder, "index.html"));
  return folder;
}
