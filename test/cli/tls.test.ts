/** `serve`, `say` and `doctor` with a certificate. */
import { chmodSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { connect, type Event } from "../../src/client/index.ts";
import { CertificateFolder, PAIRS, shownName } from "../helpers/certificate-files.ts";
import { type FakeUpstream, speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort } from "../helpers/free-port.ts";
import { SPEAKER, TestKeys, tokenFor } from "../helpers/key-file.ts";
import { trustTestCertificate } from "../helpers/test-certificate.ts";
import { until } from "../helpers/until.ts";
import { missingForSpeech, PATIENT, Program, run, temporaryFolder } from "./program.ts";

vi.setConfig(PATIENT);
const missing = missingForSpeech();
const FRAME_MS = 20;

let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream(speaking({ msPerChar: 60 }));
});
afterAll(async () => {
  await upstream.close();
});

function spokenBy(): string[] {
  return ["--upstream-url", upstream.url, "--voice", "v"];
}

function flagsOf({ settings }: CertificateFolder): string[] {
  return ["--tls-cert", settings.tlsCert, "--tls-key", settings.tlsKey];
}

interface Check {
  readonly status: string;
  readonly detail: string;
  readonly fix?: string;
}

async function doctorSays(args: readonly string[], name: string): Promise<Check | undefined> {
  // Nothing answers there: the other checks are not looked at.
  const { stdout } = await run(["doctor", "--json", "--upstream-url", "http://127.0.0.1:1", ...args]);
  const report: { checks: (Check & { name: string })[] } = JSON.parse(stdout.toString());
  return report.checks.find((check) => check.name === name);
}

describe.skipIf(missing !== undefined)(`TLS${missing === undefined ? "" : ` (skipped: ${missing})`}`, () => {
  test.skipIf(missing !== undefined)(
    `serve shows its certificate, say speaks through it by its name, and doctor knows it${missing === undefined ? "" : ` (skipped: ${missing})`}`,
    async () => {
      using files = new CertificateFolder(PAIRS.renewed);
      const port = String(await freePort());
      await using program = new Program(["serve", "--port", port, ...spokenBy(), ...flagsOf(files)]);
      await program.until(() => program.stdout.toString().includes("Try"));
      const shown = program.stdout.toString();
      expect(shown).toContain(`Page  https://127.0.0.1:${port}/\n`);
      expect(shown).toContain(
        "TLS   https and wss: localhost, renewed.example, 127.0.0.1 until 2126-01-01\n",
      );
      const [, url = ""] = /say --url (\S+)/.exec(shown) ?? [];
      expect(url).toBe(`https://localhost:${port}`);
      const trusted = { env: { NODE_EXTRA_CA_CERTS: files.settings.tlsCert } };
      const said = await run(["say", "--url", url, "Over TLS."], trusted);
      expect(said).toMatchObject({ code: 0, stderr: "" });
      expect(said.stdout.toString()).toBe("Over TLS.\n");
      const distrusted = await run(["say", "--url", url, "Not trusted."]);
      expect(distrusted.code).toBe(4);
      expect(distrusted.stderr).toContain("NODE_EXTRA_CA_CERTS");
      expect(await doctorSays(["--port", port, ...flagsOf(files)], "port")).toMatchObject({
        status: "ok",
        detail: expect.stringContaining("a voicewire gateway runs there"),
      });
    },
  );

  test.skipIf(missing !== undefined)(
    "serve takes a renewed certificate while sessions speak, and none of them loses a frame",
    async () => {
      using files = new CertificateFolder(PAIRS.first);
      using keys = new TestKeys();
      using _ = trustTestCertificate();
      const port = await freePort();
      const args = ["--port", String(port), "--keys-file", keys.path, ...spokenBy(), ...flagsOf(files)];
      await using program = new Program(["serve", ...args]);
      await program.until(() => program.stdout.toString().includes("Try"));
      const join = async (session: string) => {
        const connection = await connect({
          baseUrl: `https://localhost:${port}`,
          session,
          settings: { format: "pcm_8000", frame_ms: FRAME_MS },
          WebSocket,
          token: tokenFor(SPEAKER),
        });
        // By counting frames: one that is lost puts it behind the gateway's times.
        let heardMs = 0;
        connection.onAudio((_frame, { atMs }) => {
          heardMs = atMs + FRAME_MS;
        });
        const events: Event[] = [];
        connection.onEvent((event) => void events.push(event));
        return { connection, events, heardMs: () => heardMs };
      };
      const speakers = await Promise.all(["a", "b", "c"].map(join));
      const text = "It goes on speaking while its certificate is replaced. ".repeat(4);
      const said = speakers.map(({ connection }) => connection.say(text));
      await until("all to be heard", () => speakers.every(({ heardMs }) => heardMs() > 0));
      files.put(PAIRS.renewed);
      while ((await shownName(port)) !== "renewed.example") await new Promise((next) => setTimeout(next, 50));
      expect(speakers.map(({ events }) => events.some(({ type }) => type === "utterance.done"))).toEqual([
        false,
        false,
        false,
      ]);
      const late = await join("late");
      const done = await Promise.all([...said, late.connection.say(text)]);
      for (const [index, { events, heardMs }] of [...speakers, late].entries()) {
        expect(done[index]?.outcome).toBe("done");
        expect(heardMs()).toBeGreaterThanOrEqual(done[index]?.end_ms ?? Number.POSITIVE_INFINITY);
        expect(events.filter(({ type }) => type === "gap" || type === "error")).toEqual([]);
      }
      await Promise.all([late, ...speakers].map(({ connection }) => connection.close()));
    },
  );

  test("serve refuses a key of another certificate before anything is started", async () => {
    using files = new CertificateFolder({ ...PAIRS.first, key: PAIRS.renewed.key });
    const { code, stderr } = await run(["serve", "--port", "0", ...flagsOf(files)]);
    expect(code).toBe(2);
    expect(stderr).toContain("another certificate's key");
  });

  test("doctor warns of keys that cross the network without TLS, unless a proxy is named that ends it", async () => {
    using folder = temporaryFolder();
    const keysFile = folder.file("keys.json");
    await run(["keys", "new", "app", "--file", keysFile]);
    const args = ["--port", "0", "--keys-file", keysFile];
    expect(await doctorSays([...args, "--host", "0.0.0.0"], "tls")).toMatchObject({
      status: "warn",
      detail: expect.stringContaining("keys, tokens and speech cross the network as plain text"),
      fix: expect.stringMatching(/--tls-cert.*--trusted-proxies/),
    });
    const behindProxy = ["--host", "0.0.0.0", "--trusted-proxies", "10.0.0.1"];
    expect(await doctorSays([...args, ...behindProxy], "tls")).toMatchObject({
      status: "ok",
      detail: "off: the port speaks http and ws; TLS has to end at 10.0.0.1",
    });
    expect(await doctorSays(args, "tls")).toMatchObject({ status: "ok" });
  });

  test("doctor names the certificate and its end, and fails one that is over; it warns where others may read the key", async () => {
    using good = new CertificateFolder(PAIRS.renewed);
    expect(await doctorSays(["--port", "0", ...flagsOf(good)], "tls")).toMatchObject({
      status: "warn",
      fix: "set --allowed-hosts renewed.example",
    });
    const listed = ["--port", "0", "--allowed-hosts", "renewed.example", ...flagsOf(good)];
    expect(await doctorSays(listed, "tls")).toMatchObject({
      status: "ok",
      detail: "https and wss: localhost, renewed.example, 127.0.0.1 until 2126-01-01",
    });
    chmodSync(good.settings.tlsKey, 0o644);
    expect(await doctorSays(listed, "tls")).toMatchObject({
      status: "warn",
      detail: expect.stringMatching(/until 2126-01-01; others may read its key \(644\)$/),
      fix: `chmod 600 ${good.settings.tlsKey}`,
    });
    using over = new CertificateFolder(PAIRS.expired);
    expect(await doctorSays(["--port", "0", ...flagsOf(over)], "tls")).toMatchObject({
      status: "fail",
      detail: expect.stringContaining("it ended on 2021-01-01"),
    });
    expect(await doctorSays(["--port", "0", ...flagsOf(over)], "server")).toMatchObject({ status: "ok" });
    expect(await doctorSays(["--port", "0"], "tls")).toMatchObject({
      status: "ok",
      detail: expect.stringMatching(/^off/),
    });
  });
});
