/** D1: what the door costs: a reconnect storm of clients with tokens, and the CPU of one token's check. */
import {
  createHmac,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  verify,
} from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bench, runBench } from "./kit/bench.ts";
import { cpuMs } from "./kit/cpu.ts";
import type { Fixture } from "./kit/fixture.ts";
import type { GreeterOptions, JoinerCommands, JoinerOptions, StormArgs, StormResult } from "./kit/joins.ts";
import { median } from "./kit/statistics.ts";

type AccessModule = typeof import("../src/access/access.ts");
type KeysModule = typeof import("../src/access/keys.ts");
type JwtModule = typeof import("../src/access/jwt.ts");
type Algorithm = import("../src/access/jwt.ts").Algorithm;

const TARGET_P99_MS = 100;
const TARGET_CHECK_US = 60;
/** CPU of a join with a token, over that of one without keys. */
const TARGET_DOOR_RATIO = 1.35;
const KEY_ID = "bench";
const SECRET = randomBytes(32).toString("base64url");
/** Each client of a storm joins so many times where clients come back. */
const COMES_BACK = 10;

/** What is stormed, and with which tokens. */
const KINDS = {
  bare: { label: "bare uWebSockets.js", hasKeys: false, comesBack: false },
  open: { label: "without keys", hasKeys: false, comesBack: false },
  fresh: { label: "with fresh tokens", hasKeys: true, comesBack: false },
  returning: { label: "with tokens that come back", hasKeys: true, comesBack: true },
} as const;
type Kind = keyof typeof KINDS;
const NAMES = Object.keys(KINDS) as Kind[];

runBench(async (bench) => {
  const size = {
    stormRate: bench.pick(5000, 200),
    calmRate: bench.pick(1000, 100),
    warmSeconds: bench.pick(4, 1),
    seconds: bench.pick(10, 1),
    sessions: bench.pick(100, 10),
    checks: bench.pick(5000, 200),
    rounds: bench.options.rounds,
  };
  bench.method(
    `${size.stormRate} joins a second for ${size.seconds} s over ${size.sessions} sessions, each a new TCP connection with an HS256 token of its own subject, that leaves with its hello;`,
    `bare uWebSockets.js that sends as long a hello, gateway without keys, with them, and with tokens that each come ${COMES_BACK} times, ${size.rounds} rounds in turn, medians;`,
    `from when each join was due to its hello. CPU: user + system of the server's process (/proc) for each join that got its hello, at ${size.calmRate} joins a second, behind ${size.warmSeconds} s of them to warm up.`,
    `Token check: process CPU of ${size.checks} tokens that are all different, after a round that compiles, medians of ${size.rounds + 1} rounds; beside node:crypto's check of the same signatures alone.`,
  );
  await measureStorms(bench, size);
  await measureChecks(bench, size);
});

type Size = Pick<StormArgs, "seconds" | "sessions"> & {
  /** Joins a second: of the storm, and with room to spare, where nobody gives up and what a join costs can be read. */
  readonly stormRate: number;
  readonly calmRate: number;
  readonly warmSeconds: number;
  readonly checks: number;
  readonly rounds: number;
};

interface Storm extends StormResult {
  /** CPU of the server for each join that got its hello. */
  readonly usAJoin: number;
}

type Storms = Record<Kind, Storm[]>;

async function measureStorms(bench: Bench, size: Size): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "voicewire-bench-"));
  try {
    const keysFile = join(folder, "keys.json");
    const entry = { id: KEY_ID, algorithm: "HS256", secret: SECRET };
    writeFileSync(keysFile, JSON.stringify({ keys: [entry] }), { mode: 0o600 });
    const calm: Storms = { bare: [], open: [], fresh: [], returning: [] };
    const storms: Storms = { bare: [], open: [], fresh: [], returning: [] };
    for (let round = 0; round < size.rounds; round += 1) {
      for (const kind of NAMES) {
        const results = await stormOne(bench, kind, { size, keysFile });
        calm[kind].push(results.calm);
        storms[kind].push(results.storm);
      }
    }
    reportCosts(bench, calm);
    reportStorms(bench, size, storms);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Storming {
  readonly size: Size;
  readonly keysFile: string;
}

interface Results {
  readonly calm: Storm;
  readonly storm: Storm;
}

async function stormOne(bench: Bench, kind: Kind, { size, keysFile }: Storming): Promise<Results> {
  if (kind === "bare") {
    const options: GreeterOptions = { distUrl: bench.options.distUrl };
    await using greeter = await bench.start("greeter", options);
    return await stormAt(bench, greeter, { kind, size });
  }
  await using upstream = await bench.startUpstream();
  await using gateway = await bench.startGateway("voicewire", upstream.port, {
    keysFile: KINDS[kind].hasKeys ? keysFile : "",
  });
  return await stormAt(bench, gateway, { kind, size });
}

async function stormAt(
  bench: Bench,
  server: Fixture<object>,
  { kind, size }: Pick<Storming, "size"> & { readonly kind: Kind },
): Promise<Results> {
  const { label, comesBack } = KINDS[kind];
  const options: JoinerOptions = { distUrl: bench.options.distUrl, secret: SECRET, keyId: KEY_ID };
  await using joiner = await bench.start<JoinerCommands>("joiner", options);
  const comes = async (joinsPerSecond: number, seconds: number): Promise<Storm> => {
    const { sessions } = size;
    const joins = joinsPerSecond * seconds;
    const clients = comesBack ? joins / COMES_BACK : joins;
    const beforeMs = cpuMs(server.pid);
    const result = await joiner.ask("storm", {
      port: server.port,
      joinsPerSecond,
      seconds,
      sessions,
      clients,
    });
    const serverMs = cpuMs(server.pid) - beforeMs;
    const usAJoin = (serverMs * 1000) / result.joined;
    bench.note(
      `D1 ${label}, ${joinsPerSecond} a second: ${result.joined} joined, ${result.failed} failed, ` +
        `${Math.round((result.joined * 1000) / result.tookMs)} joins/s, hello p50 ${result.p50Ms.toFixed(1)} ms, ` +
        `p99 ${result.p99Ms.toFixed(1)} ms, max ${result.maxMs.toFixed(1)} ms; server ${usAJoin.toFixed(0)} us a join, ` +
        `${(serverMs / result.tookMs).toFixed(2)} cores; joiner ${(result.joinerMs / result.tookMs).toFixed(2)} cores`,
    );
    return { ...result, usAJoin };
  };
  // What is compiled while it runs costs a few thousand joins.
  await comes(size.calmRate, size.warmSeconds);
  return await bench.profiled(server, `d1-${kind}`, async () => {
    const calm = await comes(size.calmRate, size.seconds);
    return { calm, storm: await comes(size.stormRate, size.seconds) };
  });
}

function medianOf(storms: readonly Storm[], read: (storm: Storm) => number): number {
  return median(storms.map(read));
}

function reportCosts(bench: Bench, calm: Storms): void {
  const against = [
    ["open", "bare", null],
    ["fresh", "open", TARGET_DOOR_RATIO],
    ["returning", "open", TARGET_DOOR_RATIO],
  ] as const;
  for (const [kind, baseline, target] of against) {
    const us = medianOf(calm[kind], ({ usAJoin }) => usAJoin);
    const baselineUs = medianOf(calm[baseline], ({ usAJoin }) => usAJoin);
    const ratio = us / baselineUs;
    bench.row({
      figure: `D1 CPU of a join ${KINDS[kind].label}`,
      measured: `${us.toFixed(0)} us`,
      baseline: `${baselineUs.toFixed(0)} us (${KINDS[baseline].label})`,
      ratio: ratio.toFixed(2),
      target: target === null ? "" : `<= ${target}x`,
      isOk: target === null ? null : ratio <= target,
    });
  }
}

function reportStorms(bench: Bench, { stormRate }: Size, storms: Storms): void {
  const bareMs = medianOf(storms.bare, ({ p99Ms }) => p99Ms);
  for (const kind of ["open", "fresh", "returning"] as const) {
    const failed = storms[kind].reduce((total, one) => total + one.failed, 0);
    const p99Ms = medianOf(storms[kind], (one) => one.p99Ms);
    bench.row({
      figure: `D1 hello at ${stormRate} joins a second ${KINDS[kind].label}, p99`,
      measured: `${p99Ms.toFixed(1)} ms${failed === 0 ? "" : `, ${failed} failed`}`,
      baseline: `${bareMs.toFixed(1)} ms (${KINDS.bare.label})`,
      ratio: (p99Ms / bareMs).toFixed(2),
      target: `<= ${TARGET_P99_MS} ms, none failed`,
      isOk: failed === 0 && p99Ms <= TARGET_P99_MS,
    });
  }
}

async function measureChecks(bench: Bench, { checks, rounds }: Size): Promise<void> {
  const load = (path: string): Promise<unknown> => import(new URL(path, bench.options.distUrl).href);
  const { Access } = (await load("access/access.js")) as AccessModule;
  const { readKeys } = (await load("access/keys.js")) as KeysModule;
  const { signJwt } = (await load("access/jwt.js")) as JwtModule;
  for (const algorithm of ["HS256", "ES256", "EdDSA"] as const) {
    const { entry, signing, checking } = keyFor(algorithm);
    const ring = readKeys(JSON.stringify({ keys: [{ id: KEY_ID, algorithm, ...entry }] }));
    const tokens = Array.from({ length: checks }, (_, index) =>
      signJwt(claimsOf(`client-${index}`), { algorithm, key: signing }, KEY_ID),
    );
    const signed = tokens.map((token) => signedPart(token));
    const [ours, alone]: [number[], number[]] = [[], []];
    // The first round compiles.
    for (let round = 0; round <= rounds + 1; round += 1) {
      // One that has seen none of the tokens.
      const access = new Access({ keys: () => ring, nowMs: () => Date.now(), takesTokensInUrl: false });
      const us = cpuUsOf(() => {
        for (const credential of tokens) access.identify({ credential, place: "header", origin: "" });
      });
      const aloneUs = cpuUsOf(() => {
        for (const { input, signature } of signed) checkAlone(algorithm, checking, input, signature);
      });
      if (round === 0) continue;
      ours.push(us / checks);
      alone.push(aloneUs / checks);
    }
    const us = median(ours);
    const aloneUs = median(alone);
    bench.row({
      figure: `D1 check of a token, ${algorithm}`,
      measured: `${us.toFixed(1)} us`,
      baseline: `${aloneUs.toFixed(1)} us (its signature alone)`,
      ratio: (us / aloneUs).toFixed(2),
      target: `<= ${TARGET_CHECK_US} us`,
      isOk: us <= TARGET_CHECK_US,
    });
  }
}

/** User + system of this process. */
function cpuUsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function signedPart(token: string): { readonly input: Buffer; readonly signature: Buffer } {
  const at = token.lastIndexOf(".");
  return {
    input: Buffer.from(token.slice(0, at), "latin1"),
    signature: Buffer.from(token.slice(at + 1), "base64url"),
  };
}

/** As little as Node can do. */
function checkAlone(algorithm: Algorithm, key: KeyObject, input: Buffer, signature: Buffer): void {
  const holds =
    algorithm === "HS256"
      ? createHmac("sha256", key).update(input).digest().equals(signature)
      : algorithm === "ES256"
        ? verify("sha256", input, { key, dsaEncoding: "ieee-p1363" }, signature)
        : verify(null, input, key, signature);
  if (!holds) throw new Error(`${algorithm}: a signature does not hold that was just made`);
}

function claimsOf(subject: string) {
  const vw = { sessions: ["storm-*"], allow: ["open", "speak", "listen"] };
  return { aud: "voicewire", sub: subject, exp: Math.floor(Date.now() / 1000) + 3600, vw };
}

/** What its entry of the key file has, the key that signs, and the one that checks. */
function keyFor(algorithm: Algorithm) {
  if (algorithm === "HS256") {
    const key = createSecretKey(Buffer.from(SECRET, "base64url"));
    return { entry: { secret: SECRET }, signing: key, checking: key };
  }
  const { publicKey, privateKey } =
    algorithm === "ES256"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : generateKeyPairSync("ed25519");
  const pem = publicKey.export({ type: "spki", format: "pem" }).toString();
  return { entry: { public_key: pem }, signing: privateKey, checking: createPublicKey(pem) };
}
