/** The page as people use it: by keyboard, on a phone, with errors and with a network that fails. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { launchBrowser, whyNoBrowser } from "./browser.ts";
import { buildPage } from "./build-page.ts";
import { type OpenPage, openPage, see, untilQuiet } from "./page-driver.ts";
import { ToneGateway } from "./tone-gateway.ts";

const reason = whyNoBrowser();
let browser: Browser;
let gateway: ToneGateway;
const opened: OpenPage[] = [];

async function open(query = "", options: BrowserContextOptions = {}): Promise<Page> {
  const tab = await openPage(browser, { url: `${gateway.url}/${query}`, options });
  opened.push(tab);
  return tab.page;
}

describe.skipIf(reason !== null)(`page in use${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
  beforeAll(async () => {
    const [launched, pageFolder] = await Promise.all([launchBrowser(), buildPage()]);
    browser = launched;
    gateway = await ToneGateway.start({
      pageFolder,
      refuse: (command) =>
        command.type === "speak" && command.text.includes("REFUSE")
          ? { code: "upstream_unauthorized", message: "The upstream refused the key" }
          : null,
    });
  });

  // An open page draws on: those of the tests before would slow this one down.
  afterEach(() => Promise.all(opened.map((tab) => tab.page.context().close())));

  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  });

  it("keyboard only: tab to the text, write, Ctrl+Enter speaks, Escape stops", async () => {
    const page = await open();
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to the text");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("text");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("Written without any mouse at all, and stopped without one");
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(() => (window.voicewire?.playedMs ?? 0) > 300);
    expect(await page.locator("#status-text").textContent()).toBe("Speaking");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".receipt");
    await page.waitForFunction(() => document.querySelector("#status-text")?.textContent === "Ready");
    const names: (string | null)[] = [];
    for (let index = 0; index < 16; index += 1) {
      await page.keyboard.press("Tab");
      names.push(
        await page.evaluate(() => document.activeElement?.id || document.activeElement?.tagName || null),
      );
    }
    const order = ["voice", "speed", "tokens", "SUMMARY", "speak"];
    expect(names.filter((name) => order.includes(name ?? ""))).toEqual(order);
  });

  it("every control has a name, and targets are large enough for a thumb", async () => {
    const page = await open("", { hasTouch: true, isMobile: true, viewport: { width: 360, height: 780 } });
    const faults = await page.evaluate(() => {
      const controls = [...document.querySelectorAll<HTMLElement>("button, select, textarea, input")];
      return controls.flatMap((control) => {
        const isShown = control.offsetParent !== null;
        const name = control.ariaLabel ?? control.closest("label")?.textContent ?? control.textContent ?? "";
        const target = control.closest("label") ?? control;
        if (!isShown) return [];
        if (name.trim() === "") return [`${control.id} has no name`];
        return target.getBoundingClientRect().height < 43.5 ? [`${control.id || name} is too small`] : [];
      });
    });
    expect(faults).toEqual([]);
  });

  it("phone: nothing scrolls sideways, in text and in dialogue, and Speak is in reach", async () => {
    for (const width of [320, 390]) {
      const page = await open("", { hasTouch: true, isMobile: true, viewport: { width, height: 780 } });
      await page.fill(
        "#text",
        "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft says hello",
      );
      await page.tap("#speak");
      await page.waitForFunction(() => document.querySelector(".word.lit") !== null);
      // Not against innerWidth: a phone widens that to what overflows.
      const overflow = async () => (await page.evaluate(() => document.documentElement.scrollWidth)) - width;
      expect(await overflow()).toBeLessThanOrEqual(0);
      await page.tap("#stop");
      await page.waitForSelector("#bars > li");
      await page.check("[name=mode][value=dialogue]");
      expect(await overflow()).toBeLessThanOrEqual(0);
      await page.evaluate(() => scrollTo(0, 300));
      const box = await page.locator("#speak").boundingBox();
      expect((box?.y ?? 1e4) + (box?.height ?? 0)).toBeLessThanOrEqual(780);
    }
  });

  it("an error is shown in plain words with what to do, and the page goes on", async () => {
    const page = await open();
    await page.fill("#text", "REFUSE this");
    await page.click("#speak");
    await page.waitForSelector("#alert:not([hidden])");
    expect(await page.locator("#alert").textContent()).toContain(
      "The speech service refused the gateway's key.",
    );
    expect(await page.locator("#alert").textContent()).toContain("Set a valid upstream-key");
    expect((await see(page)).utterances[0]?.state).toBe("failed");
    await page.fill("#text", "Fine");
    await page.click("#speak");
    await page.waitForFunction(() => window.voicewire?.litWord?.text === "Fine");
    expect(await page.locator("#alert").isVisible()).toBe(false);
    await untilQuiet(page);
  });

  it("a dropped socket is said, and joined again by itself", async () => {
    const page = await open();
    // Half a second may pass between two looks of ours: the page itself notes what it showed.
    await page.evaluate(() => {
      new MutationObserver((_changes, observer) => {
        const alert = document.querySelector("#alert:not([hidden])")?.textContent;
        const speak = document.querySelector<HTMLButtonElement>("#speak");
        if (!alert || !speak?.disabled) return;
        observer.disconnect();
        document.body.dataset.received = alert;
      }).observe(document.body, { subtree: true, childList: true, attributes: true });
    });
    gateway.dropAll();
    await page.waitForFunction(() => document.body.dataset.received?.includes("Trying again in"));
    await page.waitForFunction(() => window.voicewire?.state === "open");
    expect(await page.locator("#alert").isVisible()).toBe(false);
    await page.fill("#text", "Back");
    await page.click("#speak");
    // Not the lit word: it is lit for a moment, and a page that is slow to draw is not looked at then.
    await page.waitForFunction(() => window.voicewire?.utterances.at(-1)?.state === "done");
    const { utterances } = await see(page);
    expect(utterances.at(-1)?.words.map((word) => word.text)).toEqual(["Back"]);
  });

  it("a socket that breaks in the middle of speech loses no word and no sound", async () => {
    const page = await open();
    const text = "Not one of these eleven words is lost on the way";
    await page.fill("#text", text);
    await page.click("#speak");
    await page.waitForFunction(() => (window.voicewire?.playedMs ?? 0) > 300);
    gateway.dropAll();
    await page.waitForFunction(() => window.voicewire?.utterances[0]?.state === "done");
    await untilQuiet(page);
    const { utterances, decodedBlocks, playedMs } = await see(page);
    expect(utterances[0]?.state).toBe("done");
    expect(utterances[0]?.words.map((word) => word.text)).toEqual(text.split(" "));
    // Each frame was decoded once, and the clock has gone through all of them.
    expect(playedMs).toBeCloseTo(decodedBlocks * 20, -1);
    expect(await page.locator(".word.past").count()).toBe(11);
  });

  it("a gateway that starts again in the middle of speech: what was not heard looks so, and is said in plain words", async () => {
    const page = await open();
    const text = "These words are spoken by a gateway that is killed before it has come to the end of them";
    for (const spoken of [text, "This one waits"]) {
      await page.fill("#text", spoken);
      await page.click("#speak");
    }
    await page.waitForFunction(() => (window.voicewire?.playedMs ?? 0) > 500);
    gateway.restart();
    await page.waitForSelector(".unheard");
    const [first = "", second] = await page.locator(".line .unheard").allTextContents();
    const heard = await page.locator(".line .past").allTextContents();
    expect(heard[0]).toMatch(/^These/);
    expect(first).toMatch(/ the end of them$/);
    expect((heard[0] ?? "") + first).toBe(text);
    expect(second).toBe("This one waits");
    expect(await page.locator(".receipt").allTextContents()).toEqual([
      `Broken off: the connection was lost. Heard ${heard[0]?.length} of ${text.length} characters.`,
      "Not heard: the connection was lost before it began.",
    ]);
    const alert = await page.locator("#alert:not([hidden])").textContent();
    expect(alert).toContain("What is struck out was not heard here: speak it again");
    expect(alert).not.toContain("RAW");
    await page.fill("#text", "Again");
    await page.click("#speak");
    await page.waitForFunction(() => window.voicewire?.utterances.at(-1)?.state === "done");
    await untilQuiet(page);
    expect(await page.locator(".line .unheard").first().textContent()).toBe(first);
    // Where nothing was being said, it is no news.
    gateway.restart();
    await page.waitForFunction(() => window.voicewire?.state !== "open");
    await page.waitForFunction(() => window.voicewire?.state === "open");
    await see(page);
    expect(await page.locator("#alert").isVisible()).toBe(false);
  });

  it("two who open the page have a session each, and meet where one sends the other its address", async () => {
    const [first, stranger] = [await open(), await open()];
    const { session } = await see(first);
    expect((await see(stranger)).session).not.toBe(session);
    expect(await first.locator("#hint").textContent()).toContain("send somebody this page's address");
    await stranger.goto(first.url());
    await stranger.waitForFunction(() => window.voicewire?.state === "open");
    expect((await see(stranger)).session).toBe(session);
    await first.fill("#text", "Hello");
    await first.click("#speak");
    await stranger.waitForFunction(() => window.voicewire?.utterances.at(-1)?.state === "done");
  });

  it("the session stands in the address and survives a reload", async () => {
    const page = await open();
    const { session } = await see(page);
    expect(new URL(page.url()).searchParams.get("session")).toBe(session);
    await page.reload();
    await page.waitForFunction(() => window.voicewire?.state === "open");
    expect((await see(page)).session).toBe(session);
  });

  it("nothing on the page breaks the strict content security policy, and no error reached the console", () => {
    expect(opened.length).toBeGreaterThan(5);
    expect(opened.flatMap((tab) => tab.faults)).toEqual([]);
  });
});
