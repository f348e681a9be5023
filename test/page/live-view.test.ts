/** The live view of operators, in a browser, with real sessions running. */
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { FakeUpstream } from "../helpers/fake-upstream.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { TestKeys, tokenFor } from "../helpers/key-file.ts";
import { gatewayAt, TestClient, type TestGateway } from "../helpers/start-gateway.ts";
import { launchBrowser, whyNoBrowser } from "./browser.ts";
import { buildPage } from "./build-page.ts";

const reason = whyNoBrowser();
const ALL = { sessions: ["*"], allow: ["admin", "listen"] };
const keys = new TestKeys({
  server: {
    tenant: "acme",
    grants: { sessions: ["*"], allow: ["open", "speak", "listen", "interrupt", "admin"], characters: 20_000 },
  },
  app: { grants: { sessions: ["*"], allow: ["admin", "listen"] } },
});
const TEXT = "Good afternoon, and welcome. Would you like to wait at the bar? ".repeat(10);

let browser: Browser;
let upstream: FakeUpstream;
let gateway: TestGateway;
const pages: Page[] = [];
const faults: string[] = [];
const clients: TestClient[] = [];

interface Opening {
  readonly token?: string | null;
  readonly session?: string;
  readonly width?: number;
}

async function open({ token = tokenFor(ALL), session, width = 1280 }: Opening = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width, height: 800 } });
  const page = await context.newPage();
  pages.push(page);
  page.setDefaultTimeout(15_000);
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (/content security policy/i.test(message.text())) faults.push(message.text());
  });
  const query = session === undefined ? "" : `?session=${session}`;
  await page.goto(`${gateway.opsUrl}/admin${query}${token === null ? "" : `#token=${token}`}`);
  return page;
}

async function join(path: string, speech?: string): Promise<TestClient> {
  const headers = { authorization: `Bearer ${keys.key}` };
  const client = await TestClient.connect(gateway, `/live/${path}`, { headers });
  clients.push(client);
  await client.next("hello");
  if (speech !== undefined) {
    client.send({ type: "speak", text: speech, utterance_id: "u" });
    await client.next("utterance.started");
  }
  return client;
}

/** A listener that says it is so far behind, and says it again. */
async function lateListener(session: string, lagMs: number): Promise<TestClient> {
  const client = await join(`${session}?role=listener&format=pcm_24000`);
  const beganMs = performance.now();
  const timer = setInterval(() => {
    client.send({ type: "played", at_ms: Math.max(0, performance.now() - beganMs - lagMs) });
  }, 200);
  client.socket.on("close", () => clearInterval(timer));
  return client;
}

const rowNames = (page: Page): Promise<string[]> => page.locator("#session-rows .row-name").allTextContents();
const cell = (page: Page, name: string, head: string): Promise<string | undefined> =>
  page.evaluate(
    ([session, wanted]) => {
      const heads = [...document.querySelectorAll("#session-heads th")].map(({ textContent }) => textContent);
      const rows = [...document.querySelectorAll<HTMLTableRowElement>("#session-rows tr")];
      const row = rows.find(({ dataset }) => dataset.key === session);
      return row?.cells.item(heads.indexOf(wanted ?? ""))?.textContent ?? undefined;
    },
    [name, head],
  );
const focusedText = (page: Page): Promise<string | null> =>
  page.evaluate(() => document.activeElement?.textContent ?? null);
const fact = (page: Page, name: string): Promise<string | undefined> =>
  page.evaluate((wanted) => {
    const terms = [...document.querySelectorAll("#opened-facts dt")];
    return (
      terms.find(({ textContent }) => textContent === wanted)?.nextElementSibling?.textContent ?? undefined
    );
  }, name);
const picture = (page: Page): Promise<string> =>
  page.evaluate(() => document.querySelector<HTMLCanvasElement>("#timeline")?.toDataURL() ?? "");

const title = `live view${reason === null ? "" : ` (skipped: ${reason})`}`;
describe.skipIf(reason !== null)(title, () => {
  beforeAll(async () => {
    const [launched, pageFolder, started] = await Promise.all([
      launchBrowser(),
      buildPage(),
      startFakeUpstream(speaking({ msPerChar: 60 })),
    ]);
    browser = launched;
    upstream = started;
    gateway = await gatewayAt(upstream.url, { keysFile: keys.path, graceMs: 0 }, { pageFolder });
  });

  afterEach(async () => {
    await Promise.all(pages.splice(0).map((page) => page.context().close()));
    await Promise.all(clients.splice(0).map((client) => client[Symbol.asyncDispose]()));
    expect(faults.splice(0)).toEqual([]);
  });

  afterAll(async () => {
    await browser?.close();
    await gateway?.close();
    await upstream?.[Symbol.asyncDispose]();
    keys[Symbol.dispose]();
  });

  it("shows sessions as they come and go, what each does, and whose it is", async () => {
    const page = await open();
    await expect.poll(() => page.locator("#no-sessions").textContent()).toBe("No session is open.");
    const speaker = await join("talk?format=ulaw_8000", TEXT);
    await join("quiet?format=ulaw_8000");
    await expect.poll(() => rowNames(page)).toEqual(["quiet", "talk"]);
    await expect.poll(() => cell(page, "talk", "State")).toBe("Speaking");
    expect(await cell(page, "quiet", "State")).toBe("Idle");
    expect(await cell(page, "talk", "Listeners")).toBe("1");
    await speaker[Symbol.asyncDispose]();
    await expect.poll(() => rowNames(page)).toEqual(["quiet"]);
  });

  it("shows the processes, the upstream, and what is spent of budgets", async () => {
    await join("talk?format=ulaw_8000", TEXT);
    const page = await open();
    await expect
      .poll(() => page.locator("#nodes").textContent())
      .toMatch(/Sessions1.*Event loop[\d.]+ ms late/);
    expect(await page.locator("#upstreams").textContent()).toMatch(/Healthy.*of 1,024 open/);
    await expect.poll(() => page.locator("#budgets").textContent()).toMatch(/key server\d+ %.*characters/);
  });

  it("puts the worst lag first, and another order when it is chosen", async () => {
    await join("a-fine?format=ulaw_8000", TEXT);
    await join("b-late?format=ulaw_8000", TEXT);
    await lateListener("b-late", 3000);
    const page = await open();
    await expect.poll(() => rowNames(page), { timeout: 10_000 }).toEqual(["b-late", "a-fine"]);
    expect(await cell(page, "b-late", "Lag")).toMatch(/^[\d,]{3,5} ms$/);
    expect(await cell(page, "a-fine", "Lag")).toBe("0 ms");
    await page.locator("#order").selectOption("name");
    await expect.poll(() => rowNames(page)).toEqual(["a-fine", "b-late"]);
  });

  it("shows those whose name begins with what is typed", async () => {
    await join("support-1?format=ulaw_8000");
    await join("tour-1?format=ulaw_8000");
    const page = await open();
    await expect.poll(() => rowNames(page)).toEqual(["support-1", "tour-1"]);
    await page.locator("#prefix").fill("tour");
    await expect.poll(() => rowNames(page)).toEqual(["tour-1"]);
    await page.locator("#prefix").fill("nobody");
    await expect.poll(() => page.locator("#no-sessions").isVisible()).toBe(true);
  });

  it("can be used by keyboard alone: rows, Enter, Escape, and back where one was", async () => {
    for (const name of ["one", "three", "two"]) await join(`${name}?format=ulaw_8000`);
    const page = await open();
    await expect.poll(() => rowNames(page)).toEqual(["one", "three", "two"]);
    await page.keyboard.press("Tab");
    expect(await focusedText(page)).toBe("Skip to the sessions");
    // The filter, the order, and the table: one tab stop each.
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    expect(await focusedText(page)).toBe("one");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    expect(await focusedText(page)).toBe("two");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    const outline = await page.evaluate(
      () => getComputedStyle(document.activeElement ?? document.body).outlineStyle,
    );
    expect(outline).toBe("solid");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator("#opened-title").textContent()).toBe("three");
    expect(await focusedText(page)).toBe("three");
    expect(await page.locator("#overview").isVisible()).toBe(false);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.locator("#overview").isVisible()).toBe(true);
    expect(await focusedText(page)).toBe("three");
  });

  it("keeps rows and the focus in their places while somebody is in the table", async () => {
    await join("a?format=ulaw_8000", TEXT);
    await join("b?format=ulaw_8000", TEXT);
    const page = await open();
    await expect.poll(() => rowNames(page)).toEqual(["a", "b"]);
    await page.locator("#session-rows .row-name").first().focus();
    await lateListener("b", 3000);
    await expect.poll(() => cell(page, "b", "Lag"), { timeout: 10_000 }).toMatch(/^[\d,]{3,5} ms$/);
    expect(await rowNames(page)).toEqual(["a", "b"]);
    expect(await focusedText(page)).toBe("a");
    await page.locator("#prefix").focus();
    await expect.poll(() => rowNames(page)).toEqual(["b", "a"]);
  });

  it("opens a session: its timeline moves, with its words, its listeners and what was cut", async () => {
    const speaker = await join("talk?format=ulaw_8000&events=words", TEXT);
    await lateListener("talk", 2000);
    const page = await open();
    await page.locator("#session-rows .row-name").click();
    await expect.poll(() => fact(page, "Playhead")).toMatch(/^\d+\.\d\d s$/);
    const [before, at] = [await picture(page), await fact(page, "Playhead")];
    await expect.poll(() => fact(page, "Playhead")).not.toBe(at);
    expect(await picture(page)).not.toBe(before);
    await expect.poll(() => page.locator("#utterance-rows").textContent()).toMatch(/^uspeaking/);
    expect(await page.locator("#listener-rows tr").count()).toBe(2);
    await expect.poll(() => page.locator("#listener-rows").textContent()).toContain("(says so)");
    expect(await page.locator("#text-note").isVisible()).toBe(false);
    speaker.send({ type: "interrupt" });
    await expect.poll(() => fact(page, "Cut")).toBe("1");
    await expect.poll(() => page.locator("#opened-state").textContent()).toBe("Idle");
    await expect.poll(() => page.locator("#no-utterances").isVisible()).toBe(true);
  });

  it("between two reports the picture moves on by the clock of the screen", async () => {
    await join("talk?format=ulaw_8000&events=words", TEXT);
    const page = await open({ session: "talk" });
    await expect.poll(() => fact(page, "Playhead")).toBeDefined();
    // Six pictures of the screen are a tenth of a second: reports come four times a second.
    const seen = await page.evaluate(async () => {
      const canvas = document.querySelector<HTMLCanvasElement>("#timeline");
      const pictures = new Set<string>();
      for (let count = 0; count < 6; count += 1) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        pictures.add(canvas?.toDataURL() ?? "");
      }
      return pictures.size;
    });
    expect(seen).toBeGreaterThan(2);
  });

  it("says that a session is over", async () => {
    const speaker = await join("talk?format=ulaw_8000");
    const page = await open({ session: "talk" });
    await expect.poll(() => page.locator("#opened-state").textContent()).toBe("Idle");
    await speaker[Symbol.asyncDispose]();
    await expect.poll(() => page.locator("#opened-gone").isVisible()).toBe(true);
    expect(await page.locator("#opened-state").textContent()).toBe("");
  });

  it("shows words without their text to who may not listen", async () => {
    await join("talk?format=ulaw_8000&events=words", TEXT);
    const page = await open({ token: tokenFor({ ...ALL, allow: ["admin"] }), session: "talk" });
    await expect.poll(() => page.locator("#text-note").isVisible()).toBe(true);
  });

  it.each([
    ["no token", null, "This gateway asks for a token."],
    ["one that nobody has signed", "x.y.z", "The gateway does not take this token."],
    [
      "one without admin",
      tokenFor({ ...ALL, allow: ["listen"] }),
      "Your token does not allow the live view.",
    ],
    ["one that has expired", tokenFor(ALL, { lifeSeconds: -100 }), "Your token has expired"],
  ])(
    "%s is refused in plain words, and the next one is taken and kept nowhere",
    async (_name, token, words) => {
      const page = await open({ token });
      await expect.poll(() => page.locator("#token-what").textContent()).toContain(words);
      expect(await page.locator("#overview").isVisible()).toBe(false);
      const good = tokenFor(ALL);
      await page.locator("#token").fill(good);
      await page.keyboard.press("Enter");
      await expect.poll(() => page.locator("#overview").isVisible()).toBe(true);
      expect(await page.locator("#token-form").isVisible()).toBe(false);
      const kept = await page.evaluate(() =>
        [location.href, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie].join(
          " ",
        ),
      );
      expect(kept).not.toContain(good.slice(0, 20));
    },
  );

  it.each([360, 1600])("fits a screen of %i px: nothing but tables scrolls sideways", async (width) => {
    await join("talk?format=ulaw_8000", TEXT);
    const page = await open({ width });
    const isWide = () =>
      page.evaluate(() => {
        const fields = [...document.querySelectorAll<HTMLElement>(".control :is(input, select)")];
        const isOut = fields.some((field) => {
          const card = field.closest(".card")?.getBoundingClientRect();
          const { right } = field.getBoundingClientRect();
          return right > 0 && right > (card?.right ?? 0) - 8;
        });
        return isOut || document.documentElement.scrollWidth > innerWidth;
      });
    await expect.poll(() => rowNames(page)).toEqual(["talk"]);
    expect(await isWide()).toBe(false);
    await page.locator("#session-rows .row-name").click();
    await expect.poll(() => fact(page, "Playhead")).toBeDefined();
    expect(await isWide()).toBe(false);
  });
});
