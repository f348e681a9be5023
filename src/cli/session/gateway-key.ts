/** The key or token that a command shows to a gateway with keys. It is in no message and no output. */
import type { Flag, ParsedArguments } from "../flags.ts";
import type { Io } from "../io.ts";

const KEY_VARIABLE = "VOICEWIRE_KEY";

export const KEY_FLAG: Flag = {
  name: "key",
  value: "KEY",
  about: `Key or token of a gateway with keys; better in ${KEY_VARIABLE}: other users can read a command line`,
};

/** What to say where a gateway lets nobody in with `key`; it does not say itself what is wrong with it. */
export function keyRefused(baseUrl: string, key: string): string {
  if (key === "")
    return `The gateway at ${baseUrl} asks for a key or a token: expected one in ${KEY_VARIABLE}`;
  return (
    `The gateway at ${baseUrl} does not take the key or token of ${KEY_VARIABLE} or --key; ` +
    "its audit log says what is wrong with it"
  );
}

/** Empty: none. */
export function gatewayKey(io: Io, parsed: ParsedArguments): string {
  return (parsed.text(KEY_FLAG.name) ?? io.env[KEY_VARIABLE] ?? "").trim();
}
