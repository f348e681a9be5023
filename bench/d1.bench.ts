/** D1: what the door costs: a reconnect storm of clients with tokens, and the CPU of one token's check. */
import { createSecretKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bench, runBench } from "./kit/bench.ts";
import { cpuMs } from "./kit/cpu.ts";
import type { JoinerCommands, JoinerOptions, StormArgs, StormResult } from "./kit/joins.ts";
import { median } from "./kit/statistics.ts";

type AccessModule = typeof import("../src/access/access.ts");
type KeysModule = typeof import("../src/access/keys.ts");
type JwtModule = typeof import("../src/access/jwt.ts");
type Algorithm = import("../src/access/jwt.ts").Algorithm;

const TARGET_P99_MS = 100;
const TARGET_CHECK_US = 60;
const KEY_ID = "bench";
const SECRET = randomBytes(32).toString("base64url");

runBench(async (bench) => {
  const size = {
    joinsPerSecond: bench.pick(5000, 200),
    seconds: bench.pick(10, 1),
    sessions: bench.pick(100, 10),
    checks: bench.pick(5000, 200),
    rounds: bench.options.rounds,
  };
  bench.method(
    `${size.joinsPerSecond} joins a second for ${size.seconds} s over ${size.sessions} sessions, each a new TCP connection with an HS256 token of its own subject, that leaves with its hello;`,
    `gateway without and with a key file, ${size.rounds} rounds in turn, medians; from when each join was due to its hello. Cores: the gateway's CPU (all threads, /proc) over`,
    `the time of the storm. Token check: process CPU of ${size.checks} tokens that are all different, after a round that compiles, medians of ${size.rounds + 1} rounds.`,
  );
  await measureStorms(bench, size);
  await measureChecks(bench, size);
});

type Size = Pick<StormArgs, "joinsPerSecond" | "seconds" | "sessions"> & {
  readonly checks: number;
  readonly rounds: number;
};

interface Storm extends StormResult {
  readonly cores: number;
}

async function measureStorms(bench: Bench, size: Size): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-bench-"));
  try {
    const keysFile = join(folder, "keys.json");
    const entry = { id: KEY_ID, algorithm: "HS256", secret: SECRET };
    writeFileSync(keysFile, JSON.stringify({ keys: [entry] }), { mode: 0o600 });
    const [open, keyed]: [Storm[], Storm[]] = [[], []];
    for (let round = 0; round < size.rounds; round += 1) {
      open.push(await storm(bench, "", size));
      keyed.push(await storm(bench, keysFile, size));
    }
    report(bench, { size, open, keyed });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** At most so many closed connections may still hold a port when a storm begins. */
const MAX_HELD_PORTS = 1000;
/** They hold it for a minute (RFC 9293 section 3.3.2, TIME-WAIT). */
const PORTS_WAIT_MS = 90_000;

/** A storm leaves 50,000 ports behind, and the next one would wait for those instead of for the gateway. */
async function untilPortsAreFree(): Promise<void> {
  const untilMs = performance.now() + PORTS_WAIT_MS;
  while (performance.now() < untilMs) {
    const held = /^TCP:.* tw (\d+)/m.exec(readFileSync("/proc/net/sockstat", "utf8"))?.[1] ?? "0";
    if (Number(held) <= MAX_HELD_PORTS) return;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

async function storm(bench: Bench, keysFile: string, size: Size): Promise<Storm> {
  await untilPortsAreFree();
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port, { keysFile });
  const options: JoinerOptions = { distUrl: bench.options.distUrl, secret: SECRET, keyId: KEY_ID };
  await using joiner = await bench.start<JoinerCommands>("joiner", options);
  const beforeMs = cpuMs(gateway.pid);
  const label = keysFile === "" ? "d1-open" : "d1-keys";
  const result = await bench.profiled(gateway, label, () =>
    joiner.ask("storm", { ...size, port: gateway.port }),
  );
  const cores = (cpuMs(gateway.pid) - beforeMs) / result.tookMs;
  bench.note(
    `D1 ${keysFile === "" ? "without keys" : "with tokens"}: ${result.joined} joined, ${result.failed} failed, ` +
      `${Math.round((result.joined * 1000) / result.tookMs)} joins/s, hello p50 ${result.p50Ms.toFixed(1)} ms, ` +
      `p99 ${result.p99Ms.toFixed(1)} ms, max ${result.maxMs.toFixed(1)} ms; gateway ${cores.toFixed(2)} cores`,
  );
  return { ...result, cores };
}

function report(
  bench: Bench,
  {
    size,
    open,
    keyed,
  }: { readonly size: Size; readonly open: readonly Storm[]; readonly keyed: readonly Storm[] },
): void {
  const p99Of = (storms: readonly Storm[]): number => median(storms.map(({ p99Ms }) => p99Ms));
  const failed = keyed.reduce((total, one) => total + one.failed, 0);
  bench.row({
    figure: `D1 hello at ${size.joinsPerSecond} joins a second with tokens, p99`,
    measured:
      failed === 0 ? `${p99Of(keyed).toFixed(1)} ms` : `${p99Of(keyed).toFixed(1)} ms, ${failed} failed`,
    baseline: `${p99Of(open).toFixed(1)} ms (without keys)`,
    ratio: (p99Of(keyed) / p99Of(open)).toFixed(2),
    target: `<= ${TARGET_P99_MS} ms, none failed`,
    isOk: failed === 0 && p99Of(keyed) <= TARGET_P99_MS,
  });
  const coresOf = (storms: readonly Storm[]): number => median(storms.map(({ cores }) => cores));
  bench.row({
    figure: "D1 cores of the gateway in that storm",
    measured: coresOf(keyed).toFixed(2),
    baseline: `${coresOf(open).toFixed(2)} (without keys)`,
    ratio: (coresOf(keyed) / coresOf(open)).toFixed(2),
    target: "<= 1",
    isOk: coresOf(keyed) <= 1,
  });
}

async function measureChecks(bench: Bench, { checks, rounds }: Size): Promise<void> {
  const load = (path: string): Promise<unknown> => import(new URL(path, bench.options.distUrl).href);
  const { Access } = (await load("access/access.js")) as AccessModule;
  const { readKeys } = (await load("access/keys.js")) as KeysModule;
  const { signJwt } = (await load("access/jwt.js")) as JwtModule;
  for (const algorithm of ["HS256", "ES256", "EdDSA"] as const) {
    const { entry, signing } = keyFor(algorithm);
    const ring = readKeys(JSON.stringify({ keys: [{ id: KEY_ID, algorithm, ...entry }] }));
    const access = new Access({ keys: () => ring, nowMs: () => Date.now(), takesTokensInUrl: false });
    const tokens = Array.from({ length: checks }, (_, index) =>
      signJwt(claimsOf(`client-${index}`), { algorithm, key: signing }, KEY_ID),
    );
    const samples: number[] = [];
    // The first round compiles.
    for (let round = 0; round <= rounds + 1; round += 1) {
      const before = process.cpuUsage();
      for (const credential of tokens) access.identify({ credential, place: "header", origin: "" });
      const { user, system } = process.cpuUsage(before);
      if (round > 0) samples.push((user + system) / checks);
    }
    const us = median(samples);
    bench.row({
      figure: `D1 check of a token, ${algorithm}`,
      measured: `${us.toFixed(1)} us`,
      baseline: "",
      ratio: "",
      target: `<= ${TARGET_CHECK_US} us`,
      isOk: us <= TARGET_CHECK_US,
    });
  }
}

function claimsOf(subject: string) {
  const vw = { sessions: ["storm-*"], allow: ["open", "speak", "listen"] };
  return { aud: "voicewire", sub: subject, exp: Math.floor(Date.now() / 1000) + 3600, vw };
}

/** What its entry of the key file has, and the key that signs. */
function keyFor(algorithm: Algorithm) {
  if (algorithm === "HS256") {
    return { entry: { secret: SECRET }, signing: createSecretKey(Buffer.from(SECRET, "base64url")) };
  }
  const { publicKey, privateKey } =
    algorithm === "ES256"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : generateKeyPairSync("ed25519");
  return {
    entry: { public_key: publicKey.export({ type: "spki", format: "pem" }).toString() },
    signing: privateKey,
  };
}
