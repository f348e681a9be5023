/** The command of bench/simulate-cluster.mjs. */
import { parameterTables, readParameters } from "./parameters.ts";
import { simulate } from "./report.ts";

/** Returns the exit code. `results`: bench/results.json. */
export async function main(args: readonly string[], results: URL): Promise<number> {
  const tables = parameterTables(results);
  const parameters = readParameters(tables, args);
  if (typeof parameters === "string") {
    console.error(
      `${parameters}\nUsage: node bench/simulate-cluster.mjs [--FLAG NUMBER]...: docs/capacity.md lists the flags`,
    );
    return 2;
  }
  for (const { title, markdown } of await simulate(parameters, tables))
    console.log(`## ${title}\n\n${markdown}\n`);
  return 0;
}
