/** The page while the service of a voice dies in the middle of a sentence: another one goes on, and the page shows one speech. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { CARTESIA_KEY, CARTESIA_VOICE, cartesia } from "../kit/vendors/cartesia.ts";
import { dyingAt } from "../kit/vendors/dying.ts";
import { KOKORO_VOICE, kokoro } from "../kit/vendors/kokoro.ts";
import { wordsOf } from "../kit/vendors/spoken.ts";
import { configOf } from "../upstream/services/rig.ts";
import { launchBrowser, whyNoBrowser } from "./browser.ts";
import { buildPage } from "./build-page.ts";
import { openPage, sampleSpeech } from "./page-driver.ts";

vi.setConfig({ testTimeout: 60_000 });

const TEXT = "The quick brown fox jumps over the lazy dog, and nobody dares to wake it.";
const reason = whyNoBrowser();
let browser: Browser;
let gateway: TestGateway;
let vendors: readonly FakeUpstream[] = [];

describe.skipIf(reason !== null)(`page at a switch${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
  beforeAll(async () => {
    const [first, preferred, standIn] = await Promise.all([
      startFakeUpstream(),
      startFakeUpstream(dyingAt(cartesia(), 20, 40)),
      startFakeUpstream(kokoro()),
    ]);
    vendors = [first, preferred, standIn];
    const services = [
      configOf("cartesia", preferred.url, { key: CARTESIA_KEY }),
      configOf("kokoro", standIn.url),
    ];
    const upstreamVoices = [`cartesia:${CARTESIA_VOICE}`, `kokoro:${KOKORO_VOICE}`];
    const more = { services, voices: [{ name: "anna", upstreamVoices }] };
    browser = await launchBrowser();
    gateway = await gatewayAt(first.url, {}, { ...more, pageFolder: await buildPage() });
  });

  afterAll(async () => {
    await browser?.close();
    await gateway?.close();
    for (const vendor of vendors) await vendor.close();
  });

  it("lights up every word in its order, before and behind the switch, and sounds no alarm", async () => {
    const { page, faults } = await openPage(browser, { url: gateway.url });
    await page.fill("#text", TEXT);
    await page.selectOption("#voice", "anna");
    await page.click("#speak");
    const samples = await sampleSpeech(page);
    expect(await gateway.metrics()).toMatch(
      /voicewire_voice_switches_total\{voice="anna",region="cartesia"\} 1\n/,
    );
    const words = wordsOf(TEXT);
    const lit = samples.flatMap(({ litText }) => (litText === null ? [] : [words.indexOf(litText)]));
    expect(lit).toEqual([...lit].sort((a, b) => a - b));
    expect(new Set(lit).size).toBeGreaterThan(words.length / 2);
    expect(lit.at(-1)).toBeGreaterThan(words.length - 3);
    expect(await page.locator(".word.past").allTextContents()).toEqual(words);
    expect(await page.locator("#alert").isVisible()).toBe(false);
    expect(faults).toEqual([]);
  });
});
