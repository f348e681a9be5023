/** Debian's chromium for the page's tests; without it they are skipped with the reason, in CI they fail. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";

/** null where the browser is there; otherwise why the tests are skipped. In CI a missing browser is a failure. */
export function whyNoBrowser(): string | null {
  if (existsSync(CHROMIUM) || process.env.CI) return null;
  return `${CHROMIUM} is missing: apt-get install chromium to run the page's tests`;
}

/** `flags`: more of them. */
export function launchBrowser(flags: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--autoplay-policy=no-user-gesture-required",
      ...flags,
    ],
  });
}
