/** The page end to end: browser, gateway, embedded speech service, real speech. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../../src/gateway.ts";
import { startService } from "../../src/service/service.ts";
import { DEFAULTS } from "../helpers/start-gateway.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { launchBrowser, whyNoBrowser } from "./browser.ts";
import { buildPage } from "./build-page.ts";
import { openPage, type Sample, sampleSpeech, see, untilQuiet } from "./page-driver.ts";

const reason = whyNoBrowser();
/** "Did you" is over, and the next word is lit. */
const HAS_HEARD_TWO_WORDS = () => (window.voicewire?.litWord?.start ?? 0) >= "Did you ".length;
let browser: Browser;
let service: Awaited<ReturnType<typeof startService>>;
let gateway: Gateway;

/** How many words the lit one is away from the word that the gateway put at the played position. */
function wordsOff(sample: Sample): number {
  if (sample.litWord === null) return 0;
  const words =
    sample.utterances.find((utterance) => utterance.id === sample.litWord?.utteranceId)?.words ?? [];
  const heard = words.filter((word) => word.start_ms <= sample.playedMs).length - 1;
  return Math.abs(words.findIndex((word) => word.start === sample.litWord?.start) - heard);
}

describe.skipIf(reason !== null)(
  `page with real speech${reason === null ? "" : ` (skipped: ${reason})`}`,
  () => {
    beforeAll(async () => {
      const [launched, pageFolder, started] = await Promise.all([
        launchBrowser(),
        buildPage(),
        startService({ host: "127.0.0.1", port: 0 }),
      ]);
      browser = launched;
      service = started;
      gateway = await startGateway({
        config: { ...DEFAULTS, port: 0 },
        upstreamBaseUrl: service.url,
        upstreamKey: "test-key",
        log: watchedLog,
        pageFolder,
      });
    });

    afterAll(async () => {
      await browser?.close();
      await gateway?.close();
      await service?.close();
    });

    for (const decoder of ["webcodecs", "wasm"] as const) {
      it(`${decoder}: a typed sentence is heard and each word lights up as it is spoken`, async () => {
        const { page, faults } = await openPage(browser, { url: `${gateway.url}/?decoder=${decoder}` });
        const text = "Dr. Novak heard every single word, didn’t she? 🎉 Naïve café!";
        await page.fill("#text", text);
        await page.click("#speak");
        const samples = await sampleSpeech(page);
        const lit = samples.filter((sample) => sample.litWord !== null);
        expect(lit.length).toBeGreaterThan(10);
        for (const sample of samples) {
          expect(sample.decoder).toBe(decoder);
          expect(wordsOff(sample)).toBeLessThanOrEqual(1);
        }
        expect(samples.filter((sample) => sample.isInStep).length).toBeGreaterThan(samples.length * 0.85);
        for (const { litText } of lit) if (litText !== null) expect(text).toContain(litText);
        expect(new Set(lit.map((sample) => sample.litText)).size).toBeGreaterThanOrEqual(4);
        // Words are lit while there is sound, not in silence.
        expect(lit.filter((sample) => sample.level > 0.003).length).toBeGreaterThan(lit.length * 0.6);
        expect(samples.at(-1)?.decodedRms).toBeGreaterThan(0.02);
        await untilQuiet(page);
        const { utterances, playedMs, decodedBlocks } = await see(page);
        expect(utterances[0]?.state).toBe("done");
        for (const word of ["Dr", "Novak", "word", "Naïve", "café"]) {
          expect(utterances[0]?.words.map((entry) => entry.text).join(" ")).toContain(word);
        }
        expect(Math.abs(playedMs - decodedBlocks * 20)).toBeLessThan(40);
        expect(await page.locator("#bars > li").count()).toBe(1);
        expect(faults).toEqual([]);
        await page.context().close();
      });
    }

    it("a dialogue is stopped with a receipt, and a listener's tab has the same text and stops, too", async () => {
      const { page } = await openPage(browser, { url: `${gateway.url}/?session=talk` });
      const { page: listener } = await openPage(browser, {
        url: `${gateway.url}/?session=talk&role=listener`,
      });
      await listener.click("#sound");
      await page.check("[name=mode][value=dialogue]");
      await page.click("#speak");
      await listener.waitForFunction(() => (window.voicewire?.level ?? 0) > 0.01);
      // The receipt tells what both have heard, and on a busy machine one tab plays later than the other.
      await Promise.all([page, listener].map((tab) => tab.waitForFunction(HAS_HEARD_TWO_WORDS)));
      const spoken = (await see(page)).utterances[0]?.text ?? "";
      const captions = (await see(listener)).utterances[0]?.text ?? "";
      expect(captions.length).toBeGreaterThan(5);
      expect(spoken.startsWith(captions)).toBe(true);
      await page.keyboard.press("Escape");
      await page.waitForSelector(".receipt");
      await listener.waitForSelector(".receipt");
      const { receipt } = (await see(page)).utterances[0] ?? {};
      expect(receipt?.source).toBe("ack");
      expect(spoken.slice(0, receipt?.heardEnd)).toMatch(/^Did you/);
      expect(receipt?.heardEnd).toBeLessThan(spoken.length);
      expect((await see(listener)).utterances[0]?.text).toBe(spoken);
      // What comes after the cut is heard again, in step.
      await page.check("[name=mode][value=text]");
      await page.fill("#text", "And on it goes");
      await page.click("#speak");
      await page.waitForFunction(() => window.voicewire?.litWord?.text === "goes");
      await listener.waitForFunction(() => window.voicewire?.litWord?.text === "goes");
    });
  },
);
