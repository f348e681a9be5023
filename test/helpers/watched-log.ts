/**
 * The log of what tests start: every line is looked through for keys, tokens, audio, and what clients of the same file say. After
 * each file a leak fails it (leaks.ts). Lines go nowhere else.
 */
import pino from "pino";
import { type Logger, logWith } from "../../src/kit/log.ts";

const SECRETS: readonly (readonly [string, RegExp])[] = [
  ["a static key", /vwk_[\w-]+_[\w-]{20,}/],
  ["a token", /eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{16,}/],
  ["audio, or another long value in base64", /[A-Za-z0-9+/]{300,}/],
];
/** Shorter ones may be words of ours. */
const MIN_TEXT_CHARS = 16;
const MAX_TEXTS = 1000;
const MAX_LEAKS = 20;

export class Watch {
  readonly #texts = new Set<string>();
  #leaks: string[] = [];

  said(text: string): void {
    if (text.length >= MIN_TEXT_CHARS && this.#texts.size < MAX_TEXTS) this.#texts.add(text);
  }

  /** `where`: whose output it is. */
  look(where: string, output: string): void {
    const found = SECRETS.filter(([, pattern]) => pattern.test(output)).map(([what]) => what);
    if ([...this.#texts].some((text) => output.includes(text))) found.push("a client's text");
    for (const what of found) {
      if (this.#leaks.length < MAX_LEAKS) this.#leaks.push(`${what} in ${where}: ${output.slice(0, 2000)}`);
    }
  }

  /** And forgets them, and what was said. */
  takeLeaks(): readonly string[] {
    const leaks = this.#leaks;
    this.#leaks = [];
    this.#texts.clear();
    return leaks;
  }
}

/** Files of one worker share it, one after the other. */
export const watch = new Watch();

/** As `createLog` writes them; its methods may be taken apart. */
export const watchedLog: Logger = logWith(
  pino({ level: "debug", base: null }, { write: (line: string) => watch.look("the log", line) }),
  {},
);
