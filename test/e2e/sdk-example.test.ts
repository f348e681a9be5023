/** The README's example with the official SDK, as it is written there but for the port. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { MPEGDecoder } from "mpg123-decoder";
import { describe, expect, it } from "vitest";
import { startService } from "../../src/service/service.ts";
import { gatewayAt } from "../helpers/start-gateway.ts";

const ROOT = join(import.meta.dirname, "../..");

async function exampleOf(readme: string): Promise<string> {
  const section = readme.split("## Your existing SDK")[1]?.split("\n## ")[0] ?? "";
  const code = /```js\n([\s\S]*?)```/.exec(section)?.[1];
  if (code === undefined) throw new Error("The README has no example with the SDK");
  return code;
}

describe("the README's example with the official SDK", () => {
  it("saves speech and reads it in the history, through the gateway", async () => {
    const service = await startService({ host: "127.0.0.1", port: 0, key: "gateway-key" });
    // Below the project, where Node finds the SDK.
    await mkdir(join(ROOT, "node_modules", ".cache"), { recursive: true });
    const folder = await mkdtemp(join(ROOT, "node_modules", ".cache", "voicewire-example-"));
    try {
      await using gateway = await gatewayAt(service.url, {}, { upstreamKey: "gateway-key" });
      const code = await exampleOf(await readFile(join(ROOT, "README.md"), "utf8"));
      await writeFile(join(folder, "example.mjs"), code.replaceAll("http://127.0.0.1:8080", gateway.url));
      const child = spawn(process.execPath, ["example.mjs"], {
        cwd: folder,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const said: string[] = [];
      child.stdout.on("data", (piece: Buffer) => said.push(piece.toString()));
      child.stderr.on("data", (piece: Buffer) => said.push(piece.toString()));
      const [exitCode] = (await once(child, "close")) as [number];
      expect(said.join("")).toBe("Saved hello.mp3: Hello from the gateway.\n");
      expect(exitCode).toBe(0);
      const decoder = new MPEGDecoder();
      await decoder.ready;
      const { samplesDecoded, sampleRate } = decoder.decode(await readFile(join(folder, "hello.mp3")));
      decoder.free();
      expect(samplesDecoded / sampleRate).toBeGreaterThan(0.8);
    } finally {
      await rm(folder, { recursive: true, force: true });
      await service.close();
    }
  });
});

describe("/openapi.json", () => {
  it("is the service's, on the gateway's port as well", async () => {
    const service = await startService({ host: "127.0.0.1", port: 0, key: "" });
    try {
      await using gateway = await gatewayAt(service.url);
      const received = await (await fetch(`${gateway.url}/openapi.json`)).json();
      expect(received).toMatchObject({ openapi: expect.stringMatching(/^3\.1/) });
      expect(received).toEqual(await (await fetch(`${service.url}/openapi.json`)).json());
    } finally {
      await service.close();
    }
  });
});
