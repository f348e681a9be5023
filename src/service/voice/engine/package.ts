/** Whether the optional voice package is there, without loading it. */
import { createRequire } from "node:module";
import { GatewayError } from "../../../errors.ts";
import { VOICE_PACKAGE, VOICE_PACKAGE_MISSING } from "./engine.ts";

/** Looks where the module at `from` (a file URL) would find it. */
export function isVoicePackageInstalled(from: string = import.meta.url): boolean {
  try {
    createRequire(from).resolve(VOICE_PACKAGE);
    return true;
  } catch {
    // Not being found is the answer, not a fault.
    return false;
  }
}

/** Throws GatewayError `voice_package_missing` with the command that mends it. */
export function requireVoicePackage(from: string = import.meta.url): void {
  if (!isVoicePackageInstalled(from)) throw new GatewayError("voice_package_missing", VOICE_PACKAGE_MISSING);
}
