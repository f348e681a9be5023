/** What the commands about keys and tokens have in common: the file, and lists of grants. */
import { ACTIONS, type Action } from "../../access/grants.ts";
import { usageError } from "../exit.ts";
import type { Flag, ParsedArguments } from "../flags.ts";
import type { Io } from "../io.ts";
import { CONFIG_FLAG, entriesOf, settingsOf } from "../settings.ts";
import { didYouMean } from "../suggest.ts";

const DEFAULT_FILE = "keys.json";

export const FILE_FLAGS: readonly Flag[] = [
  {
    name: "file",
    value: "FILE",
    about: `The key file; default: the setting keys-file (VOICEWIRE_KEYS_FILE), else ${DEFAULT_FILE}`,
  },
  CONFIG_FLAG,
];
export const GRANT_FLAGS: readonly Flag[] = [
  { name: "sessions", value: "LIST", about: "Sessions, with commas: names, or beginnings such as support-*" },
  { name: "allow", value: "LIST", about: `What may be done, with commas: ${ACTIONS.join(", ")}` },
];

export function keyFilePath(io: Io, parsed: ParsedArguments): string {
  const given = parsed.text("file");
  if (given !== undefined) return given;
  const { keysFile } = settingsOf(io, parsed).config;
  return keysFile === "" ? DEFAULT_FILE : keysFile;
}

/** undefined where the flag was not given. Throws `invalid_config`. */
export function sessionsOf(parsed: ParsedArguments): string[] | undefined {
  const text = parsed.text("sessions");
  return text === undefined ? undefined : entriesOf(text);
}

/** undefined where the flag was not given. Throws `invalid_config`. */
export function actionsOf(parsed: ParsedArguments): Action[] | undefined {
  const text = parsed.text("allow");
  if (text === undefined) return undefined;
  return entriesOf(text).map((entry) => {
    const action = ACTIONS.find((known) => known === entry);
    if (action !== undefined) return action;
    const hint = didYouMean(entry, ACTIONS);
    throw usageError(`Flag --allow: "${entry}", expected any of ${ACTIONS.join(", ")}${hint}`, "allow");
  });
}
