/** Faults of processes: the service, a worker, the bus and the gateway itself. */

import { once } from "node:events";
import { createServer } from "node:net";
import WebSocket from "ws";
import { type Connection, connect, type WebSocketConstructor } from "../../src/client/index.ts";
import { IF_NATS_MISSING, isNatsMissing, NatsServer } from "../../test/kit/nats-server.ts";
import { wait } from "../kit/monotonic.ts";
import { ServedProgram } from "../kit/served-program.ts";
import { GATEWAY_ARGS, UPSTREAM_BYTES_PER_SECOND } from "./answer-faults.ts";
import { childrenOf, signalTo } from "./children.ts";
import { FaultLink } from "./fault-link.ts";
import { momentScene } from "./moment.ts";
import type { Fault, Plan, Scene, Stage } from "./scene.ts";

const CALLS_AT_ONCE = 30;
const RESTART_TRIES = 50;
const WORKER_TRIES = 400;
const PORT_TRIES = 50;
const FIRST_PORT = 20_000;
const PORTS = 10_000;

/** A second kill finds the service as it starts. */
const KILLS_IN_A_ROW = [1, 1, 1, 2];

/** The gateway's own service is killed or hangs. */
async function serviceScene(stage: Stage, signal: "SIGKILL" | "SIGSTOP"): Promise<Scene> {
  const gateway = await ServedProgram.start({
    distUrl: stage.distUrl,
    workers: 1,
    // Requests are made as late as may be: more of them are under way when it comes.
    args: ["--voice", stage.service.voiceId, "--speculate-ms", "300", ...GATEWAY_ARGS],
  });
  return momentScene({
    stage,
    baseUrl: () => `http://127.0.0.1:${gateway.port}`,
    strike: async () => {
      const times = signal === "SIGKILL" ? stage.random.pick(KILLS_IN_A_ROW) : 1;
      for (let time = 0; time < times; time += 1) {
        signalTo(childrenOf(gateway.pid, "service")[0], signal);
        await wait(200 + stage.random.below(800));
      }
    },
    close: () => gateway[Symbol.asyncDispose](),
  });
}

/** A link to the service that gives answers a middle, and hits nothing. */
function plainLink(stage: Stage): Promise<FaultLink> {
  return FaultLink.open({
    targetPort: stage.service.port,
    marker: /"seed":(\d+)/,
    faultOf: () => null,
    onStruck: () => undefined,
    bytesPerSecond: UPSTREAM_BYTES_PER_SECOND,
  });
}

function upstreamArgs(stage: Stage, link: FaultLink): string[] {
  return [
    "--upstream-url",
    `http://127.0.0.1:${link.port}`,
    "--voice",
    stage.service.voiceId,
    ...GATEWAY_ARGS,
  ];
}

async function workerScene(stage: Stage): Promise<Scene> {
  const link = await plainLink(stage);
  const gateway = await ServedProgram.start({
    distUrl: stage.distUrl,
    workers: 2,
    args: upstreamArgs(stage, link),
  });
  return momentScene({
    stage,
    baseUrl: () => `http://127.0.0.1:${gateway.port}`,
    strike: async () => {
      signalTo(stage.random.pick(childrenOf(gateway.pid, "--worker")), "SIGKILL");
      // The next kill finds two workers again.
      for (let tries = 0; tries < WORKER_TRIES && childrenOf(gateway.pid, "--worker").length < 2; tries += 1)
        await wait(50);
    },
    close: async () => {
      await gateway[Symbol.asyncDispose]();
      await link[Symbol.asyncDispose]();
    },
  });
}

/** The gateway ends and is started again on its port, as a service manager does. */
async function gatewayScene(stage: Stage, signal: "SIGTERM" | "SIGKILL"): Promise<Scene> {
  const link = await plainLink(stage);
  const start = (port: number): Promise<ServedProgram> =>
    ServedProgram.start({
      distUrl: stage.distUrl,
      workers: 1,
      port,
      args: [...upstreamArgs(stage, link), "--drain-ms", `${stage.random.pick([1000, 10_000])}`],
    });
  const port = await lowPort(stage);
  let gateway = await start(port);
  return momentScene({
    stage,
    baseUrl: () => `http://127.0.0.1:${port}`,
    strike: async () => {
      gateway.kill(signal);
      await gateway.ended;
      gateway = await again(() => start(port));
    },
    close: async () => {
      await gateway[Symbol.asyncDispose]();
      await link[Symbol.asyncDispose]();
    },
  });
}

/**
 * Below those that the system gives to connections: one that is tried while nobody listens may get the very port as its own,
 * and hold it.
 */
async function lowPort({ random }: Stage): Promise<number> {
  for (let tries = 0; tries < PORT_TRIES; tries += 1) {
    const port = FIRST_PORT + random.below(PORTS);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) return port;
  }
  throw new Error(`No free port from ${FIRST_PORT} on`);
}

/** Its port may be in use for a moment. */
async function again(start: () => Promise<ServedProgram>): Promise<ServedProgram> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await start();
    } catch (thrown) {
      if (tries === RESTART_TRIES) throw thrown;
      await wait(100);
    }
  }
}

/** Two nodes on one nats-server: every second session is at the other node than its listener. */
async function busScene(stage: Stage): Promise<Scene> {
  const link = await plainLink(stage);
  const nats = await NatsServer.start({ config: 'write_deadline: "2s"' });
  const node = (): Promise<ServedProgram> =>
    ServedProgram.start({
      distUrl: stage.distUrl,
      workers: 1,
      args: [...upstreamArgs(stage, link), "--cluster", nats.url],
    });
  const nodes = [await node(), await node()] as const;
  const openers: Connection[] = [];
  const [near, far] = nodes.map(({ port }) => `http://127.0.0.1:${port}`);
  return momentScene({
    stage,
    baseUrl: () => near ?? "",
    prepare: async (plans) => {
      await Promise.all(openers.splice(0).map((opener) => opener.close()));
      for (const plan of plans.filter(({ seed }) => seed % 2 === 0))
        openers.push(await opened(plan, far ?? ""));
    },
    strike: async () => {
      await nats.kill();
      await wait(300 + stage.random.below(3000));
      await nats.start();
    },
    close: async () => {
      await Promise.all(openers.splice(0).map((opener) => opener.close()));
      for (const each of nodes) await each[Symbol.asyncDispose]();
      await nats[Symbol.asyncDispose]();
      await link[Symbol.asyncDispose]();
    },
  });
}

/** Somebody who hears nothing opens the session there. */
function opened({ session }: Plan, baseUrl: string): Promise<Connection> {
  return connect({
    baseUrl,
    session,
    settings: { role: "speaker" },
    WebSocket: WebSocket as unknown as WebSocketConstructor,
    reconnect: true,
  });
}

export const PROCESS_FAULTS: readonly Fault[] = [
  {
    name: "service-killed",
    says: "the gateway's own service is killed (SIGKILL), now and then twice in a row",
    callsAtOnce: CALLS_AT_ONCE,
    open: (stage) => serviceScene(stage, "SIGKILL"),
  },
  {
    name: "service-hung",
    says: "the gateway's own service hangs (SIGSTOP) until the gateway kills it",
    callsAtOnce: CALLS_AT_ONCE,
    open: (stage) => serviceScene(stage, "SIGSTOP"),
  },
  {
    name: "worker-killed",
    says: "one of two workers is killed (SIGKILL)",
    callsAtOnce: CALLS_AT_ONCE,
    open: workerScene,
  },
  {
    name: "bus-killed",
    says: "nats-server between two nodes is killed for 0.3 to 3.3 s; every second session is at the other node",
    missing: () => (isNatsMissing ? IF_NATS_MISSING.trim() : null),
    callsAtOnce: CALLS_AT_ONCE,
    open: busScene,
  },
  {
    name: "sigterm",
    says: "the gateway is stopped (SIGTERM, drain-ms 1000 or 10000) and started again",
    callsAtOnce: CALLS_AT_ONCE,
    open: (stage) => gatewayScene(stage, "SIGTERM"),
  },
  {
    name: "sigkill",
    says: "the gateway is killed (SIGKILL) and started again",
    callsAtOnce: CALLS_AT_ONCE,
    open: (stage) => gatewayScene(stage, "SIGKILL"),
  },
];
