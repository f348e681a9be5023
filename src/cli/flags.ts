/** Reads a command's arguments by a table of flags: `--flag value`, `--flag=value`, `-f value`, `--no-switch`, `--`. */
import { usageError } from "./exit.ts";
import { didYouMean } from "./suggest.ts";

export interface Flag {
  /** Long name without the dashes. */
  readonly name: string;
  readonly short?: string;
  /** What stands for the value in the help, e.g. `FILE`; a flag without it is a switch. */
  readonly value?: string;
  readonly about: string;
  /** Not shown in the help. */
  readonly isHidden?: boolean;
}

export interface ParsedArguments {
  readonly positionals: readonly string[];
  /** The text after a flag with a value; the last one where it was repeated. */
  text(name: string): string | undefined;
  /** Every text after a flag with a value, in order. */
  all(name: string): readonly string[];
  /** Whether a switch was set; the last of `--x` and `--no-x` wins. */
  has(name: string): boolean;
  /** Every flag with a value that was given, by name. */
  readonly values: ReadonlyMap<string, string>;
  /** Every switch that was given, by name. */
  readonly switches: ReadonlyMap<string, boolean>;
}

/** Throws `invalid_config` for unknown flags (with a suggestion), missing values and values for switches. */
export function parseArguments(args: readonly string[], flags: readonly Flag[]): ParsedArguments {
  const positionals: string[] = [];
  const values = new Map<string, string>();
  const given: { readonly name: string; readonly value: string }[] = [];
  const switches = new Map<string, boolean>();
  for (let index = 0; index < args.length; index++) {
    const argument = args[index] ?? "";
    if (argument === "--") {
      positionals.push(...args.slice(index + 1));
      break;
    }
    if (argument === "-" || !argument.startsWith("-")) {
      positionals.push(argument);
      continue;
    }
    const { flag, inline, isNegated } = recognise(argument, flags);
    if (flag.value === undefined) {
      if (inline !== undefined)
        throw usageError(`Flag --${flag.name}: takes no value, got "${inline}"`, flag.name);
      switches.set(flag.name, !isNegated);
      continue;
    }
    const value = inline ?? valueAfter(args[index + 1], flag);
    if (inline === undefined) index++;
    values.set(flag.name, value);
    given.push({ name: flag.name, value });
  }
  return {
    positionals,
    values,
    switches,
    text: (name) => values.get(name),
    all: (name) => given.filter((flag) => flag.name === name).map((flag) => flag.value),
    has: (name) => switches.get(name) ?? false,
  };
}

interface Recognised {
  readonly flag: Flag;
  /** What stands behind `=`. */
  readonly inline: string | undefined;
  readonly isNegated: boolean;
}

function recognise(argument: string, flags: readonly Flag[]): Recognised {
  const equals = argument.indexOf("=");
  const typed = equals === -1 ? argument : argument.slice(0, equals);
  const inline = equals === -1 ? undefined : argument.slice(equals + 1);
  if (!typed.startsWith("--")) {
    const flag = flags.find((candidate) => candidate.short === typed.slice(1));
    if (flag !== undefined) return { flag, inline, isNegated: false };
    throw usageError(
      `Unknown flag "${typed}": see --help, or put "--" before text that begins with a dash`,
      typed,
    );
  }
  const name = typed.slice(2);
  const flag = flags.find((candidate) => candidate.name === name);
  if (flag !== undefined) return { flag, inline, isNegated: false };
  const negated = flags.find((candidate) => candidate.value === undefined && `no-${candidate.name}` === name);
  if (negated !== undefined) return { flag: negated, inline, isNegated: true };
  const shown = flags.filter((candidate) => !candidate.isHidden).map((candidate) => candidate.name);
  const hint = didYouMean(name, shown, "--");
  throw usageError(`Unknown flag "${typed}"${hint === "" ? ": see --help" : hint}`, typed);
}

/** A following flag is not a value; "-" (stdout) and negative numbers (for a clear range error) are. */
function valueAfter(next: string | undefined, flag: Flag): string {
  if (next !== undefined && (!next.startsWith("-") || next === "-" || /^-\d/.test(next))) return next;
  throw usageError(`Flag --${flag.name}: has no value, expected --${flag.name} ${flag.value}`, flag.name);
}

/** A flag's value as an integer of the range; `fallback` where the flag was not given. */
export function integerFlag(
  parsed: ParsedArguments,
  name: string,
  range: { readonly min: number; readonly max: number; readonly fallback: number },
): number {
  const text = parsed.text(name);
  if (text === undefined) return range.fallback;
  const number = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number >= range.min && number <= range.max) return number;
  throw usageError(`Flag --${name}: "${text}", expected an integer from ${range.min} to ${range.max}`, name);
}

/** A flag's value as one of `choices`; undefined where the flag was not given. */
export function choiceFlag<const C extends string>(
  parsed: ParsedArguments,
  name: string,
  choices: readonly C[],
): C | undefined {
  const text = parsed.text(name);
  if (text === undefined) return undefined;
  const choice = choices.find((candidate) => candidate === text);
  if (choice !== undefined) return choice;
  const hint = didYouMean(text, choices);
  throw usageError(`Flag --${name}: "${text}", expected one of ${choices.join(", ")}${hint}`, name);
}
