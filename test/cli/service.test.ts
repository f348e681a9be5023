/** `voicewire service` as a program of its own. */
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { startEmbeddedService } from "../../src/cli/serve/embedded.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { watchedLog } from "../helpers/watched-log.ts";
import { missingForSpeech, PATIENT, Program, run, temporaryFolder } from "./program.ts";

vi.setConfig(PATIENT);
const missing = missingForSpeech();
const VOICE = "21m00Tcm4TlvDq8ikWAM";
const isRoot = process.getuid?.() === 0;

describe.skipIf(missing !== undefined)(
  `voicewire service${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  { concurrent: true },
  () => {
    test("as a child: answers nobody without its gateway's key, and allows no page anything", async () => {
      const service = await startEmbeddedService({ log: watchedLog, clock: systemClock, env: process.env });
      try {
        expect(service.key).toMatch(/^[0-9a-f]{64}$/);
        const speech = `/v1/text-to-speech/${VOICE}`;
        const requests: readonly (readonly [string, string, number])[] = [
          ["GET", "/v1/voices", 200],
          ["GET", "/openapi.json", 200],
          ["GET", "/nothing/here", 404],
          ["DELETE", "/v1/models", 405],
          ["OPTIONS", "/v1/voices", 200],
          ["POST", speech, 200],
          ["POST", `${speech}/stream`, 200],
          ["POST", "/v1/sound-generation", 200],
          // Its shape is wrong, which others would learn before the key is looked at.
          ["POST", "/v1/workspace/webhooks", 422],
        ];
        for (const [method, path, status] of requests) {
          const ask = async (key: Record<string, string>) => {
            const body = method === "POST" ? JSON.stringify({ text: "Rain." }) : null;
            const headers = { "content-type": "application/json", origin: "http://evil.example", ...key };
            const answer = await fetch(service.url + path, { method, headers, body });
            await answer.arrayBuffer();
            const cors = [...answer.headers.keys()].filter((name) => name.startsWith("access-control"));
            return { path, status: answer.status, cors };
          };
          expect(await ask({})).toEqual({ path, status: 401, cors: [] });
          expect(await ask({ "xi-api-key": "wrong" })).toEqual({ path, status: 401, cors: [] });
          expect(await ask({ "xi-api-key": service.key })).toEqual({ path, status, cors: [] });
        }
      } finally {
        await service.stop();
      }
    });

    test("as a child of nobody exits with 2", async () => {
      const { code, stderr } = await run(["service", "--parent"]);
      expect(code).toBe(2);
      expect(stderr).toContain("Flag --parent: there is no IPC channel");
    });

    test.each([
      ["--allow-origin", "*"],
      ["--allowed-hosts", "https://voice.example.com"],
    ])("refuses %s %s, which names none", async (flag, value) => {
      const { code, stderr } = await run(["service", "--port", "0", flag, value]);
      expect(code).toBe(2);
      expect(stderr).toContain(`Setting ${flag.slice(2)}: "${value}"`);
    });

    test("on an address that other machines reach it asks for --key or --insecure", async () => {
      const { code, stderr } = await run(["service", "--host", "0.0.0.0", "--port", "0"]);
      expect([code, stderr]).toEqual([2, expect.stringMatching(/--host.*--key.*--insecure/s)]);
    });

    test("warns of a data folder that others may look into", async () => {
      using folder = temporaryFolder();
      mkdirSync(folder.file("data"));
      chmodSync(folder.file("data"), 0o755);
      await using program = new Program(["service", "--port", "0", "--data", folder.file("data")]);
      await program.until(() => program.stderr.includes(`run chmod 700 ${folder.file("data")}`));
      await program.until(() => program.stdout.toString().includes("Speech service on"));
    });

    test.skipIf(!isRoot)(
      `a data folder of another user exits with 2${isRoot ? "" : " (skipped: only root can give a folder away)"}`,
      async () => {
        using folder = temporaryFolder();
        mkdirSync(folder.file("data"));
        chownSync(folder.file("data"), 12_345, 12_345);
        for (const command of ["service", "serve"]) {
          const { code, stderr } = await run([command, "--port", "0", "--data", folder.file("data")]);
          expect(code).toBe(2);
          expect(stderr).toContain("it belongs to another user (uid 12345), expected uid 0");
        }
      },
    );
  },
);
