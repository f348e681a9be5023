/** examples/captions as its README says, in a browser. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RunningService, startService } from "../../src/service/service.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { readStrictVtt } from "../helpers/strict-vtt.ts";
import { launchBrowser, whyNoBrowser } from "../page/browser.ts";

interface Lit {
  readonly text: string;
  readonly start_ms: number;
  readonly placeMs: number;
}

const SERVE = join(import.meta.dirname, "../../examples/captions/serve.mjs");
const CAPTIONS = "#captions";
const missing = whyNoBrowser();

describe.skipIf(missing !== null)(
  `examples/captions${missing === null ? "" : ` (skipped: ${missing})`}`,
  () => {
    let service: RunningService;
    let gateway: TestGateway;
    let child: ChildProcess;
    let browser: Browser;
    let address = "";

    beforeEach(async () => {
      service = await startService({ host: "127.0.0.1", port: 0, key: "gateway-key" });
      gateway = await gatewayAt(service.url, { voice: "" }, "gateway-key");
      const env = { PORT: "0", GATEWAY: gateway.url };
      const served = spawn(process.execPath, [SERVE], { env, stdio: ["ignore", "pipe", "inherit"] });
      child = served;
      const [line] = (await once(served.stdout, "data")) as [Buffer];
      address = line.toString().trim();
      browser = await launchBrowser();
    });
    afterEach(async () => {
      await browser?.close();
      child?.kill();
      await gateway?.close();
      await service?.close();
    });

    async function open(query: string): Promise<{ page: Page; lit: Lit[]; faults: string[] }> {
      const page = await browser.newPage();
      const lit: Lit[] = [];
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(error.message));
      await page.exposeFunction("tellWord", (word: Lit) => lit.push(word));
      await page.addInitScript('addEventListener("word", ({ detail }) => globalThis.tellWord(detail))');
      await page.goto(address + query);
      await page.waitForFunction('document.querySelector("#status").textContent.startsWith("Connected")');
      return { page, lit, faults };
    }

    it("lights each word up when it is heard, and has all of it once more with a track", {
      timeout: 60_000,
    }, async () => {
      const { page, lit, faults } = await open("&session=one");
      await page.waitForFunction('document.querySelector("#live").currentTime > 0.2');
      await page.getByLabel("Text").fill("Boats float by. Birds sing.");
      await page.getByRole("button", { name: "Say it" }).click();
      await page.getByText("sing", { exact: true }).and(page.locator(".heard")).waitFor();
      expect(lit.map(({ text }) => text)).toEqual(["Boats", "float", "by", "Birds", "sing"]);
      for (const { start_ms, placeMs } of lit) expect(placeMs).toBeGreaterThanOrEqual(start_ms);
      await page.waitForFunction('document.querySelector("#replay").textTracks[0]?.cues?.length > 0');
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
      await page.waitForFunction(`document.querySelector("${CAPTIONS}").childElementCount === 0`);
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
      await page.waitForFunction(`document.querySelector("${CAPTIONS}").childElementCount === 0`);
      expect(lit.map(({ text }) => text)).toContain("goes");
      expect(lit.map(({ text }) => text)).not.toContain("whole");
      expect(faults).toEqual([]);
    });
  },
);
