/** How texts are made ready for speaking where no client says otherwise: from the settings and their file of rules. */
import { readFileSync } from "node:fs";
import { GatewayError } from "../errors.ts";
import { replacements, type TextOptions } from "../protocol/commands.ts";
import { CLEANINGS, type Cleaning } from "../protocol/vocabulary.ts";

/** Throws invalid_config. */
export function textDefaultsOf(config: {
  readonly clean: string;
  readonly replacementsFile: string;
}): Required<TextOptions> {
  return { clean: cleaningsOf(config.clean), replacements: rulesOf(config.replacementsFile) };
}

function cleaningsOf(list: string): Cleaning[] {
  const names = list.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));
  return names.map((name) => {
    const known = CLEANINGS.find((cleaning) => cleaning === name);
    if (known !== undefined) return known;
    throw new GatewayError(
      "invalid_config",
      `Setting clean has ${JSON.stringify(name.slice(0, 40))}, expected any of ${CLEANINGS.join(", ")}`,
      { field: "clean" },
    );
  });
}

function rulesOf(file: string): Required<TextOptions>["replacements"] {
  if (file === "") return [];
  try {
    return replacements.parse(
      JSON.parse(readFileSync(file, "utf8")),
    ) as Required<TextOptions>["replacements"];
  } catch (cause) {
    const reason = cause instanceof Error ? (cause.message.split("\n")[0] ?? "") : "";
    throw new GatewayError(
      "invalid_config",
      `Setting replacements-file can't be used: ${reason}; expected a JSON list of {from, to, ignore_case?, whole_word?}`,
      { field: "replacements-file", cause },
    );
  }
}
