/** The environment of the embedded speech service: ours without secrets. It runs third-party code and needs none of them. */
import { SETTINGS } from "../../config.ts";
import type { Io } from "../io.ts";

const SECRET_NAME = /_(?:key|token|secret)$/i;

/** Without what is named like a secret, and without settings that hold one. */
export function childEnvironment(environment: Io["env"]): Record<string, string | undefined> {
  const secrets = new Set(SETTINGS.filter(({ isSecret }) => isSecret === true).map(({ env }) => env));
  const kept = Object.entries(environment).filter(([name]) => !SECRET_NAME.test(name) && !secrets.has(name));
  return Object.fromEntries(kept);
}
