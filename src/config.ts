/**
 * Every setting of voicewire, as one table: key, unit, default and range. The command line,
 * the help, docs/configuration.md and `doctor` all read this; nothing else knows a default.
 */
import { CLUSTER } from "./config/cluster.ts";
import { SERVER } from "./config/server.ts";
import { type Setting, type SettingRow, withNames } from "./config/setting.ts";
import { SPEECH } from "./config/speech.ts";
import { TELEPHONY } from "./config/telephony.ts";
import { UPSTREAM } from "./config/upstream.ts";

export type { Setting } from "./config/setting.ts";

const ROWS = [
  ...SERVER,
  ...CLUSTER,
  ...UPSTREAM,
  ...TELEPHONY,
  ...SPEECH,
] as const satisfies readonly SettingRow[];

export const SETTINGS: readonly Setting[] = ROWS.map(withNames);

type ValueOf<S> = S extends { kind: "integer" }
  ? number
  : S extends { kind: "optionalPort" }
    ? number | "off"
    : S extends { kind: "count" }
      ? number | "auto"
      : S extends { kind: "boolean" }
        ? boolean
        : S extends { kind: "choice"; choices: readonly (infer C extends string)[] }
          ? C
          : string;
/** The resolved settings: one property a row. */
export type Config = { readonly [S in (typeof ROWS)[number] as S["key"]]: ValueOf<S> };
