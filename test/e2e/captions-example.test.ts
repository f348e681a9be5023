/** examples/captions as its README says, in a browser. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningService, startService } from "../../src/service/service.ts";
import { startPair } from "../cluster/pair.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { readStrictVtt } from "../helpers/strict-vtt.ts";
import { until } from "../helpers/until.ts";
import { launchBrowser, whyNoBrowser } from "../page/browser.ts";

interface Lit {
  readonly text: string;
  readonly start_ms: number;
  readonly placeMs: number;
  /** When we got it, ms. */
  readonly litMs: number;
}

const SERVE = join(import.meta.dirname, "../../examples/captions/serve.mjs");
const CAPTIONS = "#captions";
/** Chromium's <audio> is later than this with WAV: more than two seconds. */
const LATE_MS = 1500;
/** What an event comes ahead of its sound, and silence ahead of speech. */
const AHEAD_MS = 500;
/** Measures apart from the page how late its <audio> is. */
const NOTE_BEGIN = `addEventListener("loadstart", () => { globalThis.begunMs = performance.now(); }, true)`;
const DELAY_MS = `performance.now() - begunMs - document.querySelector("#live").currentTime * 1000`;
const missing = whyNoBrowser();

/** Asked from outside: the page's own rules let no text run as a script in it. */
async function becomesTrue(page: Page, expression: string): Promise<void> {
  while (!(await page.evaluate(expression))) await page.waitForTimeout(20);
}

describe.skipIf(missing !== null)(
  `examples/captions${missing === null ? "" : ` (skipped: ${missing})`}`,
  { concurrent: true },
  () => {
    let service: RunningService;
    let gateway: TestGateway;
    let child: ChildProcess;
    let browser: Browser;
    let address = "";

    beforeAll(async () => {
      service = await startService({ host: "127.0.0.1", port: 0, key: "gateway-key" });
      gateway = await gatewayAt(service.url, { voice: "" }, { upstreamKey: "gateway-key" });
      const env = { PORT: "0", VOICEWIRE_URL: gateway.wsUrl };
      const served = spawn(process.execPath, [SERVE], { env, stdio: ["ignore", "pipe", "inherit"] });
      child = served;
      const [line] = (await once(served.stdout, "data")) as [Buffer];
      address = line.toString().trim();
      browser = await launchBrowser();
    });
    afterAll(async () => {
      await browser?.close();
      child?.kill();
      await gateway?.close();
      await service?.close();
    });

    async function open(
      query: string,
      prepare: (page: Page) => Promise<unknown> = async () => undefined,
      gatewayUrl: string | null = null,
    ): Promise<{ page: Page; lit: Lit[]; faults: string[] }> {
      const page = await browser.newPage();
      await prepare(page);
      const lit: Lit[] = [];
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(error.message));
      await page.exposeFunction("tellWord", (word: Omit<Lit, "litMs">) =>
        lit.push({ ...word, litMs: performance.now() }),
      );
      await page.addInitScript(NOTE_BEGIN);
      await page.addInitScript('addEventListener("word", ({ detail }) => globalThis.tellWord(detail))');
      const url = new URL(address + query);
      if (gatewayUrl !== null) url.searchParams.set("gateway", gatewayUrl);
      await page.goto(url.href);
      await becomesTrue(page, 'document.querySelector("#status").textContent.startsWith("Connected")');
      return { page, lit, faults };
    }

    it("lights each word up when it is heard, and has all of it once more with a track", {
      timeout: 60_000,
    }, async () => {
      const { page, lit, faults } = await open("&session=one");
      await becomesTrue(page, 'document.querySelector("#live").currentTime > 0.2');
      const delayMs: number = await page.evaluate(DELAY_MS);
      expect(delayMs).toBeGreaterThan(LATE_MS);
      await using other = await TestClient.connect(
        gateway,
        "/live/one?role=listener&format=none&events=none&lead_ms=0",
      );
      const started = other.next("utterance.started").then(() => performance.now());
      await page.getByLabel("Text").fill("Boats float by. Birds sing.");
      await page.getByRole("button", { name: "Say it" }).click();
      // The last one is seen for a moment only: a look at the page could miss it.
      await until("the last word is lit", () => lit.length >= 5, { deadlineMs: 20_000 });
      expect(lit.map(({ text }) => text)).toEqual(["Boats", "float", "by", "Birds", "sing"]);
      for (const { start_ms, placeMs } of lit) expect(placeMs).toBeGreaterThanOrEqual(start_ms);
      // Not when its event comes: the page waits for its sound.
      expect((lit[0]?.litMs ?? 0) - (await started)).toBeGreaterThan(delayMs - AHEAD_MS);
      await becomesTrue(page, 'document.querySelector("#replay").textTracks[0]?.cues?.length > 0');
      const cues = readStrictVtt(
        await (await fetch(`${gateway.url}/live/one/captions.vtt?live=false`)).text(),
      );
      const seen = await page.evaluate(() => {
        const video = document.querySelector("video");
        const track = video?.textTracks[0];
        return {
          durationMs: (video?.duration ?? 0) * 1000,
          cues: [...(track?.cues ?? [])].map((cue) => ({
            startMs: Math.round(cue.startTime * 1000),
            text: (cue as VTTCue).text,
          })),
        };
      });
      expect(seen.cues).toEqual(cues.map(({ startMs, lines }) => ({ startMs, text: lines.join("\n") })));
      expect(seen.durationMs).toBeGreaterThan(lit.at(-1)?.start_ms ?? Number.POSITIVE_INFINITY);
      await becomesTrue(page, `document.querySelector("${CAPTIONS}").childElementCount === 0`);
      expect(faults).toEqual([]);
    });

    it("asks for nothing but what its address names, whatever is in that", { timeout: 60_000 }, async () => {
      const { page, faults } = await open("&session=three&cue_profile=web%26live&audio=wav%3Frate", (page) =>
        // The gateway refuses both: it must not, for the page to go on.
        page.route(/three\/(captions\?|audio\.wav%3F)/, (route) => {
          const url = new URL(route.request().url().replace("wav%3Frate", "wav"));
          if (url.searchParams.has("cue_profile")) url.searchParams.set("cue_profile", "web");
          return route.continue({ url: url.href });
        }),
      );
      expect(await page.evaluate('new URL(document.querySelector("#live").src).pathname')).toBe(
        "/live/three/audio.wav%3Frate",
      );
      const asked = page.waitForRequest(/captions\.vtt/);
      await page.getByLabel("Text").fill("Hi.");
      await page.getByRole("button", { name: "Say it" }).click();
      const { pathname, searchParams } = new URL((await asked).url());
      expect(pathname).toBe("/live/three/captions.vtt");
      expect([...searchParams.keys()]).toEqual(["live", "cue_profile", "origin_ms"]);
      expect(searchParams.get("cue_profile")).toBe("web&live");
      expect(faults).toEqual([]);
    });

    it("for OBS: nothing but captions, no background, speakers by name, and what is interrupted vanishes", {
      timeout: 60_000,
    }, async () => {
      const { page, lit, faults } = await open("&session=two&obs=1");
      expect(await page.evaluate("getComputedStyle(document.body).backgroundColor")).toBe("rgba(0, 0, 0, 0)");
      expect(await page.getByLabel("Text").isVisible()).toBe(false);
      await using speaker = await TestClient.connect(gateway, "/live/two?format=ulaw_8000");
      speaker.send({
        type: "dialogue",
        inputs: [
          {
            text: "Hello there, this is the one who speaks first of the two of us today.",
            voice_id: "21m00Tcm4TlvDq8ikWAM",
            speaker: "Ana",
          },
          {
            text: "This goes on and on, and nobody would like to hear the whole of it.",
            voice_id: "pNInz6obpgDQGcFmaJgB",
            speaker: "Ben",
          },
        ],
      });
      await page.locator(`${CAPTIONS} b`, { hasText: "Ana" }).waitFor();
      await page.locator(`${CAPTIONS} b`, { hasText: "Ben" }).waitFor();
      await page.getByText("goes", { exact: true }).and(page.locator(".heard")).waitFor();
      speaker.send({ type: "interrupt" });
      await becomesTrue(page, `document.querySelector("${CAPTIONS}").childElementCount === 0`);
      expect(lit.map(({ text }) => text)).toContain("goes");
      expect(lit.map(({ text }) => text)).not.toContain("whole");
      expect(faults).toEqual([]);
    });

    it("for OBS: captions go on at another node when the session's node is lost", {
      timeout: 60_000,
    }, async () => {
      await using upstream = await startFakeUpstream(speaking({ msPerChar: 60 }));
      await using nodes = await startPair(upstream.url);
      await using speaker = await TestClient.connect(nodes.one.gateway, "/live/moves?role=speaker");
      await speaker.next("hello");
      const { page, lit, faults } = await open("&session=moves&obs=1", undefined, nodes.two.gateway.url);
      const path = `${nodes.two.gateway.url}/live/moves/speak`;
      const say = () => fetch(path, { method: "POST", body: JSON.stringify({ text: "One two three." }) });
      await say();
      await until("all words are lit", () => lit.length >= 3, { deadlineMs: 20_000 });
      await becomesTrue(page, `document.querySelector("${CAPTIONS}").childElementCount === 0`);
      nodes.one.bus.cut();
      while ((await say()).status !== 202) await page.waitForTimeout(100);
      await until("all words are lit again", () => lit.length >= 6, { deadlineMs: 20_000 });
      const words = ["One", "two", "three"];
      expect(lit.map(({ text }) => text)).toEqual([...words, ...words]);
      expect(faults).toEqual([]);
    });
  },
);
