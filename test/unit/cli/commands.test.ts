import { describe, expect, test } from "vitest";
import { runCli } from "../../../src/cli/commands.ts";
import { doctor } from "../../../src/cli/doctor/doctor.ts";
import { textColumns } from "../../../src/cli/output/terminal-text.ts";
import { serve } from "../../../src/cli/serve/serve.ts";
import { VERSION } from "../../../src/version.ts";
import { memoryIo } from "./memory-io.ts";

async function run(...argv: string[]) {
  const io = memoryIo(argv);
  const code = await runCli(io);
  return { code, out: io.stdout.text, err: io.stderr.text };
}

const COMMANDS = ["serve", "say", "listen", "captions", "keys", "token", "service", "doctor"];

test("doctor takes every flag of serve", () => {
  const namesOf = ({ help }: typeof serve) =>
    help.flags.filter(({ isHidden }) => isHidden !== true).map(({ name }) => name);
  expect(namesOf(doctor)).toEqual(expect.arrayContaining(namesOf(serve)));
});

describe("runCli()", () => {
  test("--help lists every command, with examples and exit codes", async () => {
    for (const argv of [["--help"], ["-h"], ["help"]]) {
      const { code, out, err } = await run(...argv);
      expect(code).toBe(0);
      expect(err).toBe("");
      for (const command of COMMANDS) expect(out).toContain(`  ${command}`);
      expect(out).toContain("Examples:");
      expect(out).toContain("3 port in use");
    }
  });

  test("without a command shows the help on stderr and exits with 2", async () => {
    const { code, out, err } = await run();
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain("Usage: voicewire COMMAND");
  });

  test.each(COMMANDS)("%s --help and help %s are the same page, with flags and examples", async (command) => {
    const { code, out } = await run(command, "--help");
    expect(code).toBe(0);
    expect(out).toContain(`Usage: voicewire ${command}`);
    expect(out).toContain("Flags:");
    expect(out).toContain("Examples:");
    expect((await run("help", command)).out).toBe(out);
    expect(out).not.toContain("--parent");
  });

  test("help pages fit the terminal, but for examples that are to be copied", async () => {
    for (const command of COMMANDS) {
      const io = memoryIo(["help", command]);
      io.stdout.width = 60;
      await runCli(io);
      const [flags = ""] = io.stdout.text.split("Examples:");
      for (const line of flags.split("\n").slice(3)) expect(textColumns(line)).toBeLessThanOrEqual(60);
    }
  });

  test("shows help even on a line that is not finished, but not behind --", async () => {
    expect((await run("say", "--out", "--help")).code).toBe(0);
    expect((await run("service", "--port", "x", "--", "--help")).code).toBe(2);
  });

  test("--version prints the version of package.json", async () => {
    expect(await run("--version")).toMatchObject({ code: 0, out: `voicewire ${VERSION}\n` });
  });

  test("an unknown command exits with 2 and suggests", async () => {
    expect(await run("srve")).toEqual({
      code: 2,
      out: "",
      err: 'voicewire: Unknown command "srve"; did you mean "serve"? (invalid_config)\n',
    });
    expect((await run("help", "lisen")).err).toContain('did you mean "listen"?');
  });

  test.each([
    [["serve", "--prot", "80"], 'Unknown flag "--prot"; did you mean "--port"?'],
    [
      ["serve", "--port", "80000"],
      'Setting port (flag --port): "80000", expected an integer from 0 to 65535',
    ],
    [["serve", "extra"], 'Argument "extra": serve takes flags only'],
    [["serve", "--config", "/no/such/file.json"], "no such file"],
    [["serve", "--upstream-region", "eu"], "Setting upstreamKey: not set, expected the vendor's API key"],
    [["say"], "Nothing to say: expected a text"],
    [["say", "--url", "ftp://x", "hi"], 'Flag --url: "ftp://x", expected the address of a gateway'],
    [["say", "--dialogue", "/no/such/file", "--quiet"], 'Dialogue "/no/such/file" can\'t be read'],
    [["say", "--tokens", "/no/such/file"], 'Recording "/no/such/file" can\'t be read'],
    [["listen", "a", "--policy", "best"], "expected one of live, lossless, captions"],
    [
      ["listen", "a", "--resume", "t:x"],
      'Flag --resume: "t:x", expected TOKEN, TOKEN:SEQ or TOKEN:SEQ:AT_MS',
    ],
    [["listen"], "No session: expected its id"],
    [["listen", "a", "b"], 'Argument "b": expected one session only'],
    [["listen", "a", "--frame-ms", "5"], 'Flag --frame-ms: "5", expected an integer from 10 to 100'],
    [["service", "--voice-workers", "0"], "expected an integer from 1 to 64"],
    [["doctor", "--jsn"], 'did you mean "--json"?'],
  ])("%j exits with 2 and says what is wrong", async (argv, message) => {
    const { code, out, err } = await run(...argv);
    expect(err).toContain(message);
    expect(err.split("\n")).toHaveLength(2);
    expect([code, out]).toEqual([2, ""]);
  });

  test("shows a stack trace with VOICEWIRE_DEBUG=1 only", async () => {
    expect((await run("nope")).err).not.toContain("    at ");
    const io = memoryIo(["nope"], { env: { VOICEWIRE_DEBUG: "1" } });
    await runCli(io);
    expect(io.stderr.text).toContain("    at ");
  });

  test.each([
    ["say", "hi"],
    ["listen", "demo"],
  ])("%s exits with 4 where no gateway answers, and says how to start one", async (...argv) => {
    const { code, err } = await run(...argv, "--url", "http://127.0.0.1:1");
    expect(code).toBe(4);
    expect(err).toContain("No gateway answers at http://127.0.0.1:1");
    expect(err).toContain("voicewire serve");
  });
});
