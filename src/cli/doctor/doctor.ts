/** `voicewire doctor`: runs the checks and prints a line each; exit code 1 where one failed. */

import { toGatewayError } from "../../errors.ts";
import { EXIT, messageWithCode, usageError } from "../exit.ts";
import { type Flag, type ParsedArguments, parseArguments } from "../flags.ts";
import type { CommandModule } from "../help.ts";
import { type Io, mayStyle } from "../io.ts";
import { CONFIG_FLAG, settingFlags, settingsFrom, settingsOf } from "../settings.ts";
import {
  CHECKS,
  type Check,
  type CheckContext,
  type CheckResult,
  describeSettings,
} from "./doctor-checks.ts";

const FLAGS: readonly Flag[] = [
  { name: "json", about: "The results as one JSON object" },
  CONFIG_FLAG,
  ...settingFlags(),
];

export const doctor: CommandModule = {
  help: {
    name: "doctor",
    usage: ["doctor [FLAGS]"],
    about:
      "Checks what voicewire needs: Node, the server's binary, the codecs, the voice and voice models, the ports, the certificate, the settings, " +
      "the keys and who may come in, the cluster, the upstream and the other services, the page. Give it the flags of serve to check those. Exit code 1 where a check fails.",
    flags: FLAGS,
    examples: [
      { line: "voicewire doctor", about: "with the settings of the environment" },
      {
        line: "voicewire doctor --upstream-region eu",
        about: "whether the vendor takes the key in its EU region",
      },
      { line: "voicewire doctor --json | jq '.checks[] | select(.status != \"ok\")'", about: "for programs" },
    ],
  },
  run: runDoctor,
};

type NamedResult = CheckResult & { readonly name: string };

async function runDoctor(io: Io, args: readonly string[]): Promise<number> {
  const parsed = parseArguments(args, FLAGS);
  const [surplus] = parsed.positionals;
  if (surplus !== undefined) throw usageError(`Argument "${surplus}": doctor takes flags only`, surplus);
  const isJson = parsed.has("json");
  const results: NamedResult[] = [];
  const report = (result: NamedResult) => {
    results.push(result);
    if (!isJson) io.stdout.write(renderLine(result, mayStyle(io.stdout, io.env)));
  };
  const context = contextOf(io, parsed, report);
  for (const check of CHECKS) report({ name: check.name, ...(await runCheck(check, context)) });
  const hasFailed = results.some((result) => result.status === "fail");
  if (isJson) io.stdout.write(`${JSON.stringify({ ok: !hasFailed, checks: results }, null, 2)}\n`);
  else io.stdout.write(`\n${summaryOf(results)}\n`);
  return hasFailed ? EXIT.other : EXIT.ok;
}

function summaryOf(results: readonly NamedResult[]): string {
  if (results.some(({ status }) => status === "fail"))
    return "Something is missing: see the lines marked fail";
  const mayTrouble = results.some(({ status }) => status === "warn");
  return mayTrouble ? "voicewire runs; see the lines marked warn" : "All is well";
}

/** With wrong settings the other checks are still of use: they go on with the defaults. */
function contextOf(io: Io, parsed: ParsedArguments, report: (result: NamedResult) => void): CheckContext {
  try {
    const settings = settingsOf(io, parsed);
    report({ name: "settings", ...describeSettings(settings) });
    return { io, config: settings.config };
  } catch (thrown) {
    const fix = "correct it, see docs/configuration.md; the checks below use the defaults";
    report({ name: "settings", status: "fail", detail: messageWithCode(thrown), fix });
    return { io, config: settingsFrom({ flags: new Map(), env: {}, readFile: () => "{}" }).config };
  }
}

/** What a check throws is its failure. */
async function runCheck(check: Check, context: CheckContext): Promise<CheckResult> {
  try {
    return await check.run(context);
  } catch (thrown) {
    const fix = typeof check.fix === "function" ? check.fix(toGatewayError(thrown).code) : check.fix;
    return { status: "fail", detail: messageWithCode(thrown), ...(fix === undefined ? {} : { fix }) };
  }
}

const COLOURS = { ok: "\x1b[32m", warn: "\x1b[33m", fail: "\x1b[31m" } as const;

function renderLine({ name, status, detail, fix }: NamedResult, isStyled: boolean): string {
  const mark = isStyled ? `${COLOURS[status]}${status.padEnd(4)}\x1b[0m` : status.padEnd(4);
  const advice = fix === undefined ? "" : `\n${" ".repeat(19)}-> ${fix}`;
  return `${mark}  ${name.padEnd(12)} ${detail}${advice}\n`;
}
