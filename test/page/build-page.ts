/** The page as the gateway serves it, bundled from its source into a folder of the test's own. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const BUILD = new URL("../../src/page/build-page.mjs", import.meta.url);

/** Returns the folder with index.html, style.css and main.js, and those of the live view in `admin` and for recordings in `replay`. */
export async function buildPage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-page-"));
  const { buildPages } = (await import(BUILD.href)) as {
    buildPages(outdir: string, options: { readonly logLevel: "silent" }): Promise<void>;
  };
  await buildPages(folder, { logLevel: "silent" });
  return folder;
}
