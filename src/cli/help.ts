/** The help of voicewire and of each command, laid out for a terminal; every page shows examples. */
import type { Flag } from "./flags.ts";
import type { Command } from "./io.ts";
import { textColumns, wrapLines } from "./output/terminal-text.ts";

interface HelpPage {
  readonly name: string;
  /** How it is called, without the program's name; one line each. */
  readonly usage: readonly string[];
  /** A few sentences. */
  readonly about: string;
  readonly flags: readonly Flag[];
  readonly examples: readonly { readonly line: string; readonly about: string }[];
}

/** What the file of a command exports. */
export interface CommandModule {
  readonly help: HelpPage;
  readonly run: Command;
}

const HELP_FLAG: Flag = { name: "help", short: "h", about: "Show this help" };

const EXIT_CODES =
  "Exit codes: 0 ok, 1 failed, 2 wrong usage or setting, 3 port in use, 4 gateway, upstream, key or voice not available, " +
  "130 interrupted.";

/** The page of `voicewire --help`. */
export function renderOverview(
  commands: readonly { readonly name: string; readonly summary: string }[],
  columns: number,
): string {
  const width = pageWidth(columns);
  const rows = commands.map(({ name, summary }) => ({ left: name, right: summary }));
  return [
    "voicewire: text in, exact audio frames and their timing out, to any number of listeners",
    "",
    "Usage: voicewire COMMAND [FLAGS]",
    "",
    ...table(rows, width),
    "",
    "Examples:",
    ...examples(
      [
        { line: "voicewire serve", about: "start the gateway with the built-in voice, then open its page" },
        { line: 'voicewire say "Hello there"', about: "speak; the words light up as they are spoken" },
        { line: "voicewire say --out hello.wav Hello", about: "speak to a file" },
        { line: "voicewire doctor", about: "check the installation" },
      ],
      width,
    ),
    "",
    "voicewire help COMMAND shows the flags of a command; --version the version.",
    ...paragraph(EXIT_CODES, width),
    "",
  ].join("\n");
}

/** The page of `voicewire help COMMAND`. */
export function renderPage(page: HelpPage, columns: number): string {
  const width = pageWidth(columns);
  const rows = [...page.flags, HELP_FLAG]
    .filter((flag) => !flag.isHidden)
    .map((flag) => ({
      left: `${flag.short === undefined ? "    " : `-${flag.short}, `}--${flag.name}${flag.value === undefined ? "" : ` ${flag.value}`}`,
      right: flag.about,
    }));
  return [
    ...page.usage.map((line, index) => `${index === 0 ? "Usage:" : "      "} voicewire ${line}`),
    "",
    ...paragraph(page.about, width),
    "",
    "Flags:",
    ...table(rows, width),
    "",
    "Examples:",
    ...examples(page.examples, width),
    "",
  ].join("\n");
}

function pageWidth(columns: number): number {
  return Math.min(Math.max(columns, 40), 100);
}

function paragraph(text: string, width: number): string[] {
  return [...wrapLines(text, width)].map((line) => text.slice(line.start, line.end));
}

/** Two columns; the right one is wrapped, and goes below where the left one is too long. */
function table(rows: readonly { readonly left: string; readonly right: string }[], width: number): string[] {
  const longest = Math.max(...rows.map((row) => textColumns(row.left)));
  const gap = 2;
  const leftWidth = Math.min(longest, 30) + 2 * gap;
  return rows.flatMap(({ left, right }) => {
    const lines = paragraph(right, width - leftWidth);
    const head = `${" ".repeat(gap)}${left}`;
    const fits = head.length + gap <= leftWidth;
    const indented = lines.map((line) => `${" ".repeat(leftWidth)}${line}`);
    if (!fits) return [head, ...indented];
    return [`${head.padEnd(leftWidth)}${lines[0] ?? ""}`, ...indented.slice(1)];
  });
}

function examples(list: HelpPage["examples"], width: number): string[] {
  return list.flatMap(({ line, about }) => [
    `  ${line}`,
    ...paragraph(about, width - 6).map((text) => `      ${text}`),
  ]);
}
