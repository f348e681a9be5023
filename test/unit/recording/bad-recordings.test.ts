/** Recordings that were edited, cut off or are of another form; and replays that are unlike what was recorded. */
import { describe, expect, it } from "vitest";
import { Chain } from "../../../src/recording/chain.ts";
import { replay } from "../../../src/recording/player.ts";
import { readLines } from "../../helpers/recordings.ts";
import { countingUlaw } from "../../helpers/session-rig.ts";
import { recordedLines } from "./recording-rig.ts";

/** The lines with other JSON, and hashes that are right again. */
function signedAgain(lines: readonly string[], edit: (json: string) => string): string[] {
  const chain = new Chain();
  return lines.map((line) => chain.sign(edit(line.slice(17))));
}

describe("a recording", () => {
  it("that was edited is refused, with the line", async () => {
    const lines = await recordedLines();
    const edited = lines.findIndex((line) => line.includes("Hello"));
    lines[edited] = (lines[edited] ?? "").replace("Hello", "Hallo");
    expect(() => readLines(lines)).toThrow(`line ${edited + 1}: the line was edited`);
    expect(() => readLines(lines)).toThrow(expect.objectContaining({ code: "recording_unreadable" }));
  });

  it("that lacks a line is refused, with the number of the next line", async () => {
    const lines = await recordedLines();
    lines.splice(5, 1);
    expect(() => readLines(lines)).toThrow(/line 6: the line was edited, or one before it is missing/);
  });

  it("that ends without its last line is read, and says so", async () => {
    const lines = await recordedLines();
    expect(readLines(lines).end).toBe("shutdown");
    const cut = readLines(lines.slice(0, -4));
    expect(cut.end).toBeNull();
    expect(replay(cut).difference).toBeNull();
  });

  it("whose time goes back, or has no end, is refused with the line", async () => {
    const lines = await recordedLines();
    for (const time of ["1", "1e309"]) {
      const edited = signedAgain(lines, (json) => json.replace(/^\[[\d.]+,"command"/, `[${time},"command"`));
      expect(() => readLines(edited)).toThrow(
        /line \d+: its time is before that of the line before, or none/,
      );
    }
  });

  it("of another form is refused with both forms", async () => {
    const lines = signedAgain(await recordedLines(), (json) =>
      json.replace('"voicewire_recording":2', '"voicewire_recording":1'),
    );
    expect(() => readLines(lines)).toThrow(/of form 1, expected 2: run the voicewire that wrote it \(\d+\./);
    // Its hashes may be made otherwise.
    const [first = "", ...others] = lines;
    expect(() => readLines([`${"x".repeat(16)}${first.slice(16)}`, ...others])).toThrow(/of form 1/);
  });

  it("that is an empty line, an object or a text is refused", () => {
    for (const lines of [[""], ["{}"], ["hello there, this is a text"]]) {
      expect(() => readLines(lines)).toThrow(/line 1: it is no recording of voicewire/);
    }
    expect(() => readLines([])).toThrow(/it is empty/);
  });
});

describe("the first difference", () => {
  it("names connection, message and field of an event", async () => {
    const lines = signedAgain(await recordedLines(), (json) =>
      json.replace(
        '\\"type\\":\\"utterance.started\\",\\"seq\\":',
        '\\"type\\":\\"utterance.started\\",\\"seq\\":9',
      ),
    );
    const { difference } = replay(readLines(lines));
    expect(difference).toMatchObject({
      what: "deliver",
      connection: 1,
      field: expect.stringMatching(/^new events\.0\.seq$/),
    });
    expect(difference?.message).toBeGreaterThan(1);
  });

  it("is found where the audio of the upstream was another", async () => {
    const other = Buffer.from(countingUlaw(600).map((byte) => (byte + 1) % 251)).toString("base64");
    const own = Buffer.from(countingUlaw(600)).toString("base64");
    const lines = signedAgain(await recordedLines(), (json) => json.replace(own, other));
    expect(replay(readLines(lines)).difference?.what).toMatch(/^(wave|deliver)$/);
  });

  it("is found where the session did less than was recorded", async () => {
    const lines = signedAgain(await recordedLines(), (json) =>
      json.includes('"command"') ? json.replace(/\[(\[.*)\]\]$/, '[$1,["ask",[7,{}]]]]') : json,
    );
    expect(replay(readLines(lines)).difference).toMatchObject({ recorded: "ask", replayed: "nothing more" });
  });

  it("a call of something that is not there is refused with its line", async () => {
    const lines = signedAgain(await recordedLines(), (json) =>
      json.replace("timer#", "tomer#").replace("tick#", "tack#"),
    );
    expect(() => replay(readLines(lines))).toThrow(/line \d+: it calls what is not there/);
  });
});
