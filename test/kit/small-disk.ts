/** A program whose folder is a disk of its own, a few MB small: a tmpfs that nobody else sees and that goes with it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Of the file that fills it: at last single bytes. */
const PIECE_BYTES = [65_536, 4096, 1];
const FILLER = "filler";

/** Whether this user may mount a tmpfs in a namespace of its own. */
export function canMount(): boolean {
  const { status } = spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "tmpfs", tmpdir()]);
  return status === 0;
}

export class OnSmallDisk implements AsyncDisposable {
  /** As the program names it. */
  readonly folder: string;
  readonly child: ChildProcess;
  #printed = "";

  /** `argsFor`: node's, which have the folder in them. */
  constructor(argsFor: (folder: string) => readonly string[], { megabytes }: { readonly megabytes: number }) {
    this.folder = mkdtempSync(join(tmpdir(), "voicewire-disk-"));
    const mount = `mount -t tmpfs -o mode=700,size=${megabytes}m tmpfs "$0" && exec "$@"`;
    this.child = spawn(
      "unshare",
      ["-rm", "sh", "-c", mount, this.folder, process.execPath, ...argsFor(this.folder)],
      {
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on("data", (data: Buffer) => {
        this.#printed += data.toString();
      });
  }

  get printed(): string {
    return this.#printed;
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Takes all the room that is left. */
  fill(): void {
    const file = openSync(this.#filler, "a");
    for (const bytes of PIECE_BYTES) while (hasWritten(file, bytes));
    closeSync(file);
  }

  free(): void {
    rmSync(this.#filler);
  }

  get #filler(): string {
    return `/proc/${this.child.pid}/root${join(this.folder, FILLER)}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isAlive) {
      const exited = once(this.child, "exit");
      this.child.kill("SIGKILL");
      await exited;
    }
    rmSync(this.folder, { recursive: true });
  }
}

function hasWritten(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) === bytes;
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOSPC") return false;
    throw thrown;
  }
}
