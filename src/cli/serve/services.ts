/** The other speech services of a gateway, with their keys, and its own voices: the file that `upstreams` names. */
import { readFileSync } from "node:fs";
import type { Config } from "../../config.ts";
import { GatewayError } from "../../errors.ts";
import type { ServiceConfig } from "../../upstream/services/service-config.ts";
import { readUpstreamsFile, type UpstreamsFile } from "../../upstream/services/upstreams-file.ts";
import type { Io } from "../io.ts";

/** Throws invalid_config. */
export function readServices({ upstreams }: Pick<Config, "upstreams">, env: Io["env"]): UpstreamsFile {
  if (upstreams === "") return { services: [], voices: [] };
  return readUpstreamsFile(textOf(upstreams), {
    env: (name) => env[name],
    file: (path) => readFileSync(path, "utf8"),
  });
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new GatewayError("invalid_config", `Setting upstreams can't be used: ${reason}`, {
      field: "upstreams",
      cause,
    });
  }
}

/** For the start line; empty: there are none. */
export function servicesLabel(services: readonly ServiceConfig[]): string {
  return services.length === 0 ? "" : `, and ${services.map(({ name }) => `${name}:`).join(" ")}`;
}
