/**
 * Resolves the table of config.ts, for the command line and for programs that embed the gateway: flag, then a program's
 * option, then environment, then JSON file, then default. An error names the setting, where its value came from, the value
 * (never a secret one) and what is allowed.
 */
import { readFileSync } from "node:fs";
import { type Config, SETTINGS, type Setting } from "../config.ts";
import { GatewayError } from "../errors.ts";
import { jsonFault } from "../kit/json-fault.ts";
import type { Flag, ParsedArguments } from "./flags.ts";
import type { Io } from "./io.ts";
import { didYouMean } from "./suggest.ts";

/** Where a setting's value came from. */
type Origin = "flag" | "option" | "environment" | "file" | "default";

interface SettingsSources {
  /** Values of flags, by flag name. */
  readonly flags?: ReadonlyMap<string, string>;
  /** Switches that were given, by flag name: for boolean settings. */
  readonly switches?: ReadonlyMap<string, boolean>;
  /** What a program gives, by the settings' keys; undefined counts as not given. */
  readonly options?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Reads the file of `--config` or VOICEWIRE_CONFIG; its error's message is shown. Without it none is read. */
  readFile?(path: string): string;
}

export interface ResolvedSettings {
  readonly config: Config;
  /** By key, where each value came from. */
  readonly origins: ReadonlyMap<string, Origin>;
  /** The JSON file that was read. */
  readonly file: string | undefined;
}

/** Others' own names for the same, read after ours: people have them set already. */
const FOREIGN_ENV: Readonly<Record<string, readonly string[]>> = {
  upstreamKey: ["ELEVENLABS_API_KEY"],
  twilioAuthToken: ["TWILIO_AUTH_TOKEN"],
  otlpEndpoint: ["OTEL_EXPORTER_OTLP_ENDPOINT"],
};

export const CONFIG_FLAG: Flag = {
  name: "config",
  value: "FILE",
  about: "JSON file with settings (or VOICEWIRE_CONFIG)",
};

/** The table's rows as command line flags; with `only`, just those keys. */
export function settingFlags(only?: readonly string[]): Flag[] {
  const chosen = only === undefined ? SETTINGS : SETTINGS.filter((row) => only.includes(row.key));
  return chosen.map((row) => ({
    name: row.flag,
    ...(row.kind === "boolean" ? {} : { value: placeholder(row) }),
    about: `${row.about} (${describeDefault(row)})`,
  }));
}

/** Throws `invalid_config` at the first value that is out of range, of the wrong type or of an unknown name. */
export function settingsFrom(sources: SettingsSources): ResolvedSettings {
  const { options = {}, readFile } = sources;
  checkNames(options, "Option");
  const file = nonEmpty(sources.flags?.get(CONFIG_FLAG.name)) ?? nonEmpty(sources.env?.VOICEWIRE_CONFIG);
  const fromFile = file === undefined || readFile === undefined ? {} : readSettingsFile(file, readFile);
  const values: Record<string, string | number | boolean> = {};
  const origins = new Map<string, Origin>();
  for (const row of SETTINGS) {
    const { value, origin } = resolveRow(row, sources, { fromFile, file });
    values[row.key] = value;
    origins.set(row.key, origin);
  }
  // The loop has set every row of the table, each to its row's kind: that is what Config says.
  const config = values as unknown as Config;
  checkUrl(config, origins);
  return { config, origins, file };
}

interface FileValues {
  readonly fromFile: Readonly<Record<string, unknown>>;
  readonly file: string | undefined;
}

function resolveRow(row: Setting, sources: SettingsSources, { fromFile, file }: FileValues) {
  // A command's own switch may have the name of a setting that is none.
  const switched = row.kind === "boolean" ? sources.switches?.get(row.flag) : undefined;
  const flagged = sources.flags?.get(row.flag) ?? switched;
  if (flagged !== undefined)
    return { value: check(row, flagged, `flag --${row.flag}`), origin: "flag" as const };
  const option = sources.options?.[row.key];
  if (option !== undefined) return { value: check(row, option, "option"), origin: "option" as const };
  // An empty variable counts as unset: container files write `NAME=` for "no value".
  for (const name of [row.env, ...(FOREIGN_ENV[row.key] ?? [])]) {
    const text = nonEmpty(sources.env?.[name]);
    if (text !== undefined) return { value: check(row, text, name), origin: "environment" as const };
  }
  if (Object.hasOwn(fromFile, row.key)) {
    return { value: check(row, fromFile[row.key], `file ${file}`), origin: "file" as const };
  }
  return { value: row.default, origin: "default" as const };
}

function readSettingsFile(path: string, readFile: (path: string) => string): Record<string, unknown> {
  const unusable = (reason: string, facts: { readonly cause?: unknown } = {}): GatewayError =>
    new GatewayError("invalid_config", `Settings file "${path}" can't be used: ${reason}`, {
      field: CONFIG_FLAG.name,
      ...facts,
    });
  let text: string;
  try {
    text = readFile(path);
  } catch (cause) {
    throw unusable(cause instanceof Error ? cause.message : String(cause), { cause });
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (thrown) {
    // Without its cause, which quotes the file.
    throw unusable(jsonFault(text, thrown));
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new GatewayError("invalid_config", `Settings file "${path}": expected one JSON object`, {
      field: CONFIG_FLAG.name,
    });
  }
  checkNames(parsed, `Settings file "${path}"`);
  return parsed as Record<string, unknown>;
}

/** `source` in words, for the error. */
function checkNames(values: object, source: string): void {
  const keys = SETTINGS.map((row) => row.key);
  for (const key of Object.keys(values)) {
    if (keys.some((known) => known === key)) continue;
    const hint = didYouMean(key, keys);
    throw new GatewayError("invalid_config", `${source}: unknown setting "${key}"${hint}`, { field: key });
  }
}

/** `raw` as a value of the row's kind. Text (flag, environment) and JSON values are both taken. */
function check(row: Setting, raw: unknown, source: string): string | number | boolean {
  const value = convert(row, raw);
  if (value !== undefined) return value;
  const shown = row.isSecret ? "(not shown)" : JSON.stringify(raw);
  throw new GatewayError(
    "invalid_config",
    `Setting ${row.key} (${source}): ${shown}, expected ${describeRange(row)}`,
    { field: row.key },
  );
}

function convert(row: Setting, raw: unknown): string | number | boolean | undefined {
  switch (row.kind) {
    case "integer":
      return integerIn(raw, row);
    case "optionalPort":
      return raw === "off" ? raw : integerIn(raw, { min: 0, max: 65_535 });
    case "count":
      return raw === "auto" ? raw : integerIn(raw, row);
    case "boolean":
      if (typeof raw === "boolean") return raw;
      if (raw === "true" || raw === "1" || raw === "yes" || raw === "on") return true;
      if (raw === "false" || raw === "0" || raw === "no" || raw === "off") return false;
      return undefined;
    case "choice": {
      // A JSON file may say 64 where the choice is "64".
      const text = typeof raw === "number" ? String(raw) : raw;
      return row.choices?.find((choice) => choice === text);
    }
    case "string":
      return typeof raw === "string" ? raw : undefined;
  }
}

function integerIn(raw: unknown, { min, max }: Pick<Setting, "min" | "max">): number | undefined {
  const isText = typeof raw === "string" && /^[+-]?\d+$/.test(raw.trim());
  const number = isText ? Number(raw) : raw;
  const isInRange =
    typeof number === "number" &&
    Number.isSafeInteger(number) &&
    number >= (min ?? Number.MIN_SAFE_INTEGER) &&
    number <= (max ?? Number.MAX_SAFE_INTEGER);
  return isInRange ? number : undefined;
}

/** What is allowed, in words: for errors, the help and docs/configuration.md. */
export function describeRange(row: Setting): string {
  switch (row.kind) {
    case "integer":
      return `an integer from ${row.min ?? "any"} to ${row.max ?? "any"}`;
    case "optionalPort":
      return "`off` or an integer from 0 to 65535";
    case "count":
      return `\`auto\` or an integer from ${row.min} to ${row.max}`;
    case "boolean":
      return "true or false";
    case "choice":
      return `one of ${(row.choices ?? []).join(", ")}`;
    case "string":
      return row.key === "upstreamUrl" ? "`embedded`, or http(s) URLs with commas" : "a text";
  }
}

function describeDefault(row: Setting): string {
  const range = row.kind === "integer" || row.kind === "count" ? `${row.min}-${row.max}; ` : "";
  const choices = row.kind === "choice" ? `${row.choices?.join("|")}; ` : "";
  return `${range}${choices}default ${row.default === "" ? "none" : row.default}`;
}

function placeholder(row: Setting): string {
  if (row.kind === "optionalPort") return "PORT";
  if (row.kind === "count") return "N";
  if (row.kind === "integer") return row.unit === "ms" ? "MS" : "N";
  return row.kind === "choice" ? "CHOICE" : "TEXT";
}

/** The one text with a form of its own: a bad URL would only show at the first request otherwise. */
function checkUrl({ upstreamUrl }: Config, origins: ReadonlyMap<string, Origin>): void {
  if (upstreamUrl === "embedded") return;
  const bad = entriesOf(upstreamUrl).find((url) => !/^https?:/i.test(url) || !URL.canParse(url));
  if (bad === undefined) return;
  // A URL can hold a password, and is not repeated.
  const what =
    bad === "" ? "an empty entry" : bad === "embedded" ? "`embedded` in a list" : "an entry that is no URL";
  throw new GatewayError(
    "invalid_config",
    `Setting upstreamUrl (${origins.get("upstreamUrl")}): ${what}, expected \`embedded\` alone, or http(s) URLs with commas`,
    { field: "upstreamUrl" },
  );
}

/** A setting that is a list with commas. Empty entries stay: they are refused by name. */
export function entriesOf(setting: string): string[] {
  return setting.split(",").map((entry) => entry.trim());
}

/** From a command's own sources: its flags, its environment, the file that they name. */
export function settingsOf({ env }: Io, { values, switches }: ParsedArguments): ResolvedSettings {
  return settingsFrom({
    flags: values,
    switches,
    env,
    readFile: (path) => readFileSync(path, "utf8"),
  });
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}
