/** The page for recordings: opens a file in the browser alone, and scrubs through it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { countingUlaw, evenAlignment } from "../helpers/session-rig.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { createRecordedRig } from "../unit/recording/recording-rig.ts";
import { launchBrowser, whyNoBrowser } from "./browser.ts";
import { buildPage } from "./build-page.ts";

const reason = whyNoBrowser();
const folder = mkdtempSync(join(tmpdir(), "voicewire-replay-page-"));
const TEXT = "Alpha bravo charlie delta.";
let browser: Browser;
let gateway: TestGateway;
const faults: string[] = [];
const asked: string[] = [];

/** Two seconds of speech to two listeners, of which the first is cut. */
async function recordedFile(): Promise<string> {
  const rig = createRecordedRig();
  const { send } = rig.join("format=ulaw_8000&events=words");
  rig.join("role=listener&format=ulaw_8000&lead_ms=400");
  send({ type: "speak", text: TEXT, utterance_id: "first" });
  await Promise.resolve();
  rig.requests[0]?.head();
  rig.requests[0]?.chunk(countingUlaw(2000), { alignment: evenAlignment(TEXT, 75) });
  rig.requests[0]?.handlers.end();
  rig.clock.advance(1200);
  send({ type: "interrupt" });
  rig.clock.advance(500);
  await rig.recordings.close();
  const path = join(folder, "session.voicewire");
  writeFileSync(
    path,
    rig.disk
      .lines()
      .map((line) => `${line}\n`)
      .join(""),
  );
  return path;
}

async function openPage(): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1100, height: 900 } })).newPage();
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  page.on("request", (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
  await page.goto(`${gateway.url}/replay`);
  return page;
}

describe.skipIf(reason !== null)(`/replay${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
  let upstream: Awaited<ReturnType<typeof startFakeUpstream>>;
  beforeAll(async () => {
    const [launched, pageFolder, started] = await Promise.all([
      launchBrowser(),
      buildPage(),
      startFakeUpstream(),
    ]);
    browser = launched;
    upstream = started;
    gateway = await gatewayAt(upstream.url, {}, { pageFolder });
  }, 60_000);

  afterEach(() => {
    expect(faults.splice(0)).toEqual([]);
    asked.length = 0;
  });

  afterAll(async () => {
    await Promise.all([browser.close(), gateway.close(), upstream.close()]);
    rmSync(folder, { recursive: true });
  });

  it("shows words, events and connections at the place, by keys alone, and sends nothing", {
    timeout: 60_000,
  }, async () => {
    const page = await openPage();
    await page.locator("#file").setInputFiles(await recordedFile());
    await page.locator("#recording").waitFor();
    expect(await page.locator("#facts").textContent()).toMatch(
      /^Session s of 2027-01-31.* Ended: With its gateway\. Where .* in a file there\.$/,
    );
    const loaded = asked.length;
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("place");
    for (let step = 0; step < 30; step += 1) await page.keyboard.press("ArrowRight");
    expect(await page.locator("#time").textContent()).toBe("0.600 s");
    expect(await page.locator("#now").textContent()).toBe("bravo");
    await page.keyboard.press("End");
    await page.keyboard.press("Home");
    for (let step = 0; step < 60; step += 1) await page.keyboard.press("ArrowRight");
    await expect
      .poll(() => page.locator("tr.is-now").allTextContents())
      .toContainEqual(expect.stringContaining("interruptedfirst"));
    expect(asked.slice(loaded)).toEqual([]);
    if (process.env.SHOT) await page.screenshot({ path: process.env.SHOT, fullPage: true });
  });

  it("says what is wrong with a file, with the line", { timeout: 60_000 }, async () => {
    const page = await openPage();
    const path = join(folder, "notes.voicewire");
    writeFileSync(path, "not a recording\n");
    await page.locator("#file").setInputFiles(path);
    await page.locator("#trouble").waitFor();
    expect(await page.locator("#trouble").textContent()).toMatch(/line 1: it is no recording of voicewire/);
    expect(await page.locator("#recording").isHidden()).toBe(true);
  });

  it("is served with the page's policy: scripts of its own alone", async () => {
    const answer = await fetch(`${gateway.url}/replay`);
    expect(answer.headers.get("content-security-policy")).toMatch(/default-src 'none'; script-src 'self'/);
  });
});
