/** How a text is made ready and where it is queued: --clean, --replace, --replacements, --priority. */
import { readFileSync } from "node:fs";
import {
  type QueueOptions,
  replacements as REPLACEMENTS,
  type Replacement,
  type TextOptions,
} from "../../protocol/commands.ts";
import { CLEANINGS, type Cleaning } from "../../protocol/vocabulary.ts";
import { usageError } from "../exit.ts";
import { type Flag, integerFlag, type ParsedArguments } from "../flags.ts";
import { didYouMean } from "../suggest.ts";

export const TEXT_FLAGS: readonly Flag[] = [
  { name: "clean", value: "LIST", about: `Do not speak: ${CLEANINGS.join(", ")}, with commas between` },
  {
    name: "replace",
    value: "FROM=TO",
    about: "Say TO where the text has FROM as a whole word; may be repeated",
  },
  {
    name: "replacements",
    value: "FILE",
    about: 'More of them: JSON [{"from", "to", "ignore_case", "whole_word"}]',
  },
];

export const PRIORITY_FLAG: Flag = {
  name: "priority",
  value: "N",
  about: "-100 to 100: before what waits in the session with a lower one (default 0)",
};

/** Throws `invalid_config` for what the protocol would refuse. */
export function textOptionsOf(parsed: ParsedArguments): TextOptions {
  const clean = cleaningsOf(parsed.text("clean"));
  // The command line's own come first: of two rules that fit alike the first one counts.
  const given = parsed.all("replace").map(replacementOf);
  const file = parsed.text("replacements");
  const replacements = [...given, ...(file === undefined ? [] : readReplacements(file))];
  if (!REPLACEMENTS.safeParse(replacements).success) {
    throw usageError(
      "Flag --replace: expected at most 256 replacements of at most 200 characters a side",
      "replace",
    );
  }
  return {
    ...(clean === undefined ? {} : { clean }),
    ...(replacements.length === 0 ? {} : { replacements }),
  };
}

/** Throws `invalid_config` outside of -100 to 100. */
export function queueOptionsOf(parsed: ParsedArguments): QueueOptions {
  if (parsed.text("priority") === undefined) return {};
  return { priority: integerFlag(parsed, "priority", { min: -100, max: 100, fallback: 0 }) };
}

function cleaningsOf(list: string | undefined): readonly Cleaning[] | undefined {
  if (list === undefined) return undefined;
  const names = list.split(",").map((name) => name.trim());
  return names.map((name) => {
    const cleaning = CLEANINGS.find((candidate) => candidate === name);
    if (cleaning !== undefined) return cleaning;
    const hint = didYouMean(name, CLEANINGS);
    throw usageError(`Flag --clean: "${name}", expected some of ${CLEANINGS.join(",")}${hint}`, "clean");
  });
}

function replacementOf(text: string): Replacement {
  const equals = text.indexOf("=");
  if (equals > 0) return { from: text.slice(0, equals), to: text.slice(equals + 1) };
  throw usageError('Flag --replace: expected FROM=TO, as in --replace "SQL=sequel"', "replace");
}

function readReplacements(file: string): readonly Replacement[] {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    // What JSON.parse says of a file may quote it.
    const reason = cause instanceof SyntaxError ? "no JSON" : cause instanceof Error ? cause.message : cause;
    throw usageError(`Replacements "${file}" can't be read: ${reason}`, "replacements");
  }
  const checked = REPLACEMENTS.safeParse(content);
  // The protocol's own type writes `?` without `undefined`; JSON can't hold one.
  if (checked.success) return checked.data as Replacement[];
  const [issue] = checked.error.issues;
  const where = issue === undefined ? "" : issue.path.join(".");
  throw usageError(
    `Replacements "${file}": ${where === "" ? "" : `${where}: `}${issue?.message ?? "not valid"}; ` +
      'expected [{"from": "...", "to": "..."}]',
    "replacements",
  );
}
