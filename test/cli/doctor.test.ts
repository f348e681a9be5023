import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { missingForSpeech, PATIENT, Program, run, temporaryFolder } from "./program.ts";

vi.setConfig(PATIENT);
const missing = missingForSpeech();

interface Report {
  readonly ok: boolean;
  readonly checks: readonly {
    readonly name: string;
    readonly status: string;
    readonly detail: string;
    readonly fix?: string;
  }[];
}

function reportOf(stdout: Buffer): Report & { status(name: string): string | undefined } {
  const report: Report = JSON.parse(stdout.toString());
  return { ...report, status: (name) => report.checks.find((check) => check.name === name)?.status };
}

async function vendor(status: number): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((request, response) => {
    const isAuthorized = request.headers["xi-api-key"] === "right";
    response.writeHead(isAuthorized ? 200 : status, { "content-type": "application/json" });
    response.end(isAuthorized ? '{"voices":[{"voice_id":"a","name":"A"}]}' : "{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

describe.skipIf(missing !== undefined)(
  `voicewire doctor${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  { concurrent: true },
  () => {
    test("checks everything on this machine: a line each", async () => {
      const { code, stdout, stderr } = await run(["doctor", "--port", "0"]);
      expect(stderr).toBe("");
      const lines = stdout.toString().split("\n");
      for (const name of [
        "settings",
        "node",
        "server",
        "codecs",
        "voice",
        "models",
        "page",
        "access",
        "tls",
        "port",
        "ops",
        "upstream",
      ]) {
        expect(lines.find((line) => line.includes(` ${name} `))).toMatch(/^(ok {2}|warn)/);
      }
      expect(code).toBe(0);
      expect(stdout.toString()).toMatch(/upstream +the embedded voice: \d+ voices/);
    });

    test("explains a key that is refused, and accepts the right one without showing it", async () => {
      await using upstream = await vendor(401);
      const args = ["doctor", "--json", "--port", "0", "--upstream-url", `${upstream.url}/v1`];
      const refused = await run(args, { env: { ELEVENLABS_API_KEY: "wrong" } });
      expect(refused.code).toBe(1);
      const report = reportOf(refused.stdout);
      expect(report.ok).toBe(false);
      expect(report.status("upstream")).toBe("fail");
      expect(refused.stdout.toString()).toContain("check ELEVENLABS_API_KEY");
      const accepted = await run(args, { env: { ELEVENLABS_API_KEY: "right" } });
      expect(reportOf(accepted.stdout).status("upstream")).toBe("ok");
      expect(accepted.stdout.toString()).toContain("key accepted");
      expect(accepted.stdout.toString()).not.toContain('right"');
    });

    test("says what to do about an upstream that does not answer and a setting that is wrong", async () => {
      const { code, stdout } = await run(["doctor", "--json"], {
        env: { VOICEWIRE_UPSTREAM_URL: "http://127.0.0.1:1", VOICEWIRE_PORT: "0" },
      });
      expect(code).toBe(1);
      expect(reportOf(stdout).checks.find((check) => check.name === "upstream")).toMatchObject({
        status: "fail",
        fix: expect.stringContaining("check upstream-url"),
      });
      const wrong = await run(["doctor", "--json"], { env: { VOICEWIRE_PORT: "x" } });
      expect(wrong.code).toBe(1);
      const report = reportOf(wrong.stdout);
      expect(report.checks[0]).toMatchObject({ name: "settings", status: "fail" });
      expect(report.status("codecs")).toBe("ok");
    });

    test.each([
      ["--allow-origin", "*", "correct the setting"],
      ["--twilio-auth-token", "token", "correct the setting"],
    ])(
      "says of a wrong %s that it is to be corrected, and not that the program is broken",
      async (...wrong) => {
        const [flag, value, fix] = wrong;
        const { stdout } = await run(["doctor", "--json", "--port", "0", flag, value]);
        const server = reportOf(stdout).checks.find(({ name }) => name === "server");
        expect(server).toMatchObject({
          status: "fail",
          detail: expect.stringContaining("invalid_config"),
          fix: expect.stringContaining(fix),
        });
      },
    );

    test("says of a port for Wyoming that is taken to choose another one", async () => {
      await using other = await vendor(200);
      const { port } = new URL(other.url);
      const { stdout } = await run(["doctor", "--json", "--port", "0", "--wyoming-port", port]);
      const server = reportOf(stdout).checks.find(({ name }) => name === "server");
      expect(server).toMatchObject({
        status: "fail",
        detail: expect.stringContaining("port_in_use"),
        fix: expect.stringContaining("choose another port"),
      });
    });

    test("a port of another program is no port of a gateway", async () => {
      await using other = await vendor(404);
      const port = new URL(other.url).port;
      const taken = reportOf(
        (await run(["doctor", "--json", "--port", port, "--upstream-url", other.url])).stdout,
      );
      expect(taken.checks.find((check) => check.name === "port")).toMatchObject({
        status: "fail",
        fix: expect.stringContaining("--port"),
      });
      const args = ["doctor", "--json", "--port", "0", "--upstream-url", other.url, "--ops-port"];
      const opsOf = async (value: string) =>
        reportOf((await run([...args, value])).stdout).checks.find((check) => check.name === "ops");
      expect(await opsOf(port)).toMatchObject({
        status: "fail",
        fix: expect.stringContaining("--ops-port"),
      });
      expect(await opsOf("off")).toMatchObject({ status: "ok", detail: expect.stringContaining("off") });
    });
  },
);

describe.skipIf(missing !== undefined)("voicewire service", { concurrent: true }, () => {
  test("listens alone, asks for its key, and ends with 0 at SIGTERM", async () => {
    await using program = new Program(["service", "--port", "0", "--key", "secret", "--log-level", "warn"]);
    await program.until(() => program.stdout.toString().includes("Speech service on"));
    const url = /Speech service on (\S+)/.exec(program.stdout.toString())?.[1] ?? "";
    const headers = { "xi-api-key": "secret" };
    expect((await fetch(`${url}/v1/models`, { headers })).status).toBe(200);
    expect((await fetch(`${url}/v1/models`, { headers: { "xi-api-key": "wrong" } })).status).toBe(401);
    program.child.kill("SIGTERM");
    expect((await program.ended).code).toBe(0);
  });

  test("a port in use exits with 3, an unknown tier with 2", async () => {
    await using other = await vendor(404);
    expect((await run(["service", "--port", new URL(other.url).port])).code).toBe(3);
    const { code, stderr } = await run(["service", "--port", "0", "--tier", "gold"]);
    expect(code).toBe(2);
    expect(stderr).toContain('"gold", expected one of');
  });

  test("a folder without voice models exits with 2 and says so, also as a gateway's child", async () => {
    using folder = temporaryFolder();
    for (const args of [
      ["service", "--port", "0"],
      ["serve", "--port", "0", "--ops-port", "off"],
    ]) {
      const { code, stderr } = await run([...args, "--voice-models", folder.file(".")]);
      expect(code).toBe(2);
      expect(stderr).toContain("Setting voice-models: there is no voice model in");
    }
  });
});
