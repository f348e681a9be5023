/** What a row of the settings says. */
export interface Setting {
  /** Key in the settings object and in the JSON file. */
  readonly key: string;
  /** Long flag without the dashes. */
  readonly flag: string;
  readonly env: string;
  /** `optionalPort`: a port, or the word `off`. */
  readonly kind: "string" | "integer" | "boolean" | "choice" | "optionalPort";
  readonly default: string | number | boolean;
  /** Inclusive, integers only. */
  readonly min?: number;
  readonly max?: number;
  readonly choices?: readonly string[];
  readonly unit?: "ms" | "bytes" | "characters" | "port" | "connections" | "count" | "MB";
  /** Never printed or logged. */
  readonly isSecret?: boolean;
  readonly about: string;
}
