import { execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test, vi } from "vitest";
import {
  eventsIn,
  hasProgram,
  LONG_TEXT,
  missingForSpeech,
  PATIENT,
  Program,
  run,
  serve,
  useServed,
} from "./program.ts";

vi.setConfig(PATIENT);
const missing = missingForSpeech();
const TEXT = "Hello there, it is a fine day.";

describe.skipIf(missing !== undefined)(
  `voicewire say${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  { concurrent: true },
  () => {
    const served = useServed();

    const say = (...args: string[]) => run(["say", "--url", served.url, ...args]);

    test("writes the words as they are spoken where stdout is no terminal", async () => {
      const { code, stdout, stderr } = await say(TEXT);
      expect(stderr).toBe("");
      expect(stdout.toString()).toBe(`${TEXT}\n`);
      expect(code).toBe(0);
    });

    test("speaks a pipe of tokens before it has ended", async () => {
      await using program = new Program(["say", "--url", served.url, "--json"]);
      for (const token of ["Hel", "lo", " there", ".", " It", " is"]) program.write(token);
      const words = () => program.stdout.toString().includes('"type":"words"');
      // The first sentence is complete, the pipe is open: it is spoken now.
      await program.until(words);
      program.write(" late.");
      program.endInput();
      const { code, stdout } = await program.ended;
      const events = eventsIn(stdout);
      expect(code).toBe(0);
      expect(events[0]?.type).toBe("hello");
      expect(events.at(-1)).toMatchObject({ type: "utterance.done", outcome: "done" });
      const spoken = events.flatMap((event) => (event.type === "words" ? event.words : []));
      expect(spoken.map((word) => word.text.replace(/\W/g, "")).join(" ")).toBe("Hello there It is late");
    });

    const formats: readonly (readonly [string, string, string, readonly string[]])[] = [
      ["wav", "pcm_s16le", "24000", []],
      ["mp3", "mp3", "44100", []],
      ["ogg", "opus", "48000", []],
      ["ulaw", "pcm_mulaw", "8000", ["-f", "mulaw", "-ar", "8000"]],
      ["alaw", "pcm_alaw", "8000", ["-f", "alaw", "-ar", "8000"]],
      ["pcm", "pcm_s16le", "24000", ["-f", "s16le", "-ar", "24000"]],
    ];

    test.skipIf(!hasProgram("ffprobe")).each(formats)(
      "--out x.%s is %s at %s Hz as ffprobe sees it (skipped without ffprobe)",
      async (ending, codec, rate, input) => {
        const path = served.file(`x.${ending}`);
        const { code, stderr, stdout } = await say("--out", path, TEXT);
        expect(code).toBe(0);
        expect(stdout.length).toBe(0);
        expect(stderr).toMatch(new RegExp(`^Wrote ${path}: \\d\\.\\d s of `));
        const probed = JSON.parse(
          execFileSync("ffprobe", [
            "-v",
            "error",
            ...input,
            "-show_streams",
            "-show_format",
            "-of",
            "json",
            path,
          ]).toString(),
        );
        expect(probed.streams).toHaveLength(1);
        expect(probed.streams[0]).toMatchObject({ codec_name: codec, sample_rate: rate, channels: 1 });
        const seconds = Number(probed.format.duration ?? probed.streams[0].duration);
        expect(seconds).toBeGreaterThan(1.2);
        expect(seconds).toBeLessThan(4);
      },
    );

    test("--out - gives the bare samples on stdout and nothing else", async () => {
      const { code, stdout } = await say("--out", "-", "--format", "pcm_16000", TEXT);
      expect(code).toBe(0);
      expect(stdout.length % 640).toBe(0);
      expect(stdout.length).toBeGreaterThan(16_000);
      const samples = new Int16Array(stdout.buffer, stdout.byteOffset, stdout.length >> 1);
      expect(samples.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 0)).toBeGreaterThan(
        1000,
      );
    });

    test("--vtt and --srt hold the text with times that rise", async () => {
      const [vtt, srt] = [served.file("x.vtt"), served.file("x.srt")];
      expect((await say("--vtt", vtt, "--srt", srt, `${TEXT} And so on it goes, word by word.`)).code).toBe(
        0,
      );
      const vttText = readFileSync(vtt, "utf8");
      expect(vttText.startsWith("WEBVTT\n")).toBe(true);
      const times = [...vttText.matchAll(/(\d\d):(\d\d):(\d\d)\.(\d{3}) -->/g)].map(([, h, m, s, ms]) =>
        Number(`${Number(h) * 3600 + Number(m) * 60 + Number(s)}.${ms}`),
      );
      expect(times.length).toBeGreaterThan(0);
      expect([...times].sort((a, b) => a - b)).toEqual(times);
      expect(vttText.replace(/<[^>]*>/g, "").replace(/\s+/g, " ")).toContain("Hello there");
      const srtText = readFileSync(srt, "utf8");
      expect(srtText).toMatch(/^1\r?\n\d\d:\d\d:\d\d,\d{3} --> \d\d:\d\d:\d\d,\d{3}\r?\nHello there/);
    });

    test("--vtt and --srt have cleaned text as the gateway's captions have it", async () => {
      const [vtt, srt] = [served.file("clean.vtt"), served.file("clean.srt")];
      const text = "This is **bold**. Read the [guide](https://x.example/a), then *stop*!";
      const files = ["--vtt", vtt, "--srt", srt];
      expect((await say("--clean", "markdown", ...files, text)).code).toBe(0);
      for (const file of [vtt, srt]) {
        const lines = readFileSync(file, "utf8")
          .split("\n")
          .filter((line) => line !== "" && !/-->|^\d+$|^WEBVTT$/.test(line));
        expect(lines.join(" ").replace(/<[^>]*>/g, "")).toBe("This is bold. Read the guide, then stop!");
      }
    });

    test("--list-voices and --voice by name; an unknown one exits with 4 and suggests", async () => {
      const list = await say("--list-voices");
      const [name = ""] = list.stdout.toString().split(/\s/);
      expect(name).not.toBe("");
      expect(
        (await say("--voice", name.toLowerCase(), "--out", served.file("v.ulaw"), "Hi there.")).code,
      ).toBe(0);
      const wrong = await say("--voice", `${name}x`, "Hi.");
      expect(wrong.code).toBe(4);
      expect(wrong.stderr).toContain(`did you mean "${name}"?`);
    });

    test("--dialogue speaks each line with its voice", async () => {
      const names = (await say("--list-voices")).stdout
        .toString()
        .split("\n")
        .map((line) => line.split(/\s/)[0] ?? "");
      const file = served.file("play.txt");
      writeFileSync(file, `${names[0]}: How are you?\n${names[1]}: Fine, thanks.\n`);
      const { code, stdout, stderr } = await say("--dialogue", file);
      expect(stderr).toBe("");
      expect(stdout.toString()).toBe(`${names[0]}: How are you?\n${names[1]}: Fine, thanks.\n`);
      expect(code).toBe(0);
      const json = await say("--dialogue", file, "--json", "--out", served.file("play.wav"));
      const segments = json.stdout
        .toString()
        .split("\n")
        .filter((line) => line.includes('"type":"segment"'));
      expect(new Set(segments.map((line) => JSON.parse(line).voice_id)).size).toBe(2);
    });

    test("a text over the gateway's limit is spoken whole, as several utterances", async () => {
      await using small = (await serve(["--max-text-chars", "40", "--log-level", "warn"])).program;
      const url = /Page {2}(http:\S+)\//.exec(small.stdout.toString())?.[1] ?? "";
      const text = "One two three four five. Six seven eight nine ten. Eleven twelve thirteen fourteen.";
      const { code, stdout } = await run([
        "say",
        "--url",
        url,
        "--json",
        "--out",
        served.file("long.ulaw"),
        text,
      ]);
      expect(code).toBe(0);
      const events = eventsIn(stdout);
      expect(events.filter((event) => event.type === "utterance.done").length).toBeGreaterThan(1);
      const words = events.flatMap((event) => (event.type === "words" ? event.words : []));
      expect(words).toHaveLength(14);
    });

    const STREAMS = fileURLToPath(new URL("../../examples/streams/", import.meta.url));

    test("--tokens speaks a recorded stream, without what --clean leaves out, and --waterfall says where the time went", async () => {
      const vtt = served.file("tokens.vtt");
      const { code, stdout, stderr } = await say(
        "--tokens",
        `${STREAMS}english-phone.ndjson`,
        "--clean",
        "markdown,emoji,urls,code",
        "--json",
        "--vtt",
        vtt,
        "--waterfall",
      );
      expect(stderr).toMatch(/^text [\d.]+ \+ queued .+ \+ first frame [\d.]+ = total [\d.]+ ms/m);
      expect(code).toBe(0);
      const events = eventsIn(stdout);
      const words = events.flatMap((event) => (event.type === "words" ? event.words : []));
      expect(words.map((word) => word.text).join(" ")).toContain("Harbor Dental");
      expect(events.at(-1)).toMatchObject({ type: "utterance.done", outcome: "done" });
    });

    test("Ctrl+C says what was heard and exits with 130", async () => {
      await using program = new Program(["say", "--url", served.url, LONG_TEXT]);
      await program.until(() => program.stdout.toString().includes("Sentence number 2"));
      program.child.kill("SIGINT");
      const { code, stderr, stdout } = await program.ended;
      expect(code).toBe(130);
      const [summary, heard, notHeard] = stderr.split("\n");
      expect(summary).toMatch(/^Interrupted after \d+ ms \(as the player reported, within \d+ ms\)$/);
      expect(heard).toMatch(/^Heard: "Sentence number 1 is spoken\. Sen/);
      expect(notHeard).toMatch(/^Not heard: ".+" and \d+ characters more$/);
      expect(stdout.toString()).not.toContain("number 40");
    });

    test("empty stdin exits with 2, and a text nobody can speak with the gateway's reason", async () => {
      const empty = await run(["say", "--url", served.url], { stdin: " \n" });
      expect(empty).toMatchObject({
        code: 2,
        stderr: "voicewire: Nothing to say: the input was empty, expected text (invalid_config)\n",
      });
      const control = await say("a\u0007b");
      expect(control.code).toBe(2);
      expect(control.stderr).toMatch(/^voicewire: .*control character/i);
    });

    test("without a gateway starts one of its own", async () => {
      const path = served.file("own.wav");
      // Port 9 of the loopback interface is not ours: no gateway is found there.
      const { code, stderr } = await run(["say", "--out", path, TEXT], {
        // Settings of a gateway that others reach say nothing of one of its own.
        env: { VOICEWIRE_PORT: "9", VOICEWIRE_OPS_HOST: "0.0.0.0", VOICEWIRE_TRUSTED_PROXIES: "10.0.0.1" },
      });
      expect(stderr).toContain("Wrote");
      expect(code).toBe(0);
      expect(statSync(path).size).toBeGreaterThan(24_000);
    });
  },
);
