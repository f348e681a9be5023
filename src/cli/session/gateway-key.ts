/** The key or token that a command shows to a gateway with keys. It is in no message and no output. */
import type { Flag, ParsedArguments } from "../flags.ts";
import type { Io } from "../io.ts";

const KEY_VARIABLE = "VOICEWIRE_KEY";

export const KEY_FLAG: Flag = {
  name: "key",
  value: "KEY",
  about: `Key or token of a gateway with keys; better in ${KEY_VARIABLE}: other users can read a command line`,
};

/** Empty: none. */
export function gatewayKey(io: Io, parsed: ParsedArguments): string {
  return (parsed.text(KEY_FLAG.name) ?? io.env[KEY_VARIABLE] ?? "").trim();
}
