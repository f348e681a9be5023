import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { LONG_TEXT, missingForSpeech, PATIENT, Program, run, useServed } from "./program.ts";

vi.setConfig(PATIENT);
const missing = missingForSpeech();

describe.skipIf(missing !== undefined)(
  `voicewire listen${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  { concurrent: true },
  () => {
    const served = useServed();

    const listening = (...args: string[]) => new Program(["listen", "--url", served.url, ...args]);

    test("a session that nobody speaks in exits with 1 and says what to do", async () => {
      const { code, stderr } = await run(["listen", "--url", served.url, "nobody"]);
      expect(code).toBe(1);
      expect(stderr).toContain('No session "nobody"');
      expect(stderr).toContain("--wait");
    });

    test("--wait joins as soon as somebody speaks: raw audio to stdout, captions to stderr", async () => {
      await using listener = listening("raw", "--wait", "--out", "-", "--format", "pcm_16000");
      await using _ = new Program(["say", "--url", served.url, "--session", "raw", LONG_TEXT]);
      await listener.until(() => listener.stdout.length > 64_000 && listener.stderr.includes(" is spoken."));
      listener.child.kill("SIGINT");
      const { code, stdout } = await listener.ended;
      expect(code).toBe(130);
      expect(stdout.length % 640).toBe(0);
      const samples = new Int16Array(stdout.buffer, stdout.byteOffset, stdout.length >> 1);
      expect(samples.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 0)).toBeGreaterThan(
        1000,
      );
    });

    test("several listeners each get their own format of one session", async () => {
      const ogg = served.file("all.ogg");
      const vtt = served.file("all.vtt");
      await using first = listening("two", "--wait", "--out", ogg, "--vtt", vtt);
      await using second = listening(
        "two",
        "--wait",
        "--out",
        "-",
        "--format",
        "ulaw_8000",
        "--frame-ms",
        "40",
      );
      await using third = listening("two", "--wait", "--json", "--for", "100");
      await using _ = new Program(["say", "--url", served.url, "--session", "two", LONG_TEXT]);
      await first.until(() => first.stdout.toString().includes(" is spoken."));
      await second.until(() => second.stdout.length > 0);
      await third.until(() => third.stdout.toString().includes('"type":"words"'));
      for (const listener of [first, second, third]) listener.child.kill("SIGINT");
      await first.ended;
      expect(readFileSync(ogg).subarray(0, 4).toString()).toBe("OggS");
      expect(readFileSync(vtt, "utf8").replace(/<[^>]*>/g, "")).toContain("is spoken");
      expect((await second.ended).stdout.length % 320).toBe(0);
      const lines = (await third.ended).stdout.toString().trim().split("\n");
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({ type: "hello", session: "two" });
      for (const line of lines) expect(JSON.parse(line)).toHaveProperty("at_ms");
    });

    test("a reader that goes away ends it cleanly, with 0", async () => {
      const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
      const line = `"${process.execPath}" "${main}" listen --url ${served.url} --wait --no-captions --out - pipe | head -c 4000 | wc -c; exit \${PIPESTATUS[0]}`;
      const shell = spawn("bash", ["-c", line], { stdio: ["ignore", "pipe", "pipe"] });
      let out = "";
      let err = "";
      shell.stdout.on("data", (chunk) => {
        out += chunk;
      });
      shell.stderr.on("data", (chunk) => {
        err += chunk;
      });
      const ended = new Promise<number | null>((resolve) => shell.once("close", resolve));
      await using _ = new Program(["say", "--url", served.url, "--session", "pipe", LONG_TEXT]);
      expect(await ended).toBe(0);
      expect([out.trim(), err]).toEqual(["4000", ""]);
    });

    test("--for ends it after its time, with 0 and whole files", async () => {
      const wav = served.file("for.wav");
      await using speaker = new Program(["say", "--url", served.url, "--session", "for", LONG_TEXT]);
      await speaker.until(() => speaker.stdout.toString().includes("Sentence number 1"));
      const { code, stderr } = await run([
        "listen",
        "--url",
        served.url,
        "for",
        "--wait",
        "--for",
        "3",
        "--out",
        wav,
      ]);
      expect(code).toBe(0);
      expect(stderr).toContain(`Wrote ${wav}`);
      const bytes = readFileSync(wav);
      expect(bytes.readUInt32LE(40)).toBe(bytes.length - 44);
    });
  },
);
