/** A setting has one name, its key; flag and variable are the same words spelled as the place wants them. */

/** What a row of the tables says. */
export interface SettingRow {
  /** Key in the settings object and in the JSON file. */
  readonly key: string;
  /** Long flag without the dashes, where it is not the key: `max-sessions` of `maxSessions`. */
  readonly flag?: string;
  /** `optionalPort`: a port, or the word `off`. `count`: an integer, or the word `auto`. */
  readonly kind: "string" | "integer" | "boolean" | "choice" | "optionalPort" | "count";
  readonly default: string | number | boolean;
  /** Inclusive, of integers and counts. */
  readonly min?: number;
  readonly max?: number;
  readonly choices?: readonly string[];
  /** Default: a number of what `about` says. */
  readonly unit?: "ms" | "bytes" | "characters" | "connections" | "MB" | "%";
  /** Never printed or logged. */
  readonly isSecret?: boolean;
  readonly about: string;
}

export interface Setting extends SettingRow {
  readonly flag: string;
  /** The environment's variable: `VOICEWIRE_MAX_SESSIONS` of `max-sessions`. */
  readonly env: string;
}

export function withNames(row: SettingRow): Setting {
  const flag = row.flag ?? row.key.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
  return { ...row, flag, env: `VOICEWIRE_${flag.replaceAll("-", "_").toUpperCase()}` };
}
