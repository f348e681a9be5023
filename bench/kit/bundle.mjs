// Bundles TypeScript programs of benches and tests into dist/: Node 20 can't run TypeScript.
import { build } from "esbuild";

/** `options`: esbuild's, beside what all programs need: what is bundled, and where to. */
export async function bundle(options) {
  await build({
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    packages: "external",
    sourcemap: "inline",
    logLevel: "warning",
    ...options,
  });
}
