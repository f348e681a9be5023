/** Where an Asterisk is: in the folder that ASTERISK_ROOT names (a Debian laid out there), else on this system. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** The first with chan_websocket's JSON control, which a test asks for, in a long-term release. */
const OLDEST_MAJOR = 22;

export interface Installation {
  /** Program and first arguments. */
  readonly command: readonly [string, ...string[]];
  readonly modules: string;
  /** With `documentation/`, without which Asterisk loads no configuration. */
  readonly data: string;
  /** `22.10.1`. */
  readonly version: string;
}

/** null: there is none, or one that is too old. */
export function findAsterisk(root = process.env.ASTERISK_ROOT ?? ""): Installation | null {
  const command = root === "" ? (["asterisk"] as const) : commandIn(root);
  const modules = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib", "usr/lib64"].map(
    (folder) => join(root === "" ? "/" : root, folder, "asterisk/modules"),
  );
  const data = ["usr/share/asterisk", "var/lib/asterisk"].map((folder) =>
    join(root === "" ? "/" : root, folder),
  );
  const found = {
    modules: modules.find((folder) => existsSync(join(folder, "chan_websocket.so"))),
    data: data.find((folder) => existsSync(join(folder, "documentation"))),
    version: command === null ? null : versionOf(command),
  };
  if (command === null || found.modules === undefined || found.data === undefined || found.version === null)
    return null;
  const isNewEnough = Number.parseInt(found.version, 10) >= OLDEST_MAJOR;
  return isNewEnough ? { command, modules: found.modules, data: found.data, version: found.version } : null;
}

/** With the loader and the libraries of that folder: it needs neither root nor chroot, and no library of this system. */
function commandIn(root: string): readonly [string, ...string[]] | null {
  const program = join(root, "usr/sbin/asterisk");
  for (const [loader, libraries] of [
    ["lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"],
    ["lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"],
  ] as const) {
    if (existsSync(join(root, loader)) && existsSync(program))
      return [join(root, loader), "--library-path", join(root, libraries), program];
  }
  return null;
}

function versionOf([program, ...first]: readonly [string, ...string[]]): string | null {
  try {
    const said = execFileSync(program, [...first, "-V"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return /Asterisk (\d+\.[\d.]+)/.exec(said)?.[1] ?? null;
  } catch {
    return null;
  }
}
