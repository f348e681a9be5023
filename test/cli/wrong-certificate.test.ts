/** An upstream that shows another host's certificate for a while: connections that met it are good again behind it. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { ServedProgram } from "../../bench/kit/served-program.ts";
import { PAIRS } from "../helpers/certificate-files.ts";

const folder = mkdtempSync(join(tmpdir(), "voicewire-name-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("a certificate of another host, then a good one: the next request is answered", async () => {
  const pair = ({ certificate, key }: { readonly certificate: string; readonly key: string }) => ({
    cert: certificate,
    key,
  });
  const server = createServer(pair(PAIRS.first), (_, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ voices: [] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const trusted = join(folder, "trusted.pem");
  writeFileSync(trusted, PAIRS.first.certificate + PAIRS.renewed.certificate);
  const { port } = server.address() as AddressInfo;
  await using gateway = await ServedProgram.start({
    distUrl: new URL("../../dist/", import.meta.url).href,
    workers: 1,
    args: ["--upstream-url", `https://127.0.0.1:${port}`, "--upstream-timeout-ms", "2000"],
    env: { NODE_EXTRA_CA_CERTS: trusted },
  });
  const status = async (): Promise<number> =>
    (await fetch(`http://127.0.0.1:${gateway.port}/v1/voices`)).status;
  expect([await status(), await status()].every((code) => code >= 500)).toBe(true);
  server.setSecureContext(pair(PAIRS.renewed));
  expect([await status(), await status()]).toEqual([200, 200]);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
