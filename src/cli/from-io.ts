/** Settings from a command's real sources: its flags, its environment, the file they name. */
import { readFileSync } from "node:fs";
import type { ParsedArguments } from "./flags.ts";
import type { Io } from "./io.ts";
import { type ResolvedSettings, settingsFrom } from "./settings.ts";

export function settingsOf(io: Io, parsed: ParsedArguments): ResolvedSettings {
  return settingsFrom({
    flags: parsed.values,
    switches: parsed.switches,
    env: io.env,
    readFile: (path) => readFileSync(path, "utf8"),
  });
}
