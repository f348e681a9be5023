/** examples/agent/livekit.mjs as its README says, with the packages that are installed beside this file. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startService } from "../../src/service/service.ts";
import { gatewayAt } from "../helpers/start-gateway.ts";
import { decode, loudness } from "../service/client.ts";
import { areInstalled, IF_INSTALLED } from "./installed.ts";

const EXAMPLE = join(import.meta.dirname, "../../examples/agent/livekit.mjs");
const RATE = 16_000;

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "voicewire-agent-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function run(
  gateway: string,
  packages: string,
): Promise<{ code: number; out: string; err: string; wav: string }> {
  const wav = join(folder, "out.wav");
  const { VOICE: _, ELEVEN_API_KEY: __, ...env } = process.env;
  const child = spawn(process.execPath, [EXAMPLE, wav], {
    env: { ...env, VOICEWIRE_URL: gateway, PACKAGES: packages },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (piece: Buffer) => out.push(piece));
  child.stderr.on("data", (piece: Buffer) => err.push(piece));
  const [code] = (await once(child, "close")) as [number];
  return { code, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString(), wav };
}

describe("examples/agent without its packages", () => {
  it("says how to install them", async () => {
    const { code, err, wav } = await run("http://127.0.0.1:9", folder);
    expect(err).toBe(
      "@livekit/agents is not installed. Install it with: npm install --prefix examples/agent\n",
    );
    expect(code).toBe(1);
    expect(existsSync(wav)).toBe(false);
  });

  it("names the versions that the tests run with", async () => {
    const read = async (path: string): Promise<Record<string, string>> =>
      (JSON.parse(await readFile(path, "utf8")) as { dependencies: Record<string, string> }).dependencies;
    const tested = await read(join(import.meta.dirname, "package.json"));
    expect(tested).toMatchObject(await read(join(EXAMPLE, "../package.json")));
  });
});

const PACKAGES = ["@livekit/agents", "@livekit/agents-plugin-elevenlabs"];
describe.skipIf(!areInstalled(...PACKAGES))(`examples/agent ${IF_INSTALLED}`, () => {
  it("saves what was said, and prints each word with its time", { timeout: 60_000 }, async () => {
    const service = await startService({ host: "127.0.0.1", port: 0, warmsUp: false, key: "gateway-key" });
    try {
      await using gateway = await gatewayAt(service.url, { voice: "" }, { upstreamKey: "gateway-key" });
      const { code, out, err, wav } = await run(gateway.wsUrl, import.meta.dirname);
      expect(err).toBe("");
      expect(code).toBe(0);
      const words = [...out.matchAll(/^(\d+\.\d{3}) {2}(\S+)$/gm)].map(([, at, text]) => ({
        at: Number(at),
        text,
      }));
      expect(words.map(({ text }) => text).join(" ")).toBe(
        "Sure. I have found two trains to Hamburg. The first one leaves at nine, and the second one half an hour later.",
      );
      const starts = words.map(({ at }) => at);
      expect(starts).toEqual([...starts].sort((a, b) => a - b));
      const samples = decode(await readFile(wav), "wav");
      expect(samples.length / RATE).toBeGreaterThan(4);
      expect(starts.at(-1)).toBeGreaterThan((samples.length / RATE) * 0.7);
      expect(starts.at(-1)).toBeLessThan(samples.length / RATE);
      expect(loudness(samples)).toBeGreaterThan(300);
      expect(out).toContain(`Saved ${wav}: ${(samples.length / RATE).toFixed(2)} s`);
    } finally {
      await service.close();
    }
  });

  it("says what to do where there is no gateway", { timeout: 60_000 }, async () => {
    const { code, err } = await run("ws://127.0.0.1:9", import.meta.dirname);
    expect(err).toBe("Can't reach the gateway at http://127.0.0.1:9. Start one with: npm start\n");
    expect(code).toBe(1);
  });
});
