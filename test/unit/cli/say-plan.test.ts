import { describe, expect, test } from "vitest";
import { planSay } from "../../../src/cli/say/say-plan.ts";
import { type MemoryIoOptions, memoryIo } from "./memory-io.ts";

function plan(argv: readonly string[], options: MemoryIoOptions & { isTty?: boolean } = {}) {
  const io = memoryIo([], options);
  io.stdout.isTty = options.isTty ?? false;
  return planSay(io, argv);
}

describe("planSay()", () => {
  test("joins the words, or reads stdin where there are none or a dash", () => {
    expect(plan(["Hello", "there"]).text).toBe("Hello there");
    expect(plan([], { stdin: [] }).text).toBeUndefined();
    expect(plan(["-"], { stdin: [] }).text).toBeUndefined();
    expect(plan(["--", "--not-a-flag"]).text).toBe("--not-a-flag");
  });

  test("takes a recording from a file on a terminal too", () => {
    expect(plan(["--tokens", "f"])).toMatchObject({ tokensFile: "f", text: undefined });
    expect(plan(["--tokens", "-"], { stdin: [] })).toMatchObject({ tokensFile: "-", text: undefined });
  });

  test("is live with words on the terminal, and burst where only files are written", () => {
    expect(plan(["hi"])).toMatchObject({ isBurst: false, format: "ulaw_8000" });
    expect(plan(["hi", "--out", "a.wav"])).toMatchObject({ isBurst: true, format: "pcm_24000" });
    expect(plan(["hi", "--vtt", "a.vtt"])).toMatchObject({ isBurst: true });
    expect(plan(["hi", "--out", "a.ogg", "--json"])).toMatchObject({ isBurst: true, format: "opus_48000" });
    expect(plan(["hi", "--json"])).toMatchObject({ isBurst: false, isJson: true });
  });

  test("keeps the voice for the utterance and the upstream for a gateway of its own", () => {
    const planned = plan(["hi", "--voice", "Anna", "--upstream-url", "http://127.0.0.1:9"]);
    expect(planned).toMatchObject({ voice: "Anna", needsOwnGateway: true });
    expect(planned.settings.config).toMatchObject({ voice: "", upstreamUrl: "http://127.0.0.1:9" });
  });

  test("plays only where a player is there, and never unasked off a terminal", () => {
    const env = { PATH: "/nonexistent" };
    expect(plan(["hi"], { env, isTty: true }).player).toBeUndefined();
    expect(() => plan(["hi", "--play"], { env })).toThrow("Flag --play: no player found");
    expect(plan(["hi"], { isTty: false }).player).toBeUndefined();
  });

  test.each([
    [["hi", "--speed", "1.3"], 'Flag --speed: "1.3", expected a number from 0.7 to 1.2'],
    [["hi", "--speed", ""], "expected a number from 0.7 to 1.2"],
    [["hi", "--out", "-", "--json"], "--out - and --json both write to stdout"],
    [["hi", "--vtt", "-", "--srt", "-"], "--vtt - and --srt - both write to stdout"],
    [["hi", "--url", "x", "--upstream-region", "us"], "expected no --upstream-* flag"],
    [["hi", "--dialogue", "f"], "the text comes from the file"],
    [["--dialogue", "f", "--voice", "Anna"], "expected a voice on each line"],
    [["--dialogue", "f", "--clean", "emoji"], "its lines are spoken as they are"],
    [["--dialogue", "f", "--replace", "a=b"], "its lines are spoken as they are"],
    [["--dialogue", "f", "--tokens", "g"], "expected one of them"],
    [["hi", "--tokens", "f"], "the text comes from the file"],
    [["--tokens", "-"], "Nothing to say"],
  ])("refuses %j", (argv, message) => {
    expect(() => plan(argv)).toThrow(message);
  });

  test("takes the bounds of --speed", () => {
    expect(plan(["hi", "--speed", "0.7"]).speed).toBe(0.7);
    expect(plan(["hi", "--speed=1.2"]).speed).toBe(1.2);
  });
});
