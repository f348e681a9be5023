/** Faults of what a gateway stands on: names, certificates and the disk. */
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { PAIRS } from "../../test/helpers/certificate-files.ts";
import { monotonicMs, wait } from "../kit/monotonic.ts";
import { ServedProgram } from "../kit/served-program.ts";
import { GATEWAY_ARGS, UPSTREAM_BYTES_PER_SECOND } from "./answer-faults.ts";
import type { Run } from "./caller.ts";
import { type Door, FaultLink } from "./fault-link.ts";
import { momentScene } from "./moment.ts";
import type { Fault, Scene, Stage } from "./scene.ts";
import { SERVICE_NAME } from "./service.ts";

const CALLS_AT_ONCE = 30;
/** Longer than all tries of a request that nothing has come of. */
const LONGEST_OUTAGE_MS = 6000;
/** Room for what is said in an hour. */
const DISK_MB = 256;
const BLOCK_BYTES = 1_048_576;
const LEDGER_DEADLINE_MS = 10_000;

/** A mount namespace of its own: nothing of the machine's changes. */
const NAMESPACE = ["unshare", "-m", "sh", "-c"];

function missingNamespace(): string | null {
  const { status } = spawnSync("unshare", ["-m", "true"], { stdio: "ignore" });
  return status === 0 ? null : "it needs a mount namespace (root)";
}

async function linkTo(stage: Stage): Promise<FaultLink> {
  return await FaultLink.open({
    targetPort: stage.service.port,
    marker: /"seed":(\d+)/,
    faultOf: () => null,
    onStruck: () => undefined,
    bytesPerSecond: UPSTREAM_BYTES_PER_SECOND,
  });
}

/** The gateway's own /etc/hosts has the service's name, and loses it for a while; its connections are reset then. */
async function nameScene(stage: Stage): Promise<Scene> {
  const link = await linkTo(stage);
  const hosts = join(stage.folder, "hosts");
  const resolver = join(stage.folder, "resolv.conf");
  const know = (isKnown: boolean): void =>
    writeFileSync(hosts, `127.0.0.1 localhost\n${isKnown ? `127.0.0.1 ${SERVICE_NAME}\n` : ""}`);
  know(true);
  // Nobody listens there: it is refused at once, and no other machine is asked.
  writeFileSync(resolver, "nameserver 127.0.0.1\n");
  const script = `mount --bind ${hosts} /etc/hosts && mount --bind ${resolver} /etc/resolv.conf && exec "$0" "$@"`;
  const gateway = await ServedProgram.start({
    distUrl: stage.distUrl,
    workers: 1,
    through: [...NAMESPACE, script],
    args: [
      "--upstream-url",
      `http://${SERVICE_NAME}:${link.port}`,
      "--voice",
      stage.service.voiceId,
      ...GATEWAY_ARGS,
    ],
  });
  return momentScene({
    stage,
    baseUrl: () => `http://127.0.0.1:${gateway.port}`,
    strike: async () => {
      know(false);
      link.cut();
      await wait(300 + stage.random.below(LONGEST_OUTAGE_MS));
      know(true);
    },
    close: async () => {
      await gateway[Symbol.asyncDispose]();
      await link[Symbol.asyncDispose]();
    },
  });
}

/** The service has a good certificate, and for a while what `door` says; its connections are reset then. */
async function certificateScene(stage: Stage, door: Door): Promise<Scene> {
  const link = await linkTo(stage);
  link.door = PAIRS.renewed;
  const trusted = join(stage.folder, "trusted.pem");
  writeFileSync(
    trusted,
    Object.values(PAIRS)
      .map(({ certificate }) => certificate)
      .join(""),
  );
  const gateway = await ServedProgram.start({
    distUrl: stage.distUrl,
    workers: 1,
    args: [
      "--upstream-url",
      `https://127.0.0.1:${link.port}`,
      "--voice",
      stage.service.voiceId,
      ...GATEWAY_ARGS,
    ],
    env: { NODE_EXTRA_CA_CERTS: trusted },
  });
  return momentScene({
    stage,
    baseUrl: () => `http://127.0.0.1:${gateway.port}`,
    strike: async () => {
      link.door = door;
      link.cut();
      await wait(300 + stage.random.below(LONGEST_OUTAGE_MS));
      link.door = PAIRS.renewed;
      link.cut();
    },
    close: async () => {
      await gateway[Symbol.asyncDispose]();
      await link[Symbol.asyncDispose]();
    },
  });
}

/** The store of the gateway's own service and the ledger are on a disk that is full for a while. */
async function diskScene(stage: Stage): Promise<Scene> {
  const disk = join(stage.folder, "disk");
  mkdirSync(disk, { recursive: true });
  const script = `mount -t tmpfs -o size=${DISK_MB}m,mode=700 chaos ${disk} && exec "$0" "$@"`;
  const gateway = await ServedProgram.start({
    distUrl: stage.distUrl,
    workers: 1,
    through: [...NAMESPACE, script],
    args: [
      ...["--voice", stage.service.voiceId, ...GATEWAY_ARGS],
      ...["--data", join(disk, "data"), "--ledger", join(disk, "usage.jsonl")],
    ],
  });
  const inside = `/proc/${gateway.pid}/root${disk}`;
  return momentScene({
    stage,
    baseUrl: () => `http://127.0.0.1:${gateway.port}`,
    strike: async () => {
      const ballast = join(inside, "ballast");
      const endMs = monotonicMs() + 1000 + stage.random.below(LONGEST_OUTAGE_MS);
      while (monotonicMs() < endMs) {
        fill(ballast);
        await wait(50);
      }
      rmSync(ballast);
    },
    check: async (runs) => {
      await expectStoreWorks(`http://127.0.0.1:${gateway.port}`, stage.service.voiceId);
      return await withLedger(runs, join(inside, "usage.jsonl"));
    },
    close: () => gateway[Symbol.asyncDispose](),
  });
}

/** Takes what is free. */
function fill(file: string): void {
  const descriptor = openSync(file, "a");
  const block = Buffer.alloc(BLOCK_BYTES);
  try {
    for (let size = BLOCK_BYTES; size >= 1; ) {
      try {
        writeSync(descriptor, block, 0, size);
      } catch (thrown) {
        if (!(thrown instanceof Error && "code" in thrown && thrown.code === "ENOSPC")) throw thrown;
        size >>= 1;
      }
    }
  } finally {
    closeSync(descriptor);
  }
}

/** What is generated when there is room again is kept. */
async function expectStoreWorks(baseUrl: string, voiceId: string): Promise<void> {
  const speech = await fetch(`${baseUrl}/v1/text-to-speech/${voiceId}?output_format=ulaw_8000`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text: "Is this kept?" }),
  });
  await speech.arrayBuffer();
  const id = speech.headers.get("history-item-id");
  const item = await fetch(`${baseUrl}/v1/history/${id}`);
  if (!item.ok) throw new Error(`The store has room again and does not keep ${id}: ${item.status}`);
}

/** A line for each utterance that was heard has to come when there is room again. */
async function withLedger(runs: readonly Run[], file: string): Promise<Run[]> {
  const endMs = monotonicMs() + LEDGER_DEADLINE_MS;
  for (;;) {
    const sessions = sessionsIn(readFileSync(file, "utf8"));
    const missing = runs.filter(({ session }) => !sessions.has(session));
    if (missing.length === 0 || monotonicMs() > endMs)
      return runs.map((run) =>
        sessions.has(run.session)
          ? run
          : { ...run, shortfalls: [...run.shortfalls, "the ledger has no line of what was heard"] },
      );
    await wait(200);
  }
}

function sessionsIn(ledger: string): Set<string> {
  const found = new Set<string>();
  for (const line of ledger.split("\n")) {
    // A line that was torn is written again.
    const [, session] = /"type":"heard".*"session":"([^"]*)".*"utterance":"first".*\}$/.exec(line) ?? [];
    if (session !== undefined) found.add(session);
  }
  return found;
}

export const MACHINE_FAULTS: readonly Fault[] = [
  {
    name: "dns",
    says: "the service's name is not found for 0.3 to 6.3 s, and its connections are reset",
    missing: missingNamespace,
    callsAtOnce: CALLS_AT_ONCE,
    open: nameScene,
  },
  {
    name: "tls-expired",
    says: "the service's certificate has expired for 0.3 to 6.3 s, and its connections are reset",
    callsAtOnce: CALLS_AT_ONCE,
    open: (stage) => certificateScene(stage, PAIRS.expired),
  },
  {
    name: "tls-name",
    says: "the service's certificate is another host's for 0.3 to 6.3 s, and its connections are reset",
    callsAtOnce: CALLS_AT_ONCE,
    open: (stage) => certificateScene(stage, PAIRS.first),
  },
  {
    name: "tls-cut",
    says: "handshakes with the service are cut for 0.3 to 6.3 s, and its connections are reset",
    callsAtOnce: CALLS_AT_ONCE,
    open: (stage) => certificateScene(stage, "cut"),
  },
  {
    name: "disk-full",
    says: "the disk under the service's store and the ledger is full for 1 to 7 s",
    missing: missingNamespace,
    callsAtOnce: CALLS_AT_ONCE,
    open: diskScene,
  },
];
