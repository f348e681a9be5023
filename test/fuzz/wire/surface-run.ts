/** One surface of a gateway process: its crowd, and what is left behind when that has gone. */
import { Crowd, mustAnswer, runCrowd } from "./crowd.ts";
import type { FuzzedGateway } from "./fuzzed-gateway.ts";
import { Neighbour } from "./neighbour.ts";
import type { Surface } from "./surfaces.ts";

/** What the heap may grow by between the first tenth of the inputs and the end. */
const MAX_GROWTH_MB = 16;
/** Connections to the upstream that wait for the next request, and the like. */
const MAX_LEFT_FILES = 16;
/** Sessions end, and connections to the upstream, which are kept idle for 60 s; counted from when all messages are handled. */
const SETTLE_MS = 75_000;
/** What a crowd has sent is handled in turns, also when it has gone: 256 MB of it may wait. */
const HANDLE_MS = 600_000;
const SETTLE_STEP_MS = 250;

export interface SurfaceJob {
  readonly name: string;
  readonly surface: Surface;
  readonly inputs: number;
  readonly seed: number;
  /** It ends after so many seconds, whatever is left of the inputs; Infinity: it does not. */
  readonly maxSeconds: number;
  readonly atOnce: number;
}

export interface SurfaceReport {
  readonly name: string;
  readonly inputs: number;
  readonly connections: number;
  readonly seconds: number;
  readonly heapBeforeMb: number;
  readonly heapAfterMb: number;
  readonly filesBefore: number;
  readonly filesAfter: number;
  /** Sentences that the neighbour heard. */
  readonly heard: number;
  /** By code. */
  readonly closes: Readonly<Record<string, number>>;
  readonly errors: Readonly<Record<string, number>>;
  /** Empty where the surface held. */
  readonly faults: readonly string[];
  /** Numbers of connections of which one may have broken it; a heap or files that grow are nobody's. */
  readonly suspects: readonly number[];
}

export async function runSurface(gateway: FuzzedGateway, job: SurfaceJob): Promise<SurfaceReport> {
  const { name, surface, inputs, seed, maxSeconds, atOnce } = job;
  await using neighbour = new Neighbour(gateway.port, `neighbour-${name}`);
  const internalBefore = await internals(gateway);
  const faultsBefore = gateway.process.faults.length;
  const startedAt = performance.now();
  const secondsNow = (): number => (performance.now() - startedAt) / 1000;
  const crowd = new Crowd({ gateway, surface, seed });
  const isOver = (share: number) => () =>
    secondsNow() > maxSeconds * share || !gateway.process.isAlive || crowd.faults.length > 0;
  const look = async (): Promise<boolean> => {
    const isWell = gateway.process.isAlive && gateway.process.faults.length === faultsBefore;
    return isWell && (await internals(gateway)) === internalBefore;
  };
  await runCrowd(crowd, { inputs: inputs / 10, atOnce, isOver: isOver(0.1), look });
  const before = await settled(gateway, Number.POSITIVE_INFINITY);
  await runCrowd(crowd, { inputs, atOnce, isOver: isOver(1), look });
  const seconds = secondsNow();
  const after = await settled(gateway, before.files + MAX_LEFT_FILES);
  const faults = [...gateway.process.faults.slice(faultsBefore), ...crowd.faults, ...neighbour.faults];
  if (!gateway.process.isAlive) {
    faults.push("the gateway's process has ended");
  } else {
    const unanswered = await mustAnswer(gateway.url);
    if (unanswered !== null) faults.push(unanswered);
    const internal = (await internals(gateway)) - internalBefore;
    if (internal > 0) faults.push(`${internal} errors were internal`);
    if (after.heapMb - before.heapMb > MAX_GROWTH_MB)
      faults.push(`the heap has grown from ${before.heapMb} to ${after.heapMb} MB`);
    if (after.files - before.files > MAX_LEFT_FILES)
      faults.push(`open files went from ${before.files} to ${after.files}`);
    if (after.sessions > 1) faults.push(`${after.sessions - 1} sessions were left`);
  }
  return {
    name,
    inputs: crowd.sent,
    connections: crowd.connections,
    seconds,
    heapBeforeMb: before.heapMb,
    heapAfterMb: after.heapMb,
    filesBefore: before.files,
    filesAfter: after.files,
    heard: neighbour.heard,
    closes: Object.fromEntries(crowd.closes),
    errors: Object.fromEntries(crowd.codes),
    faults,
    suspects: crowd.suspects,
  };
}

/** How often the gateway has called something its own fault; Infinity where it does not say. */
export async function internals(gateway: FuzzedGateway): Promise<number> {
  try {
    const count = await gateway.metric('voicewire_refused_total{reason="internal"}');
    return Number.isNaN(count) ? 0 : count;
  } catch (thrown) {
    // What fetch throws where nobody answers.
    if (!(thrown instanceof TypeError)) throw thrown;
    return Number.POSITIVE_INFINITY;
  }
}

interface Settled {
  readonly heapMb: number;
  readonly files: number;
  readonly sessions: number;
}

/** When all is handled, nobody but the neighbour is there, and no more files are open than that; or too late for it. */
async function settled(gateway: FuzzedGateway, maxFiles: number): Promise<Settled> {
  if (!gateway.process.isAlive) return { heapMb: 0, files: 0, sessions: 0 };
  const handledBy = performance.now() + HANDLE_MS;
  while ((await gateway.metric("voicewire_received_bytes")) > 0 && performance.now() < handledBy)
    await pause();
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const sessions = await gateway.metric("voicewire_sessions");
    const files = gateway.process.openFiles();
    const isSettled = sessions <= 1 && files <= maxFiles;
    if (isSettled || performance.now() > deadline)
      return { heapMb: await gateway.process.heapMb(), files, sessions };
    await pause();
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SETTLE_STEP_MS));
}
