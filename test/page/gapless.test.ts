/** Scheduled buffers meet on exact samples in a real browser: no click between two frames. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchBrowser, whyNoBrowser } from "./browser.ts";
import type {} from "./gapless-entry.ts";

const reason = whyNoBrowser();

describe.skipIf(reason !== null)(`SpeakerOut${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
  let browser: Browser;
  let script: string;

  beforeAll(async () => {
    const entry = fileURLToPath(new URL("./gapless-entry.ts", import.meta.url));
    const [launched, bundle] = await Promise.all([
      launchBrowser(),
      build({ entryPoints: [entry], bundle: true, format: "iife", target: "es2022", write: false }),
    ]);
    browser = launched;
    script = bundle.outputFiles[0]?.text ?? "";
  });

  afterAll(() => browser?.close());

  it("a sine in 20 ms blocks comes out as one sine, to the last sample", async () => {
    const page = await browser.newPage();
    await page.addScriptTag({ content: script });
    const frames = Array.from({ length: 500 }, () => 960);
    expect(await page.evaluate((blocks) => window.worstStep?.(blocks), frames)).toMatchObject({ silent: -1 });
    const { worst } = (await page.evaluate((blocks) => window.worstStep?.(blocks), frames)) ?? { worst: 1 };
    expect(worst).toBeLessThan(1e-4);
    await page.close();
  });

  it("so does one in blocks of odd sizes", async () => {
    const page = await browser.newPage();
    await page.addScriptTag({ content: script });
    const odd = Array.from({ length: 300 }, (_, index) => 101 + ((index * 377) % 1900));
    const { worst } = (await page.evaluate((blocks) => window.worstStep?.(blocks), odd)) ?? { worst: 1 };
    expect(worst).toBeLessThan(1e-4);
    await page.close();
  });
});
