/** The build of a commit, in a worktree of its own that goes when it is done with. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export class CommitBuild implements Disposable {
  /** File URL of the build, slash at the end. */
  readonly distUrl: string;
  readonly commit: string;
  readonly #root: string;
  readonly #folder: string;

  private constructor(root: string, commit: string, folder: string) {
    this.#root = root;
    this.commit = commit;
    this.#folder = folder;
    this.distUrl = `${pathToFileURL(join(folder, "dist")).href}/`;
  }

  /** `root`: a checkout of the repository with its packages. Throws where there is no such commit, or it can't be built. */
  static make(root: string, name: string): CommitBuild {
    const commit = git(root, "rev-parse", "--verify", "--quiet", `${name}^{commit}`).trim();
    const parent = mkdtempSync(join(tmpdir(), "voicewire-commit-"));
    const build = new CommitBuild(root, commit, join(parent, commit.slice(0, 12)));
    try {
      git(root, "worktree", "add", "--detach", build.#folder, commit);
      build.#install();
      execFileSync("npm", ["run", "build"], { cwd: build.#folder, stdio: ["ignore", "ignore", "inherit"] });
      return build;
    } catch (thrown) {
      build[Symbol.dispose]();
      throw thrown;
    }
  }

  [Symbol.dispose](): void {
    rmSync(join(this.#folder, ".."), { recursive: true, force: true });
    git(this.#root, "worktree", "prune");
  }

  /** The packages are those of this checkout, unless the commit names others. */
  #install(): void {
    const [here, there] = [this.#root, this.#folder].map((folder) =>
      readFileSync(join(folder, "package-lock.json"), "utf8"),
    );
    const packages = join(this.#root, "node_modules");
    if (here === there && existsSync(packages)) symlinkSync(packages, join(this.#folder, "node_modules"));
    else execFileSync("npm", ["ci"], { cwd: this.#folder, stdio: ["ignore", "ignore", "inherit"] });
  }
}

function git(cwd: string, ...args: string[]): string {
  return execFileSync("git", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
