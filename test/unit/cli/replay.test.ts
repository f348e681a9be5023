/** `voicewire replay`: what it says of a recording, and how it ends. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { decodeUlaw } from "../../../src/audio/codecs/g711.ts";
import { runCli } from "../../../src/cli/commands.ts";
import { Chain } from "../../../src/recording/chain.ts";
import { countingUlaw } from "../../helpers/session-rig.ts";
import { recordedLines } from "../recording/recording-rig.ts";
import { memoryIo } from "./memory-io.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-replay-"));
afterAll(() => rmSync(folder, { recursive: true }));

const recorded = (isRedacted = false) => recordedLines({ isRedacted, utteranceId: "greeting" });

async function replayed(lines: readonly string[], ...args: string[]) {
  const file = join(folder, "session.voicewire");
  writeFileSync(file, lines.map((line) => `${line}\n`).join(""));
  const io = memoryIo(["replay", file, ...args], { env: {} });
  const code = await runCli(io);
  return { code, out: io.stdout.text, err: io.stderr.text };
}

describe("voicewire replay", () => {
  it("says that a session is byte-exact, and what came of its utterances", async () => {
    const { code, out } = await replayed(await recorded(), "--events");
    expect(out).toMatch(/Byte-exact: \d+ messages of \d+ entries/);
    expect(out).toContain("Recording ended (shutdown): With its gateway.");
    expect(out).toMatch(/greeting +0\.000 s .* done /);
    expect(out).toMatch(/event +- +utterance\.started +greeting/);
    expect(code).toBe(0);
  });

  it("writes what a listener was sent", async () => {
    const out = join(folder, "heard.ulaw");
    expect((await replayed(await recorded(), "--out", out)).code).toBe(0);
    const heard = readFileSync(out);
    expect(heard.subarray(0, 4800)).toEqual(Buffer.from(countingUlaw(600)));
  });

  it("writes a phone caller's audio as WAV, decoded, and names the files that can hold it", async () => {
    const out = join(folder, "heard.wav");
    expect((await replayed(await recorded(), "--out", out)).code).toBe(0);
    const wav = readFileSync(out);
    expect([wav.readUInt16LE(20), wav.readUInt32LE(24)]).toEqual([1, 8000]);
    expect(wav.subarray(44, 44 + 9600)).toEqual(Buffer.from(decodeUlaw(countingUlaw(600)).buffer));
    const { code, err } = await replayed(await recorded(), "--out", join(folder, "heard.mp3"));
    expect([code, err]).toEqual([
      2,
      expect.stringContaining("the audio is ulaw_8000, expected a name that ends in"),
    ]);
    expect(err).toContain(".wav, .ulaw");
    expect(err).not.toContain("--format");
  });

  it("fails with the first difference", async () => {
    const chain = new Chain();
    const lines = (await recorded()).map((line) =>
      chain.sign(line.slice(17).replace('"utterance.queued","seq":0', '"utterance.queued","seq":7')),
    );
    const { code, out } = await replayed(lines);
    expect(out).toMatch(/First difference: line \d+, 0\.000 s, connection 1, message 2, notify: 1\.seq/);
    expect(code).toBe(1);
  });

  it("shows a recording without texts, and does not run it", async () => {
    const lines = await recorded(true);
    const { code, out } = await replayed(lines);
    expect(out).toContain("Not run: the recording has hashes in place of texts and audio");
    expect(out).toMatch(/greeting +0\.000 s/);
    expect(code).toBe(0);
    const refused = await replayed(lines, "--out", "x.wav");
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("has no audio in it") });
  });

  it("refuses what was edited, and passes over a line that was cut off", async () => {
    const lines = await recorded();
    const edited = await replayed(lines.map((line) => line.replace("Hello", "Hallo")));
    expect(edited).toMatchObject({ code: 2, err: expect.stringMatching(/line \d+: the line was edited/) });
    const cut = await replayed(lines.slice(0, -3));
    expect(cut).toMatchObject({ code: 0, err: expect.stringContaining("has no last line") });
    expect(await replayed([])).toMatchObject({ code: 2 });
  });

  it("as JSON: one object", async () => {
    const { out } = await replayed(await recorded(), "--json");
    expect(JSON.parse(out)).toMatchObject({
      session: "s",
      replay: { difference: null },
      utterances: [{ id: "greeting", outcome: "done", text: "Hello there." }],
    });
  });
});
