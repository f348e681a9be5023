/** The page at a gateway with keys: it says that it wants a token, takes one, and keeps it nowhere but in memory. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startService } from "../../src/service/service.ts";
import { LISTENER, SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { launchBrowser, whyNoBrowser } from "./browser.ts";
import { buildPage } from "./build-page.ts";

const reason = whyNoBrowser();
const keys = new TestKeys();
/** The page reads the voices, too. */
const GRANTS = { ...SPEAKER, allow: [...SPEAKER.allow, "proxy"] };
let browser: Browser;
let service: Awaited<ReturnType<typeof startService>>;
let gateway: TestGateway;
const pages: Page[] = [];
const faults: string[] = [];

async function open(path = "/?session=s"): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  pages.push(page);
  page.setDefaultTimeout(15_000);
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (/content security policy/i.test(message.text())) faults.push(message.text());
  });
  await page.goto(`${gateway.url}${path}`);
  return page;
}

function untilStatus(page: Page, text: string): Promise<void> {
  return expect.poll(() => page.locator("#status-text").textContent(), { timeout: 10_000 }).toBe(text);
}

async function paste(page: Page, token: string): Promise<void> {
  await page.locator("#token").fill(token);
  await page.getByRole("button", { name: "Use it" }).click();
}

const asks = (page: Page) => page.locator("#token-what").textContent();

describe.skipIf(reason !== null)(`page with keys${reason === null ? "" : ` (skipped: ${reason})`}`, () => {
  beforeAll(async () => {
    const [launched, pageFolder, started] = await Promise.all([
      launchBrowser(),
      buildPage(),
      startService({ host: "127.0.0.1", port: 0, warmsUp: false }),
    ]);
    browser = launched;
    service = started;
    gateway = await gatewayAt(service.url, { keysFile: keys.path, voice: "" }, { pageFolder });
  });

  afterEach(async () => {
    await Promise.all(pages.splice(0).map((page) => page.context().close()));
    expect(faults.splice(0)).toEqual([]);
  });

  afterAll(async () => {
    await browser?.close();
    await gateway?.close();
    await service?.close();
    keys[Symbol.dispose]();
  });

  it("asks for a token in plain words, takes one, and speaks", async () => {
    const page = await open();
    await page.waitForSelector("#token-form:not([hidden])");
    expect(await asks(page)).toBe("This gateway asks for a token.");
    expect(await page.locator("#token-command").textContent()).toBe(
      "voicewire token --sessions s --allow open,speak,listen,interrupt,proxy --for me --expires-in 3600",
    );
    expect(await page.locator("#alert").isVisible()).toBe(false);
    const token = tokenFor(GRANTS, { lifeSeconds: 600 });
    await paste(page, token);
    await untilStatus(page, "Ready");
    expect(await page.locator("#token-form").isVisible()).toBe(false);
    expect(await page.locator("#token").inputValue()).toBe("");
    await expect.poll(() => page.locator("#voice option").count()).toBeGreaterThan(1);
    await page.locator("#text").fill("Hello.");
    await page.keyboard.press("Control+Enter");
    await expect
      .poll(() => page.evaluate(() => window.voicewire?.utterances[0]?.state), { timeout: 10_000 })
      .toBe("done");
    const kept = await page.evaluate(() =>
      [location.href, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie].join(
        " ",
      ),
    );
    expect(kept).not.toContain(token.slice(0, 20));
  });

  it.each([
    [
      "/?session=talk&role=listener",
      "voicewire token --sessions talk --allow listen --for me --expires-in 3600",
    ],
    // Whoever sends the address must not choose what an operator's shell runs.
    ["/?session=%24%28rm%20x%29", /^voicewire token --sessions SESSION --allow /],
    ["/?session=--file", /^voicewire token --sessions SESSION --allow /],
  ])("says which command makes a token for %s", async (path, command) => {
    const page = await open(path);
    await page.waitForSelector("#token-form:not([hidden])");
    const shown = await page.locator("#token-command").textContent();
    expect(shown).toMatch(typeof command === "string" ? new RegExp(`^${command}$`) : command);
  });

  it("explains the command to who has shown no token, and to nobody else", async () => {
    const page = await open();
    await page.waitForSelector("#token-how:not([hidden])");
    await paste(page, "x.y.z");
    await expect.poll(() => asks(page)).toContain("does not take this token");
    expect(await page.locator("#token-how").isVisible()).toBe(false);
  });

  it.each([
    ["one that nobody has signed", () => "x.y.z", "The gateway does not take this token."],
    ["one that has expired", () => tokenFor(GRANTS, { lifeSeconds: -100 }), "Your token has expired"],
    [
      "one for another session",
      () => tokenFor({ ...GRANTS, sessions: ["other"] }),
      "Your token does not allow this session.",
    ],
    ["no token at all", () => "what is this?", "This is no token."],
  ])("%s is refused in plain words, and the next one is taken", async (_name, wrong, words) => {
    const page = await open();
    await page.waitForSelector("#token-form:not([hidden])");
    await paste(page, wrong());
    await expect.poll(() => asks(page)).toContain(words);
    await paste(page, tokenFor(GRANTS, { lifeSeconds: 600 }));
    await untilStatus(page, "Ready");
  });

  it("takes a token of its address, which loses it at once", async () => {
    const token = tokenFor(GRANTS, { lifeSeconds: 600 });
    const page = await open(`/?session=s#token=${token}`);
    await untilStatus(page, "Ready");
    expect(page.url()).toBe(`${gateway.url}/?session=s`);
    expect(await page.locator("#token-form").isVisible()).toBe(false);
  });

  it("with a listener's token only listens, though the address says nothing of that", async () => {
    await using speaker = await TestClient.connect(gateway, "/live/talk?format=none", {
      headers: { authorization: `Bearer ${keys.key}` },
    });
    await speaker.next("hello");
    const page = await open(`/?session=talk#token=${tokenFor(LISTENER, { lifeSeconds: 600 })}`);
    await untilStatus(page, "Ready");
    expect(await page.locator("#composer").isVisible()).toBe(false);
  });

  it("says that a token ends, and goes on with the next one on the same connection", async () => {
    const ending = { ...GRANTS, session_until: Date.now() / 1000 + 12 };
    const page = await open(`/?session=s#token=${tokenFor(ending)}`);
    await page.waitForSelector("#token-form:not([hidden])");
    expect(await asks(page)).toMatch(/Your token ends in [1-6] s\./);
    const before = gateway.counters.connectionsOpened;
    await paste(page, tokenFor(GRANTS, { lifeSeconds: 600 }));
    await expect.poll(() => page.locator("#token-form").isVisible()).toBe(false);
    expect(gateway.counters.connectionsOpened).toBe(before);
  });

  it("says that a token has ended, and joins again with the next one", async () => {
    const ending = { ...GRANTS, session_until: Date.now() / 1000 + 2 };
    const page = await open(`/?session=s#token=${tokenFor(ending)}`);
    await expect.poll(() => asks(page), { timeout: 10_000 }).toContain("Your token has expired");
    await untilStatus(page, "Not connected");
    await paste(page, tokenFor(GRANTS, { lifeSeconds: 600 }));
    await untilStatus(page, "Ready");
  });
});
