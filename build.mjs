// Builds dist/: the server by tsc, the page by esbuild. `npm run build` and `npm start` call it.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, rmSync } from "node:fs";
import { build } from "esbuild";

function tsc(project) {
  const run = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", project], {
    stdio: "inherit",
  });
  if (run.status !== 0) process.exit(run.status ?? 1);
}

rmSync("dist", { recursive: true, force: true });
tsc("tsconfig.json");
if (existsSync("dist/main.js")) chmodSync("dist/main.js", 0o755);
tsc("src/page/tsconfig.json");
await build({
  entryPoints: ["src/page/main.ts", "src/page/style.css"],
  outdir: "dist/page",
  bundle: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  sourcemap: true,
  minify: true,
  legalComments: "linked",
});
cpSync("src/page/index.html", "dist/page/index.html");
