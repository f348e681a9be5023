/** examples/deploy/: the files of nats-server, as it reads them, and a bus over it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { NatsBus } from "../../src/cluster/bus/nats-bus.ts";
import { freePort } from "../helpers/free-port.ts";
import { IF_NATS_MISSING, isNatsMissing } from "../kit/nats-server.ts";
import { pathOf, textOf } from "./deploy-files.ts";

const FILES = ["nats/nats.conf", "kubernetes/nats.conf"] as const;
const ENV = { PATH: `${process.env.PATH}:/usr/sbin`, NATS_PASSWORD: "password", POD_NAME: "nats-0" };
const running = new Set<ChildProcess>();

async function ended(child: ChildProcess): Promise<void> {
  running.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

afterAll(async () => {
  await Promise.all([...running].map(ended));
});

/** The file on this machine's free ports. */
async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-nats-conf-"));
  const [port, httpPort] = [await freePort(), await freePort()];
  let config = textOf("nats/nats.conf");
  for (const [was, becomes] of [
    ["0.0.0.0:4222", `127.0.0.1:${port}`],
    ["127.0.0.1:8222", `127.0.0.1:${httpPort}`],
    ["/tmp/nats", `${folder}/store`],
  ] as const) {
    expect(config.split(was), was).toHaveLength(2);
    config = config.replace(was, becomes);
  }
  writeFileSync(join(folder, "nats.conf"), config);
  const child = spawn("nats-server", ["-c", join(folder, "nats.conf")], {
    stdio: ["ignore", "ignore", "pipe"],
    env: ENV,
  });
  running.add(child);
  let said = "";
  child.stderr.on("data", (data: Buffer) => {
    said += data.toString();
  });
  while (!said.includes("Server is ready")) {
    if (child.exitCode !== null) throw new Error(`nats-server ended: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    port,
    httpUrl: `http://127.0.0.1:${httpPort}`,
    [Symbol.asyncDispose]: async () => {
      await ended(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

describe.skipIf(isNatsMissing)(`files of nats-server${IF_NATS_MISSING}`, () => {
  it.each(FILES)("%s is valid", (file) => {
    const { status, stderr } = spawnSync("nats-server", ["-t", "-c", pathOf(file)], {
      encoding: "utf8",
      env: ENV,
    });
    expect(stderr).toContain("is valid");
    expect(status).toBe(0);
  });

  it("nats.conf: gateways with the password have a bus and a store, others are refused", async () => {
    await using server = await startServer();
    const bus = await NatsBus.connect({ url: `nats://voicewire:password@127.0.0.1:${server.port}` });
    const { isOurs, entry } = await bus.owners.claim("session.one", new Uint8Array([1]));
    expect(isOurs).toBe(true);
    expect(await bus.owners.release(entry)).toBe(true);
    await bus.close();
    const refused = NatsBus.connect({ url: `nats://voicewire:other@127.0.0.1:${server.port}` });
    await expect(refused).rejects.toMatchObject({ code: "bus_refused" });
  });

  it("nats.conf: slow clients are cut off before gateways give the server up, nothing goes to the disk", async () => {
    await using server = await startServer();
    const figures = (await (await fetch(`${server.httpUrl}/varz`)).json()) as {
      write_deadline: number;
      jetstream: { config: { max_storage: number } };
    };
    // Gateways ping each second and give up when the third answer is due.
    expect(figures.write_deadline).toBe(2e9);
    expect(figures.jetstream.config.max_storage).toBe(0);
  });

  it.each(["", "?js-enabled-only=true", "?js-server-only=true"])(
    "nats.conf: /healthz%s says that it is well",
    async (query) => {
      await using server = await startServer();
      expect((await fetch(`${server.httpUrl}/healthz${query}`)).status).toBe(200);
    },
  );
});

it("both files say the same of what matters", () => {
  const said = FILES.map((file) =>
    ["write_deadline", "ping_interval", "ping_max", "max_payload", "max_memory_store", "max_file_store"].map(
      (key) => new RegExp(`^\\s*${key}: .+$`, "m").exec(textOf(file))?.[0].trim(),
    ),
  );
  expect(said[0]).not.toContain(undefined);
  expect(said[1]).toEqual(said[0]);
});
