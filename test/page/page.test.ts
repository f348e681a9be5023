/**
 * The page in a real browser, against a tone whose words are known beforehand: that what is decoded is no silence,
 * and that the lit word is the one that is heard.
 */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { STREAMS } from "../../src/page/speech/streams.ts";
import { STAGES } from "../../src/page/speech/waterfall.ts";
import type { Word } from "../../src/protocol/events.ts";
import { launchBrowser, whyNoBrowser } from "./browser.ts";
import { buildPage } from "./build-page.ts";
import { type OpenPage, openPage, type Seen, sampleSpeech, see, untilQuiet } from "./page-driver.ts";
import { pitchOf } from "./tone.ts";
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

/** The words of the utterance that is heard, as the page got them. */
function wordsOf(seen: Seen): readonly Word[] {
  return seen.utterances.find((utterance) => utterance.id === seen.litWord?.utteranceId)?.words ?? [];
}

/** How many words the lit one is away from the one at the played position. */
function wordsOff(seen: Seen): number {
  const words = wordsOf(seen);
  const heard = words.filter((word) => word.start_ms <= seen.playedMs).length - 1;
  return Math.abs(words.findIndex((word) => word.start === seen.litWord?.start) - heard);
}

describe.skipIf(reason !== null)(`page in a browser${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
  beforeAll(async () => {
    const [launched, pageFolder] = await Promise.all([launchBrowser(), buildPage()]);
    browser = launched;
    gateway = await ToneGateway.start({ pageFolder });
  });

  // An open page draws on: those of the tests before would slow this one down.
  afterEach(() => Promise.all(opened.map((tab) => tab.page.context().close())));

  afterAll(async () => {
    await browser?.close();
    await gateway?.[Symbol.asyncDispose]();
  });

  for (const decoder of ["webcodecs", "wasm"] as const) {
    it(`${decoder}: decoded audio is sound, and the lit word follows the audio clock`, async () => {
      const page = await open(`?decoder=${decoder}`);
      await page.fill("#text", "These seven words have different lengths altogether");
      await page.click("#speak");
      const samples = await sampleSpeech(page);
      expect(samples.length).toBeGreaterThan(6);
      for (const sample of samples) {
        expect(sample.decoder).toBe(decoder);
        expect(wordsOff(sample)).toBeLessThanOrEqual(1);
      }
      // The word that is lit on the page is the one that the clock says; a picture may come late on a busy machine.
      expect(samples.filter((sample) => sample.isInStep).length).toBeGreaterThan(samples.length * 0.85);
      // What the loudspeaker gets is the pitch of that word, or of a neighbour at the border between two.
      const sounding = samples.filter((sample) => sample.hertz > 0);
      expect(sounding.length).toBeGreaterThan(4);
      for (const sample of sounding) {
        const lit = wordsOf(sample).findIndex((word) => word.start === sample.litWord?.start);
        const nearest = Math.min(...[-1, 0, 1].map((by) => Math.abs(pitchOf(lit + by) - sample.hertz)));
        expect(nearest).toBeLessThan(12);
      }
      const inStep = sounding.filter((sample) => {
        const lit = wordsOf(sample).findIndex((word) => word.start === sample.litWord?.start);
        return Math.abs(pitchOf(lit) - sample.hertz) < 12;
      });
      expect(inStep.length).toBeGreaterThan(sounding.length / 2);
      expect(new Set(samples.map((sample) => sample.litText)).size).toBeGreaterThanOrEqual(4);
      expect(samples.at(-1)?.decodedRms).toBeGreaterThan(0.05);
      await untilQuiet(page);
      expect((await see(page)).litText).toBeNull();
      expect(await page.locator(".word.past").count()).toBe(7);
    });
  }

  it("the audio clock never runs ahead of real time, and every decoded packet is played", async () => {
    const page = await open();
    await page.fill("#text", "Measured against the clock on the wall");
    await page.click("#speak");
    await page.waitForFunction(() => (window.voicewire?.playedMs ?? 0) > 300);
    const rate = await page.evaluate(async () => {
      const state = () => ({ playedMs: window.voicewire?.playedMs ?? 0, wallMs: performance.now() });
      const from = state();
      await new Promise((resolve) => setTimeout(resolve, 800));
      const to = state();
      return (to.playedMs - from.playedMs) / (to.wallMs - from.wallMs);
    });
    // A busy machine may let it run dry for a moment.
    expect(rate).toBeGreaterThan(0);
    expect(rate).toBeLessThan(1.1);
    await untilQuiet(page);
    const { decodedBlocks, playedMs } = await see(page);
    expect(playedMs).toBeCloseTo(decodedBlocks * 20, -1);
  });

  it("queued utterances light one after the other and each gets a row of its latency", async () => {
    const page = await open();
    await page.fill("#text", "First of two, long enough that the other one has to wait");
    await page.click("#speak");
    await page.fill("#text", "Second one");
    await page.click("#speak");
    await page.waitForFunction(() => window.voicewire?.litWord?.text === "Second");
    const seen = await see(page);
    expect(wordsOff(seen)).toBeLessThanOrEqual(1);
    await page.waitForFunction(() => document.querySelector(".word.lit")?.textContent === "one");
    await untilQuiet(page);
    expect(await page.locator("#bars > li").count()).toBe(2);
    const first = await page.locator("#bars > li").last().textContent();
    expect(first).toContain("First of two, long");
    for (const stage of STAGES.map((stage) => stage.name)) expect(first).toContain(stage);
    expect(await page.locator("#bars > li").first().textContent()).toContain("waited behind 1 other");
  });

  it("lights words of emoji and right-to-left text where they stand", async () => {
    const page = await open();
    for (const text of ["👩🏽‍🚀 naïve 🎉 café", "مساء الخير يا أصدقاء"]) {
      await page.fill("#text", text);
      await page.click("#speak");
      await page.waitForFunction(() => window.voicewire?.isSpeaking);
      const lit = await page.waitForFunction(() => document.querySelector(".word.lit")?.textContent);
      expect(["naïve", "café", ...text.split(" ")]).toContain(await lit.jsonValue());
      await untilQuiet(page);
      expect(await page.locator(".utterance").last().textContent()).toBe(text);
    }
    const direction = await page
      .locator(".line")
      .last()
      .evaluate((line) => getComputedStyle(line).direction);
    expect(direction).toBe("rtl");
  });

  it("dialogue: two voices take turns, lines are added and removed, all in one utterance", async () => {
    const page = await open();
    await page.check("[name=mode][value=dialogue]");
    await page.getByRole("button", { name: "Remove this line" }).nth(3).click();
    await page.getByRole("button", { name: "Remove this line" }).nth(2).click();
    await page.getByRole("button", { name: "Add a line" }).click();
    const lines = page.getByRole("textbox", { name: "Text of this line" });
    for (const [index, text] of ["Knock knock.", "Who is there?", "Wire."].entries())
      await lines.nth(index).fill(text);
    await page.click("#speak");
    await page.waitForFunction(() => window.voicewire?.litWord?.text === "Who");
    expect(await page.locator(".who").allTextContents()).toEqual(["Nora", "Amos", "Nora"]);
    expect(await page.locator(".line").allTextContents()).toEqual(["Knock knock.", "Who is there?", "Wire."]);
    await untilQuiet(page);
    const session = gateway.sessions.get((await see(page)).session);
    expect(session?.commands.find((command) => command.type === "dialogue")).toMatchObject({
      inputs: [
        { text: "Knock knock.", voice_id: "voice-a" },
        { text: "Who is there?", voice_id: "voice-b" },
        { text: "Wire.", voice_id: "voice-a" },
      ],
    });
  });

  it("stop: silent at once, with the receipt of what was heard, and it speaks again afterwards", async () => {
    const page = await open();
    await page.fill("#text", "A long sentence that will be stopped before it ever comes to its end");
    await page.click("#speak");
    await page.waitForFunction(() => (window.voicewire?.playedMs ?? 0) > 700);
    await page.click("#stop");
    await page.waitForFunction(() => window.voicewire?.level === 0);
    await page.waitForSelector(".receipt");
    const stopped = await see(page);
    expect(stopped.aheadMs).toBe(0);
    expect(stopped.litText).toBeNull();
    expect(stopped.utterances[0]?.state).toBe("interrupted");
    const heard = stopped.utterances[0]?.text.slice(0, stopped.utterances[0].receipt?.heardEnd);
    expect(await page.locator(".receipt").textContent()).toContain(`Heard ${heard?.length} of 68 characters`);
    expect(await page.locator(".line").textContent()).toBe(stopped.utterances[0]?.text);
    expect((await page.locator(".unheard").allTextContents()).join("")).toBe(
      stopped.utterances[0]?.text.slice(heard?.length),
    );
    await page.fill("#text", "Again");
    await page.click("#speak");
    await page.waitForFunction(() => window.voicewire?.litWord?.text === "Again");
    await untilQuiet(page);
  });

  it("stop, then resume: the words that were not heard light in the same text, each once", async () => {
    const page = await open();
    const text =
      "Fourteen considerably lengthened words are stopped somewhere and afterwards they simply continue until everything finishes";
    await page.fill("#text", text);
    await page.click("#speak");
    expect(await page.locator("#resume").isVisible()).toBe(false);
    await page.waitForFunction(() => (window.voicewire?.playedMs ?? 0) > 700);
    await page.click("#stop");
    await page.waitForSelector(".receipt");
    const stopped = (await see(page)).utterances[0];
    expect(stopped?.receipt?.source).toBe("ack");
    const heardEnd = stopped?.receipt?.heardEnd ?? 0;
    expect(heardEnd).toBeGreaterThan(0);
    expect(heardEnd).toBeLessThan(text.length);
    await page.getByRole("button", { name: "Resume" }).click();
    const samples = await sampleSpeech(page);
    const words = samples.flatMap((sample) => (sample.litWord === null ? [] : [sample.litWord]));
    // It goes on with the word in which it was cut, which may have been all but over.
    const cutWord = text.lastIndexOf(" ", heardEnd - 1) + 1;
    for (const word of words) expect(word.start).toBeGreaterThanOrEqual(cutWord);
    for (const sample of samples) {
      expect(wordsOff(sample)).toBeLessThanOrEqual(1);
      expect(sample.utterances[0]).toMatchObject({ receipt: null });
    }
    expect(new Set(words.map((word) => word.text)).size).toBeGreaterThanOrEqual(2);
    expect(samples.filter((sample) => sample.hertz > 0).length).toBeGreaterThan(2);
    expect(await page.locator(".receipt, .unheard").count()).toBe(0);
    await untilQuiet(page);
    expect((await see(page)).utterances).toMatchObject([{ state: "done", receipt: null }]);
    expect(await page.locator(".word.past").count()).toBe(text.split(" ").length);
    expect(await page.locator("#bars > li").count()).toBe(1);
    expect(await page.locator("#resume").isVisible()).toBe(false);
  });

  it("offers one's own voices and other services', and says whose voices are missing", async () => {
    await using others = await ToneGateway.start({
      pageFolder: await buildPage(),
      offered: {
        voices: [
          { voice_id: "anna", name: "anna", labels: {}, upstream: null, spoken_by: ["kokoro:af_heart"] },
          { voice_id: "kokoro:af_heart", name: "Heart", labels: { language: "en" }, upstream: "kokoro" },
        ],
        unlisted: [{ upstream: "piper", code: "upstream_unreachable", message: "Nobody is there" }],
      },
    });
    const { page } = await openPage(browser, { url: `${others.url}/`, options: {} });
    await page.waitForSelector("#voice optgroup", { state: "attached" });
    expect(await page.inputValue("#voice")).toBe("anna");
    const groups = await page
      .locator("#voice optgroup")
      .evaluateAll((elements) => elements.map((element) => (element as HTMLOptGroupElement).label));
    expect(groups).toEqual(["Own voices", "kokoro: English", "English", "Arabic"]);
    expect(await page.textContent("#alert-what")).toBe("Voices of piper can't be listed.");
    expect(await page.isDisabled("#model")).toBe(false);
    // Its models are its own.
    await page.selectOption("#voice", "kokoro:af_heart");
    expect(await page.isDisabled("#model")).toBe(true);
    await page.context().close();
  });

  it("like a model: words light up while tokens are still to come, and the pieces have a row each", async () => {
    const page = await open();
    await page.check("[name=mode][value=stream]");
    await page.selectOption("#stream", { index: 1 });
    const whole = STREAMS[1]?.tokens.map((token) => token.text).join("") ?? "";
    expect(await page.locator("#stream-text").textContent()).toBe(whole);
    await page.click("#speak");
    await page.waitForFunction(() => window.voicewire?.litWord?.text === "Sam");
    const early = (await see(page)).utterances[0]?.text ?? "";
    expect(early.length).toBeLessThan(whole.length);
    expect(whole.startsWith(early)).toBe(true);
    await page.waitForFunction((text) => window.voicewire?.utterances[0]?.text === text, whole);
    const session = gateway.sessions.get((await see(page)).session);
    const first = session?.commands.find((command) => command.type === "text");
    expect(first).toMatchObject({ clean: ["markdown", "emoji", "urls", "code"] });
    await page.click("#stop");
    await page.waitForSelector(".segments");
    await page.locator(".segments summary").click();
    expect(await page.locator(".segments li").count()).toBe(2);
    expect(await page.locator(".segments li").last().textContent()).toContain("ready 1.00 s before its turn");
  });

  it("captions: the cue of what is heard, until it is switched off; and who else is there", async () => {
    const page = await open();
    const cues = ["Unquestionably understandable subtitles accompany everything", "afterwards"];
    await page.fill("#text", cues.join(" "));
    await page.click("#speak");
    for (const cue of cues) {
      await page.waitForFunction((text) => document.querySelector("#captions")?.textContent === text, cue);
    }
    await page.getByRole("checkbox", { name: "Captions" }).uncheck();
    expect(await page.locator("#captions").isVisible()).toBe(false);
    await untilQuiet(page);
    expect((await see(page)).captionLines).toEqual([]);
    expect(await page.locator("#fact-presence").textContent()).toBe("1 listener");
    const href = await page.locator("#listen-link").getAttribute("href");
    await open(href?.slice(gateway.url.length + 1));
    await page.waitForFunction(() => document.querySelector("#fact-presence")?.textContent === "2 listeners");
  });

  it("token by token: the text is sent in pieces and lights as one", async () => {
    const page = await open();
    await page.fill("#text", "Tokens come one by one");
    await page.check("#tokens");
    await page.click("#speak");
    await page.waitForFunction(() => window.voicewire?.litWord?.text === "one");
    const session = gateway.sessions.get((await see(page)).session);
    const kinds = session?.commands.map((command) => command.type).filter((type) => type !== "played");
    expect(kinds).toEqual(["text", "text", "text", "text", "text", "end"]);
    expect(await page.locator(".line").textContent()).toBe("Tokens come one by one");
    await untilQuiet(page);
  });

  it("second tab: joins by the link as a listener, shows captions before a click and sounds after it", async () => {
    const page = await open();
    const href = await page.locator("#listen-link").getAttribute("href");
    const listener = await open(href?.slice(gateway.url.length + 1));
    expect(await listener.locator("#composer").isVisible()).toBe(false);
    const text = "Everybody hears the very same words at the very same time, ".repeat(3).trim();
    await page.fill("#text", text);
    await page.click("#speak");
    await listener.waitForFunction(() => document.querySelector(".word.lit") !== null);
    expect((await see(listener)).isUnlocked).toBe(false);
    await listener.getByRole("button", { name: "Turn the sound on" }).click();
    await listener.waitForFunction(() => (window.voicewire?.level ?? 0) > 0.05);
    const [spoken, heard] = await Promise.all([see(page), see(listener)]);
    expect(heard.utterances[0]?.text).toBe(text);
    expect(wordsOff(heard)).toBeLessThanOrEqual(1);
    expect(Math.abs(heard.playedMs - spoken.playedMs)).toBeLessThan(1500);
    await page.click("#stop");
    await listener.waitForFunction(
      () => window.voicewire?.level === 0 && document.querySelector(".receipt") !== null,
    );
  });

  it("nothing on the page breaks the strict content security policy, and no error reached the console", () => {
    expect(opened.length).toBeGreaterThan(8);
    expect(opened.flatMap((tab) => tab.faults)).toEqual([]);
  });
});
