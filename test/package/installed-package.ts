/** The package as a user gets it: packed, and installed into an empty folder. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The environment of whoever runs the tests must not change what they see. */
const ENV = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(VOICEWIRE_|ELEVENLABS_|npm_|NODE_OPTIONS$)/.test(name)),
);

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A Node of another version from this folder's own packages; undefined where it is not installed. */
export function otherNode(name: "node-20" | "node-22"): string | undefined {
  const path = fileURLToPath(new URL(`./node_modules/${name}/bin/node`, import.meta.url));
  return existsSync(path) ? path : undefined;
}

export class InstalledPackage implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "voicewire-package-"));
  /** What `npm install` said. */
  readonly installed: Ran;

  /** Packs dist/ as it is: another build would take it away from tests that run beside this one. */
  constructor() {
    const packed = runIn(ROOT, "npm", [
      "pack",
      "--ignore-scripts",
      "--json",
      "--pack-destination",
      this.folder,
    ]);
    const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
    this.write("package.json", JSON.stringify({ name: "a-program", private: true, type: "module" }));
    this.installed = this.run("npm", [
      "install",
      "--prefer-offline",
      "--no-audit",
      "--no-fund",
      `./${filename}`,
    ]);
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text);
  }

  /** To its end, in the folder. */
  run(program: string, args: readonly string[]): Ran {
    return runIn(this.folder, program, args);
  }

  start(program: string, args: readonly string[]): ChildProcess {
    return spawn(program, args, { cwd: this.folder, env: ENV, stdio: ["ignore", "pipe", "inherit"] });
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}

/** TypeScript of this project on a user's file: what it said, nothing where it is content. */
export function typeCheck(user: InstalledPackage, file: string, flags: readonly string[]): string {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const options = ["--ignoreConfig", "--noEmit", "--strict", "--types", "", "--target", "es2023"];
  return user.run(process.execPath, [tsc, ...options, ...flags, file]).stdout;
}

function runIn(folder: string, program: string, args: readonly string[]): Ran {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, env: ENV, encoding: "utf8" });
  return { status, stdout, stderr };
}
