/** examples/browser-tokens as its first lines say, in a browser: an app's server gives it short tokens. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/commands.ts";
import { temporaryFolder } from "../cli/program.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { launchBrowser, whyNoBrowser } from "../page/browser.ts";
import { memoryIo } from "../unit/cli/memory-io.ts";

const SERVE = join(import.meta.dirname, "../../examples/browser-tokens/serve.mjs");
const missing = whyNoBrowser();

describe.skipIf(missing !== null)(
  `examples/browser-tokens${missing === null ? "" : ` (skipped: ${missing})`}`,
  () => {
    const folder = temporaryFolder();
    const keysFile = folder.file("keys.json");
    let upstream: FakeUpstream;
    let gateway: TestGateway;
    let child: ChildProcess;
    let browser: Browser;
    let address = "";

    beforeAll(async () => {
      const io = memoryIo(["keys", "new", "web", "--signs", "--file", keysFile]);
      expect(await runCli(io)).toBe(0);
      upstream = await startFakeUpstream(speaking({ msPerChar: 20 }));
      gateway = await gatewayAt(upstream.url, { keysFile });
      const env = {
        PORT: "0",
        VOICEWIRE_URL: gateway.wsUrl,
        VOICEWIRE_SIGNING_SECRET: io.stdout.text.trim(),
      };
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
      await upstream?.[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    });

    it("speaks with a token that its own server signed, which is in no address", async () => {
      const page = await browser.newPage();
      const faults: string[] = [];
      const sockets: string[] = [];
      page.on("pageerror", (error) => faults.push(error.message));
      page.on("console", (message) => {
        if (message.type() === "error") faults.push(message.text());
      });
      page.on("websocket", (socket) => sockets.push(socket.url()));
      await page.goto(address);
      await page.getByText("Connected", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Say it" }).click();
      await page.getByText("This page has no key only a short token", { exact: false }).waitFor();
      expect(faults).toEqual([]);
      expect(sockets).toEqual([expect.stringContaining("/live/app-ann?")]);
      expect(sockets.join()).not.toContain("token");
    });

    it("gives tokens to its own page alone, good for one person's session", async () => {
      const ask = (site: string) =>
        fetch(`${address}voice-token`, { method: "POST", headers: { "sec-fetch-site": site } });
      expect((await ask("cross-site")).status).toBe(403);
      const { token } = (await (await ask("same-origin")).json()) as { token: string };
      const authorization = `Bearer ${token}`;
      const speak = (session: string) =>
        fetch(`${gateway.url}/live/${session}/speak`, {
          method: "POST",
          headers: { authorization, "content-type": "application/json" },
          body: JSON.stringify({ text: "Hello." }),
        });
      // Its own may be spoken in, though nobody is there to hear it.
      expect((await speak("app-ann")).status).not.toBe(403);
      expect((await speak("app-bob")).status).toBe(403);
    });
  },
);
