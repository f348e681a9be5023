/** The examples for games and avatars, as they are started by hand. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { VisemeEvent } from "../../src/protocol/events.ts";
import { startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { launchBrowser, whyNoBrowser } from "../page/browser.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples");
const LEAD_MS = 60;

interface Mouth {
  readonly viseme: string;
  readonly heardMs: number | null;
}

async function servePage(gatewayUrl: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [join(EXAMPLES, "avatar/serve.mjs")], {
    env: { PORT: "0", VOICEWIRE_URL: gatewayUrl },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { child, url: line.toString().trim() };
}

function shapeAt(events: readonly VisemeEvent[], ms: number): string | number {
  for (const { visemes, vtimes_ms, vdurations_ms } of events) {
    const index = vtimes_ms.findIndex((at, i) => at <= ms && ms < at + (vdurations_ms[i] ?? 0));
    if (index >= 0) return visemes[index] ?? "";
  }
  return "sil";
}

const missing = whyNoBrowser();
describe.skipIf(missing !== null)(
  `the avatar's page${missing === null ? "" : ` (skipped: ${missing})`}`,
  () => {
    it("moves its mouth with the sound that is heard, and closes it when that is over", async () => {
      await using upstream = await startFakeUpstream();
      await using gateway = await gatewayAt(upstream.url);
      const { child, url } = await servePage(gateway.wsUrl);
      const browser = await launchBrowser();
      try {
        const page = await browser.newPage();
        const faults: string[] = [];
        page.on("pageerror", (error) => faults.push(error.message));
        const mouths: Mouth[] = [];
        await page.exposeFunction("tellMouth", (mouth: Mouth) => mouths.push(mouth));
        await page.addInitScript('addEventListener("mouth", ({ detail }) => globalThis.tellMouth(detail))');
        await page.goto(`${url}&session=face`);
        await page.getByText("Connected.").waitFor();
        await using other = await TestClient.connect(
          gateway,
          "/live/face?role=listener&format=none&events=visemes",
        );
        await page.getByLabel("Text").fill("Boats float by. My mouth moves.");
        await page.getByRole("button", { name: "Say it" }).click();
        await other.next("utterance.done");
        // A function: the page's own rules let no text run as a script in it, should it not be true at once.
        await page.waitForFunction(
          () => document.querySelector<HTMLElement>("#mouth")?.dataset.viseme === "sil",
        );
        const events = other.eventsOf("viseme");
        const received = new Set(events.flatMap((event) => event.visemes));
        // Whatever the page had time to show was what is heard right then.
        const heard = mouths.filter((mouth): mouth is Mouth & { heardMs: number } => mouth.heardMs !== null);
        for (const { viseme, heardMs } of heard) expect(viseme).toBe(shapeAt(events, heardMs + LEAD_MS));
        expect(new Set(heard.map(({ viseme }) => viseme)).size).toBeGreaterThan(3);
        expect(received.has("PP")).toBe(true);
        expect(mouths.at(-1)?.viseme).toBe("sil");
        expect(faults).toEqual([]);
      } finally {
        await browser.close();
        child.kill();
        await once(child, "exit");
      }
    });
  },
);
