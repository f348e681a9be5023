// Builds dist/: the server and the package's types by tsc, the page by esbuild. `npm run build` and `npm start` call it.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { buildPages } from "./src/page/build-page.mjs";

function tsc(project) {
  const run = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", project], {
    stdio: "inherit",
  });
  if (run.status !== 0) process.exit(run.status ?? 1);
}

/**
 * Leaves the declarations that the package's entries need. They name one another as `.js`: tsc keeps `.ts` in declarations,
 * which not every tool of a user follows.
 */
function publishTypes(entries) {
  const needed = new Set();
  const visit = (file) => {
    if (needed.has(file)) return;
    needed.add(file);
    const text = readFileSync(file, "utf8").replace(/(["'])(\.\.?\/[^"']+)\.ts\1/g, "$1$2.js$1");
    for (const [, path] of text.matchAll(/["'](\.\.?\/[^"']+)\.js["']/g))
      visit(join(dirname(file), `${path}.d.ts`));
    writeFileSync(file, text);
  };
  for (const entry of entries) visit(join("dist", entry));
  for (const name of readdirSync("dist", { recursive: true })) {
    const file = join("dist", name);
    if (file.endsWith(".d.ts") && !needed.has(file)) rmSync(file);
  }
}

rmSync("dist", { recursive: true, force: true });
tsc("tsconfig.json");
publishTypes(["index.d.ts", "client/index.d.ts"]);
if (existsSync("dist/main.js")) chmodSync("dist/main.js", 0o755);
tsc("src/page/tsconfig.json");
await buildPages("dist/page", { sourcemap: true, minify: true, legalComments: "linked" });
