/** The scripts that lie in examples/ itself, run unchanged against a whole gateway. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OggOpusDecoder } from "ogg-opus-decoder";
import { describe, expect, it } from "vitest";
import { useSpeakingGateway } from "../helpers/speaking-gateway.ts";
import { TestClient } from "../helpers/start-gateway.ts";
import { readStrictVtt } from "../helpers/strict-vtt.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples");
const SCRIPTS = ["speak.mjs", "tokens.mjs", "two-codecs.mjs", "http.mjs"];
const MS_PER_CHARACTER = 60;

async function run(
  script: string,
  url: string,
  args: string[] = [],
): Promise<{ code: number; said: string }> {
  const env = { ...process.env, VOICEWIRE_URL: url };
  const child = spawn(process.execPath, [join(EXAMPLES, script), ...args], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said: string[] = [];
  child.stdout.on("data", (piece: Buffer) => said.push(piece.toString()));
  child.stderr.on("data", (piece: Buffer) => said.push(piece.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, said: said.join("") };
}

describe.concurrent("a script of examples/", { timeout: 60_000 }, () => {
  const stand = useSpeakingGateway({ msPerChar: MS_PER_CHARACTER });

  it("speak.mjs prints each word with its time, and how much was said", async () => {
    const { code, said } = await run("speak.mjs", stand.gateway.wsUrl, ["Boats float by."]);
    expect(said.match(/^ +\d+ ms {2}\w+$/gm)).toEqual([
      "     0 ms  Boats",
      "   360 ms  float",
      "   720 ms  by",
    ]);
    expect(said).toMatch(/done: 900 ms of speech, 43200 bytes/);
    expect(code).toBe(0);
  });

  it("tokens.mjs speaks while tokens come, and says what was heard when it is cut", async () => {
    const { code, said } = await run("tokens.mjs", stand.gateway.wsUrl);
    expect(said).toMatch(/^Once upon a time/);
    const [, heard = ""] = /heard \d+ ms: "(.+)"/.exec(said) ?? [];
    const [, unheard = ""] = /not heard: "(.+)"/.exec(said) ?? [];
    expect(heard).toMatch(/^Once upon/);
    expect(unheard).toMatch(/what to say\.\s*$/);
    expect(code).toBe(0);
  });

  it("two-codecs.mjs hears one speech in two codecs, frame for frame", async () => {
    // Opus has been asked of nobody but us: with mu-law beside it the upstream is asked for PCM.
    const { code, said } = await run("two-codecs.mjs", stand.gateway.wsUrl);
    const [, phoneFrames, phoneBytes] = /ulaw_8000: (\d+) frames, (\d+) bytes/.exec(said) ?? [];
    expect(Number(phoneBytes)).toBe(Number(phoneFrames) * 160);
    const text = "The same words, to everybody, each in their own codec.";
    expect(Number(phoneFrames)).toBe((text.length * MS_PER_CHARACTER) / 20);
    const [, opusFrames] = /opus_48000: (\d+) frames/.exec(said) ?? [];
    expect(Math.abs(Number(opusFrames) - Number(phoneFrames))).toBeLessThanOrEqual(1);
    expect(code).toBe(0);
  });

  it("http.mjs speaks, hears and reads captions without a socket for it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "voicewire-example-"));
    await using _recorder = await TestClient.connect(
      stand.gateway,
      "/live/example-http?format=pcm_24000&events=none",
    );
    try {
      const file = join(folder, "hello.ogg");
      const { code, said } = await run("http.mjs", stand.gateway.wsUrl, [file]);
      expect(said).toMatch(/^speak: 202 \S+$/m);
      const vtt = said.slice(said.indexOf("WEBVTT"), said.indexOf("interrupt:"));
      const lines = readStrictVtt(vtt).flatMap((cue) => cue.lines);
      expect(lines.join(" ")).toMatch(/^Hello over HTTP\./);
      expect(said).toMatch(/^interrupt: 409 nothing_to_interrupt$/m);
      const decoder = new OggOpusDecoder();
      await decoder.ready;
      const { samplesDecoded, errors } = await decoder.decodeFile(await readFile(file));
      decoder.free();
      expect(errors).toEqual([]);
      // All but what was still under way when it left: at least the first sentence.
      expect(samplesDecoded).toBeGreaterThan("Hello over HTTP.".length * MS_PER_CHARACTER * 48);
      expect(code).toBe(0);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it.each(SCRIPTS)("%s says what to do where there is no gateway", async (script) => {
    const { code, said } = await run(script, "ws://127.0.0.1:9");
    expect(said).toContain("Start one with: npm start");
    expect(code).toBe(1);
  });
});
