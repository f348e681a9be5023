/** The three starts of README.md, as they are written there but for the address. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningService, startService } from "../../src/service/service.ts";
import { gatewayAt, type TestGateway } from "../helpers/start-gateway.ts";
import { launchBrowser, whyNoBrowser } from "../page/browser.ts";

const ROOT = join(import.meta.dirname, "../..");
const ADDRESS = "127.0.0.1:8080";

let service: RunningService;
let gateway: TestGateway;
/** Below the project, where Node finds the packages. */
let folder: string;

beforeAll(async () => {
  service = await startService({ host: "127.0.0.1", port: 0 });
  gateway = await gatewayAt(service.url, { voice: "" });
  await mkdir(join(ROOT, "node_modules", ".cache"), { recursive: true });
  folder = await mkdtemp(join(ROOT, "node_modules", ".cache", "voicewire-starts-"));
});

afterAll(async () => {
  await gateway?.close();
  await service?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** The code block below a start's name, pointed at the gateway of this test. */
async function startOf(name: string, language: string): Promise<string> {
  const readme = await readFile(join(ROOT, "README.md"), "utf8");
  const [, section = ""] = readme.split(`\n**${name}.**`);
  const [, code] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(section) ?? [];
  if (code === undefined) throw new Error(`README.md has no start for ${name}`);
  expect(code).toContain(ADDRESS);
  return code.replaceAll(ADDRESS, gateway.url.replace("http://", ""));
}

async function outputOf(command: string, args: readonly string[]): Promise<{ code: number; text: string }> {
  const child = spawn(command, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const pieces: string[] = [];
  child.stdout.on("data", (piece: Buffer) => pieces.push(piece.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, text: pieces.join("") };
}

describe.concurrent("the starts of README.md", () => {
  it("Node: prints each word with its time", async () => {
    await writeFile(join(folder, "hello.mjs"), await startOf("Node", "js"));
    const { code, text } = await outputOf(process.execPath, ["hello.mjs"]);
    expect(
      text
        .trim()
        .split("\n")
        .map((line) => line.split(" ")[1]),
    ).toEqual(["Hello", "from", "the", "gateway"]);
    expect(code).toBe(0);
  });

  it("curl: saves speech as MP3", async () => {
    const { code } = await outputOf("sh", ["-c", await startOf("curl", "sh")]);
    const saved = await readFile(join(folder, "hello.mp3"));
    expect(code).toBe(0);
    expect(saved.length).toBeGreaterThan(4000);
    // A frame of MPEG layer III, or the tag before it.
    expect(["ff", "49"]).toContain(saved.subarray(0, 1).toString("hex"));
  });

  it.skipIf(whyNoBrowser() !== null)("browser: plays, and shows the words", async () => {
    const text = await startOf("Browser", "html");
    const files = createServer((_, res) => res.setHeader("content-type", "text/html").end(text));
    await once(files.listen(0, "127.0.0.1"), "listening");
    const { port } = files.address() as AddressInfo;
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      await page.goto(`http://localhost:${port}/hello.html`);
      await page.waitForFunction("player.src !== ''");
      await page.click("#speak");
      await page.waitForFunction("words.textContent.trim() === 'Hello from the gateway'");
      await page.waitForFunction("player.currentTime > 0.2", undefined, { timeout: 20_000 });
      expect(await page.textContent("#words")).toBe(" Hello from the gateway ".slice(1));
    } finally {
      await browser.close();
      files.close();
    }
  });
});
