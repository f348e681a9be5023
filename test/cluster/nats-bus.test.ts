/** What goes wrong between nodes and nats-server: refused at the door, processes killed and stopped, routes cut, clocks moved. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { NatsBus, type NatsBusOptions } from "../../src/cluster/bus/nats-bus.ts";
import { loadNatsLibraries } from "../../src/cluster/bus/nats-libraries.ts";
import { parseNatsUrl } from "../../src/cluster/bus/nats-options.ts";
import { type NodeOptions, NodeRegistry } from "../../src/cluster/bus/node-registry.ts";
import { GatewayError } from "../../src/errors.ts";
import type { Logger } from "../../src/kit/log.ts";
import { freePort } from "../helpers/free-port.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../helpers/test-certificate.ts";
import { until } from "../helpers/until.ts";
import { makeNatsCredentials } from "../kit/nats-credentials.ts";
import { endNatsServers, IF_NATS_MISSING, isNatsMissing, NatsServer } from "../kit/nats-server.ts";
import { endNodeProcesses, isBuilt, NodeProcess } from "../kit/node-process.ts";
import { TcpLink } from "../kit/tcp-link.ts";

const TIMEOUT_MS = 10_000;
/** For what takes several seconds, on a machine that may be busy. */
const SLOW = { deadlineMs: 20_000 };
const PATIENT_MS = 60_000;
const isProcessMissing = isNatsMissing || (!isBuilt && process.env.CI === undefined);
const IF_PROCESS_MISSING =
  !isNatsMissing && isProcessMissing ? " (skipped: dist/ is not built)" : IF_NATS_MISSING;

afterAll(async () => {
  await endNodeProcesses();
  await endNatsServers();
});

const none = new Uint8Array();
const nodeOptions = (name: string): NodeOptions => ({
  name,
  facts: { url: `ws://${name}`, load: 0, isDraining: false, buddy: null, machine: "" },
  onReplaced: () => undefined,
});

async function refusal(options: NatsBusOptions): Promise<GatewayError> {
  try {
    const bus = await NatsBus.connect(options);
    await bus.close();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("It was not refused");
}

/** The first thing that `ask` gives; errors until then are passed over. */
async function untilGiven<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const startMs = performance.now();
  let last: unknown;
  while (performance.now() - startMs < SLOW.deadlineMs) {
    try {
      const given = await ask();
      if (given !== undefined) return given;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`Never came: ${what}`, { cause: last });
}

/** Servers that have not found one another refuse to make a store. */
function openWhenReady(url: string): Promise<NatsBus> {
  return untilGiven("the store", () => NatsBus.connect({ url }));
}

/** Everything that is logged, as text. */
function textLog(): { log: Logger; text: () => string } {
  const lines: string[] = [];
  const write = (fields: object, message: string): void => {
    const errors = Object.values(fields).map((value) =>
      value instanceof Error ? `${value.stack} ${value.cause}` : "",
    );
    lines.push(message, JSON.stringify(fields), ...errors);
  };
  return { log: { debug: write, info: write, warn: write, error: write }, text: () => lines.join("\n") };
}

describe("addresses of nats-server", () => {
  it.each([
    ["nats://a", { addresses: ["a:4222"], isTls: false }],
    ["a:1,b,nats://[::1]:3", { addresses: ["a:1", "b:4222", "[::1]:3"], isTls: false }],
    ["tls://a:4222", { addresses: ["a:4222"], isTls: true }],
    ["nats://me:p%40ss@a:1,b:2", { addresses: ["a:1", "b:2"], user: "me", password: "p@ss" }],
    ["nats://t0ken@a", { addresses: ["a:4222"], token: "t0ken", user: undefined }],
  ])("%s", (url, expected) => {
    expect(parseNatsUrl(url)).toMatchObject(expected);
  });

  it.each(["", "http://a", "nats://", "nats://a/b", "nats://a?b", "a,,b", "nats://secret@:x"])(
    "%j is none, and the error does not repeat it",
    (url) => {
      expect(() => parseNatsUrl(url)).toThrow(GatewayError);
      expect(() => parseNatsUrl(url)).not.toThrow(/secret/);
    },
  );
});

describe.skipIf(!isBuilt && process.env.CI === undefined)("the libraries of NATS", () => {
  it("are loaded when a bus is opened, and not before", () => {
    const bus = fileURLToPath(new URL("../../dist/cluster/bus/nats-bus.js", import.meta.url));
    const index = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
    const script = `
      import { createRequire } from "node:module";
      const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes("@nats-io"));
      await import(${JSON.stringify(index)});
      const { NatsBus } = await import(${JSON.stringify(bus)});
      const before = loaded();
      await NatsBus.connect({ url: "nats://127.0.0.1:1" }).catch(() => undefined);
      console.log(before, loaded());`;
    const run = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
    expect(run.stdout).toBe("false true\n");
  });
});

describe.skipIf(isNatsMissing)(`who may come in${IF_NATS_MISSING}`, () => {
  it("no server: says which was tried", async () => {
    const port = await freePort();
    const error = await refusal({ url: `nats://me:secret@127.0.0.1:${port}` });
    expect(error.code).toBe("bus_lost");
    expect(error.message).toContain(`127.0.0.1:${port}`);
    expect(error.message).not.toContain("secret");
  });

  it("user and password: the right ones are taken, wrong ones refused, neither is in an error or a log line", async () => {
    await using server = await NatsServer.start({
      config: `authorization { user: "me", password: "s3cret" }`,
    });
    const { log, text } = textLog();
    const address = `127.0.0.1:${server.port}`;
    const bus = await NatsBus.connect({ url: `nats://me:s3cret@${address}`, log });
    expect(bus.state).toBe("up");
    await server.kill();
    await until("lost", () => bus.state === "lost");
    await server.start();
    await until("up again", () => bus.state === "up", SLOW);
    await bus.close();
    for (const url of [`nats://me:wr0ng@${address}`, `nats://${address}`]) {
      const error = await refusal({ url, log });
      expect(error).toMatchObject({ code: "bus_refused" });
      expect(`${error.stack} ${error.cause}`).not.toContain("wr0ng");
    }
    expect(text()).toContain(address);
    expect(text()).not.toMatch(/s3cret|wr0ng/);
  });

  it("a token", async () => {
    await using server = await NatsServer.start({ config: `authorization { token: "t0ken" }` });
    const address = `127.0.0.1:${server.port}`;
    const bus = await NatsBus.connect({ url: `nats://t0ken@${address}` });
    await bus.close();
    expect((await refusal({ url: `nats://wr0ng@${address}` })).code).toBe("bus_refused");
  });

  it("TLS: the server's certificate is checked against the CA file, and plain is not taken for it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "voicewire-nats-tls-"));
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    writeFileSync(cert, TEST_CERTIFICATE);
    writeFileSync(key, TEST_KEY);
    await using server = await NatsServer.start({
      config: `tls { cert_file: "${cert}", key_file: "${key}" }`,
    });
    await using plain = await NatsServer.start();
    const url = `tls://localhost:${server.port}`;
    const bus = await NatsBus.connect({ url, tlsCaFile: cert });
    await bus.close();
    expect((await refusal({ url })).code).toBe("bus_refused");
    expect((await refusal({ url: `tls://127.0.0.1:${plain.port}` })).code).toBe("bus_refused");
    expect((await refusal({ url, tlsCaFile: join(folder, "none.pem") })).code).not.toBe("internal");
    rmSync(folder, { recursive: true });
  });

  it("a credentials file: read again at each connection; one of another account is refused", async () => {
    const folder = mkdtempSync(join(tmpdir(), "voicewire-nats-creds-"));
    const credentialsFile = join(folder, "bus.creds");
    const credentials = makeNatsCredentials();
    await using server = await NatsServer.start({ config: credentials.config });
    writeFileSync(credentialsFile, credentials.user(true));
    const { log, text } = textLog();
    const bus = await NatsBus.connect({ url: server.url, credentialsFile, log });
    writeFileSync(credentialsFile, credentials.user(false));
    expect((await refusal({ url: server.url, credentialsFile })).code).toBe("bus_refused");
    await server.kill();
    await until("lost", () => bus.state === "lost");
    await server.start();
    await until("refused", () => text().includes("refuses the credentials"), SLOW);
    expect(bus.state).toBe("lost");
    writeFileSync(credentialsFile, credentials.user(true));
    await until("up again", () => bus.state === "up", SLOW);
    await bus.close();
    rmSync(folder, { recursive: true });
  });

  it("credentials that can't be read are named, by their path", async () => {
    const error = await refusal({ url: "nats://127.0.0.1:1", credentialsFile: "/nowhere/bus.creds" });
    expect(error.code).toBe("invalid_config");
    expect(error.message).toContain("/nowhere/bus.creds");
  });

  it("a server without JetStream is refused with what to do", async () => {
    await using server = await NatsServer.start({ jetstream: false });
    const error = await refusal({ url: server.url });
    expect(error).toMatchObject({ code: "bus_refused" });
    expect(error.message).toContain("-js");
  });

  it("a user without the permissions is refused, with the subject that is missing", async () => {
    await using server = await NatsServer.start({
      config: `authorization { users: [{
        user: "me", password: "x", permissions { publish: "voicewire.>", subscribe: "_INBOX.>" }
      }] }`,
    });
    const error = await refusal({ url: `nats://me:x@127.0.0.1:${server.port}` });
    expect(error).toMatchObject({ code: "bus_refused" });
    expect(error.message).toContain("$JS.API");
  });

  it("a server that is too old is refused", async () => {
    const old = createServer((socket) => {
      socket.write(
        `INFO ${JSON.stringify({ version: "2.8.4", headers: true, max_payload: 1024, proto: 1 })}\r\n`,
      );
      socket.on("data", (data) => data.toString().includes("PING") && socket.write("PONG\r\n"));
      socket.on("error", () => undefined);
    });
    const port = await freePort();
    await new Promise<void>((resolve) => old.listen(port, "127.0.0.1", resolve));
    const error = await refusal({ url: `nats://127.0.0.1:${port}` });
    expect(error.code).toBe("bus_refused");
    expect(error.message).toContain("2.8.4");
    old.close();
  });

  it("no cluster has a name with a dot", async () => {
    expect((await refusal({ url: "nats://127.0.0.1:1", cluster: "a.b" })).code).toBe("invalid_config");
  });
});

describe.skipIf(isNatsMissing)(`servers that fail${IF_NATS_MISSING}`, () => {
  it("a server that hangs: what waits is bounded, the loss is noticed, and it comes back", {
    timeout: PATIENT_MS,
  }, async () => {
    await using server = await NatsServer.start();
    // More than the kernel takes: what the library writes last is never taken.
    const bus = await NatsBus.connect({ url: server.url, maxWaitingBytes: 32 * 1024 * 1024 });
    const heard: number[] = [];
    await bus.subscribe("s", (data) => heard.push(data[0] ?? 0));
    server.pause();
    const refusals = new Set<string>();
    const message = new Uint8Array(64 * 1024).fill(1);
    await until(
      "the loss",
      () => {
        try {
          for (let count = 0; count < 50; count += 1) bus.publish("s", message);
        } catch (error) {
          refusals.add(error instanceof GatewayError ? error.code : "another");
        }
        return bus.state === "lost";
      },
      SLOW,
    );
    expect([...refusals]).toContain("bus_full");
    expect(refusals).not.toContain("another");
    server.resume();
    await until("it is up", () => bus.state === "up", SLOW);
    heard.length = 0;
    bus.publish("s", new Uint8Array([2]));
    await until("the message", () => heard.length > 0);
    expect(heard).toEqual([2]);
    await bus.close();
  });

  it("a server that hangs: who asks the store meanwhile is told when to try again", {
    timeout: PATIENT_MS,
  }, async () => {
    await using server = await NatsServer.start();
    const bus = await NatsBus.connect({ url: server.url });
    server.pause();
    const asked = Promise.allSettled([bus.owners.find("a"), bus.owners.claim("b", none)]);
    for (const answer of await asked) {
      if (answer.status === "fulfilled") throw new Error("A server that hangs has answered");
      expect(answer.reason).toMatchObject({ code: expect.stringMatching(/^bus_(timeout|lost)$/) });
      expect(answer.reason).toMatchObject({ retryAfterMs: expect.any(Number) });
    }
    server.resume();
    await bus.close();
  });

  it("keys that were released leave nothing behind in the store", async () => {
    await using server = await NatsServer.start();
    const bus = await NatsBus.connect({ url: server.url });
    const { transport, jetstream } = await loadNatsLibraries();
    const connection = await transport.connect({ servers: `127.0.0.1:${server.port}` });
    const manager = await jetstream.jetstreamManager(connection);
    const kept = async (): Promise<number> =>
      (await manager.streams.info("KV_voicewire_owners")).state.messages;
    for (const key of ["s.1", "s.2"]) await bus.owners.claim(key, none);
    expect(await kept()).toBe(2);
    for (const key of ["s.1", "s.2"]) {
      const entry = await bus.owners.find(key);
      if (entry !== undefined) await bus.owners.release(entry);
    }
    expect(await kept()).toBe(0);
    await connection.close();
    await bus.close();
  });

  it("three servers: tables and leases live on when one is killed", { timeout: PATIENT_MS }, async () => {
    const routePorts = [await freePort(), await freePort(), await freePort()];
    const routes = routePorts.map((port) => `"nats://127.0.0.1:${port}"`).join(", ");
    const servers = await Promise.all(
      routePorts.map((port, index) =>
        NatsServer.start({
          config: `server_name: "s${index}"\ncluster { name: "c", listen: "127.0.0.1:${port}", routes: [${routes}] }`,
        }),
      ),
    );
    const url = servers.map((server) => server.url).join(",");
    const bus = await openWhenReady(url);
    // The store's servers may still choose their leaders.
    const registry = await untilGiven("a place", () => NodeRegistry.join(bus, nodeOptions("a")));
    const { entry } = await untilGiven("a claim", () => bus.owners.claim("s", none));
    await servers[0]?.kill();
    const found = await untilGiven("the entry", () => bus.owners.find("s"));
    expect(found).toEqual(entry);
    // Each table's servers choose a leader of their own.
    const lease = await untilGiven("the lease", () => bus.leases.find("a"));
    expect(lease.key).toBe("a");
    await until("the node is alive", () => registry.find("a")?.state === "alive", SLOW);
    await bus.close();
    for (const server of servers) await server[Symbol.asyncDispose]();
  });

  it("two servers whose route is cut: each side holds the other's node gone, and alive when it is whole", {
    timeout: PATIENT_MS,
  }, async () => {
    const [routeA, routeB] = [await freePort(), await freePort()];
    await using link = await TcpLink.to(routeB);
    const cluster = (name: string, port: number, routes: string): string =>
      `server_name: ${name}\ncluster { name: c, listen: "127.0.0.1:${port}", no_advertise: true, routes: [${routes}] }`;
    await using b = await NatsServer.start({ config: cluster("b", routeB, `"nats://127.0.0.1:${routeB}"`) });
    await using a = await NatsServer.start({
      config: cluster("a", routeA, `"nats://127.0.0.1:${link.port}"`),
    });
    const [atA, atB] = [await openWhenReady(a.url), await openWhenReady(b.url)];
    const nodeA = await NodeRegistry.join(atA, nodeOptions("a"));
    const nodeB = await NodeRegistry.join(atB, nodeOptions("b"));
    const isAlive = (): boolean => nodeA.find("b")?.state === "alive" && nodeB.find("a")?.state === "alive";
    await until("both know one another", isAlive, SLOW);
    link.cut();
    await until(
      "both are gone",
      () => nodeA.find("b")?.state === "gone" && nodeB.find("a")?.state === "gone",
      SLOW,
    );
    expect([atA.state, atB.state]).toEqual(["up", "up"]);
    expect(nodeA.find("a")?.state).toBe("alive");
    link.heal();
    await until("both are alive", isAlive, SLOW);
    await Promise.all([atA.close(), atB.close()]);
  });
});

describe.skipIf(isProcessMissing)(`nodes that are processes${IF_PROCESS_MISSING}`, () => {
  it("one that is killed: requests to it fail at once, it is gone, and its name is free", {
    timeout: PATIENT_MS,
  }, async () => {
    await using server = await NatsServer.start();
    const bus = await NatsBus.connect({ url: server.url });
    const registry = await NodeRegistry.join(bus, nodeOptions("a"));
    const first = await NodeProcess.join(server.url, "b");
    await until("it is heard", () => registry.find("b")?.state === "alive");
    await bus.request("echo.b", none, { timeoutMs: TIMEOUT_MS });
    await first[Symbol.asyncDispose]();
    const refused = await untilGiven("no answer", async () => {
      // One that is under way when the process dies gets no answer at all.
      const asked = await bus
        .request("echo.b", none, { timeoutMs: TIMEOUT_MS })
        .catch((error: unknown) => error);
      return asked instanceof GatewayError && asked.code !== "bus_timeout" ? asked.code : undefined;
    });
    expect(refused).toBe("bus_no_answer");
    await until("it is gone", () => registry.find("b")?.state === "gone", SLOW);
    await using second = await NodeProcess.join(server.url, "b");
    await until("it is alive", () => registry.find("b")?.state === "alive");
    expect(second.lines).not.toContain("replaced");
    await bus.close();
  });

  it("one that hangs: the server keeps it, its heartbeats do not; it goes on when it wakes", {
    timeout: PATIENT_MS,
  }, async () => {
    await using server = await NatsServer.start();
    const bus = await NatsBus.connect({ url: server.url });
    const registry = await NodeRegistry.join(bus, nodeOptions("a"));
    await using node = await NodeProcess.join(server.url, "b");
    const states: string[] = [];
    await until("it is heard", () => registry.find("b")?.state === "alive");
    registry.onChange(({ name, state }) => states.push(`${name} ${state}`));
    node.pause();
    await until("it is gone", () => states.includes("b gone"), SLOW);
    expect(states).toEqual(["b suspect", "b gone"]);
    await expect(bus.request("echo.b", none, { timeoutMs: 100 })).rejects.toMatchObject({
      code: "bus_timeout",
    });
    node.resume();
    await until("it is alive", () => states.includes("b alive"), SLOW);
    await bus.request("echo.b", none, { timeoutMs: TIMEOUT_MS });
    expect(node.lines.filter((line) => line.startsWith("a ") && line !== "a alive")).toEqual([]);
    expect(node.lines).not.toContain("lost");
    await bus.close();
  });

  it("two with one name: the second is refused, the first goes on", { timeout: PATIENT_MS }, async () => {
    await using server = await NatsServer.start();
    await using first = await NodeProcess.join(server.url, "a");
    await using second = new NodeProcess(server.url, "a");
    await second.says("refused node_name_taken");
    expect(first.lines).not.toContain("replaced");
  });

  it("one that does not read: the server cuts it off, it says so, and nobody else notices", {
    timeout: PATIENT_MS,
  }, async () => {
    await using server = await NatsServer.start({ config: 'max_pending: 1MB\nwrite_deadline: "1s"' });
    const bus = await NatsBus.connect({ url: server.url });
    const states: string[] = [];
    bus.onState((state) => states.push(state));
    await using node = await NodeProcess.join(server.url, "b");
    node.pause();
    const message = new Uint8Array(64 * 1024);
    let sentBytes = 0;
    // More than the kernel's buffers and the server's together.
    while (sentBytes < 64 * 1024 * 1024) {
      try {
        bus.publish("flood", message);
        sentBytes += message.length;
      } catch {
        // Full: the rest has to leave first.
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
    await bus.answer("echo.a", () => none);
    await bus.request("echo.a", none, { timeoutMs: TIMEOUT_MS });
    node.resume();
    await node.says("lost");
    await node.says("up");
    expect(states).toEqual([]);
    await untilGiven("its answer", () => bus.request("echo.b", none, { timeoutMs: 1000 }));
    await bus.close();
  });

  it("clocks that jump: no lease, no heartbeat and no way back waits for them", {
    timeout: PATIENT_MS,
  }, async () => {
    await using server = await NatsServer.start();
    const bus = await NatsBus.connect({ url: server.url });
    const registry = await NodeRegistry.join(bus, nodeOptions("a"));
    await using node = await NodeProcess.join(server.url, "b");
    await until("it is heard", () => registry.find("b")?.state === "alive");
    const states: string[] = [];
    registry.onChange(({ name, state }) => states.push(`${name} ${state}`));
    for (const jumpMs of [3_600_000, -7_200_000]) {
      const isLost = node.lines.filter((line) => line === "lost").length;
      node.write(`jump ${jumpMs}`);
      await node.says("jumped", jumpMs > 0 ? 0 : 1);
      const before = await bus.leases.find("b");
      await untilGiven("a renewed lease", async () => {
        const lease = await bus.leases.find("b");
        return lease !== undefined && lease.revision !== before?.revision ? lease : undefined;
      });
      await server.kill();
      await node.says("lost", isLost);
      await server.start();
      await node.says("up", isLost);
      await untilGiven("its lease", () => bus.leases.find("b"));
      await until("it is alive", () => registry.find("b")?.state === "alive");
    }
    expect(states).toEqual([]);
    expect(node.lines).not.toContain("replaced");
    await bus.close();
  });
});
