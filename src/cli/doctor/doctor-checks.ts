/** The checks of `voicewire doctor`, in the order of what depends on what. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { openWays, remedyOf } from "../../access/binding.ts";
import { OriginRules } from "../../access/origin-rules.ts";
import { decodeAlaw, decodeUlaw, encodeAlaw, encodeUlaw } from "../../audio/codecs/g711.ts";
import { createMp3Encoder } from "../../audio/codecs/mp3.ts";
import { createOpusDecoder } from "../../audio/codecs/opus-decoder.ts";
import { OpusEncoder } from "../../audio/codecs/opus-encoder.ts";
import type { Config } from "../../config.ts";
import { type ErrorCode, GatewayError, toGatewayError } from "../../errors.ts";
import { silentLog } from "../../kit/log.ts";
import { workerUrl } from "../../kit/worker-url.ts";
import {
  type Certificate,
  certificateFault,
  certificateFiles,
  describeCertificate,
  isValid,
  readCertificate,
} from "../../server/tls/certificate.ts";
import type { Io } from "../io.ts";
import { areKeysReadable, outsideNames, READABLE_KEYS, strangersMay } from "../keys/strangers.ts";
import { fetchVoices } from "../say/voices.ts";
import { listenFailure, portAdvice } from "../serve/port-check.ts";
import { chooseUpstream, openUpstream, VOICE_PACKAGE_ADVICE } from "../serve/upstream.ts";
import { isGateway } from "../session/gateway-target.ts";
import type { ResolvedSettings } from "../settings.ts";
import { type CheckResult, resultWith } from "./check-result.ts";
import { checkCluster } from "./cluster-check.ts";
import { checkKeyFile } from "./key-file-check.ts";
import { checkUpstreams } from "./upstreams-check.ts";
import { checkVoiceModels } from "./voice-models-check.ts";

export type { CheckResult } from "./check-result.ts";

/** What one check found. */
export interface CheckContext {
  readonly io: Io;
  readonly config: Config;
}

export interface Check {
  readonly name: string;
  /** What to do where the check throws; of some, by the code of the error. */
  readonly fix?: string | ((code: ErrorCode) => string);
  run(context: CheckContext): Promise<CheckResult>;
}

const MIN_NODE = { major: 20, minor: 19 };
const TESTED_NODE = [20, 22];
/** It is there: on a busy machine it takes its time. */
const ANSWER_TIMEOUT_MS = 10_000;

export const CHECKS: readonly Check[] = [
  { name: "node", run: checkNode },
  {
    name: "server",
    run: checkServer,
    fix: fixOfServer,
  },
  { name: "codecs", run: checkCodecs, fix: "run `npm ci` again on this machine" },
  { name: "voice", run: checkVoicePackage },
  { name: "models", run: ({ config }) => checkVoiceModels(config) },
  { name: "page", run: checkPage },
  { name: "keys", run: checkKeys, fix: "correct the file; until then serve does not start (docs/access.md)" },
  { name: "access", run: checkAccess },
  { name: "tls", run: checkTls },
  { name: "port", run: checkPort },
  { name: "ops", run: checkOpsPort },
  {
    name: "cluster",
    run: ({ io, config }) => checkCluster(config, io.clock),
    fix: "see docs/cluster.md; serve without --cluster needs no nats-server",
  },
  { name: "upstream", run: checkUpstream },
  {
    name: "upstreams",
    run: ({ io, config }) => checkUpstreams(io, config),
    fix: "correct the file; until then serve does not start (docs/upstreams.md)",
  },
];

async function checkNode({ io }: CheckContext): Promise<CheckResult> {
  const { node, platform, arch } = io.runtime;
  const [major = 0, minor = 0] = node.replace(/^v/, "").split(".").map(Number);
  const detail = `${node} on ${platform} ${arch}`;
  if (major < MIN_NODE.major || (major === MIN_NODE.major && minor < MIN_NODE.minor)) {
    return { status: "fail", detail, fix: `install Node ${MIN_NODE.major}.${MIN_NODE.minor} or later` };
  }
  if (TESTED_NODE.includes(major)) return { status: "ok", detail };
  return { status: "warn", detail, fix: `voicewire is tested on Node ${TESTED_NODE.join(" and ")}` };
}

/** Which settings differ from their defaults, and where they come from; never their values. */
export function describeSettings(settings: ResolvedSettings): CheckResult {
  const changed = [...settings.origins].filter(([, origin]) => origin !== "default");
  if (changed.length === 0) return { status: "ok", detail: "all at their defaults" };
  const file = settings.file === undefined ? "" : `; file ${settings.file}`;
  return {
    status: "ok",
    detail: `${changed.map(([key, origin]) => `${key} (${origin})`).join(", ")}${file}`,
  };
}

/** Its settings may be wrong, and ports for calls and for Wyoming may be taken: the program itself is sound then. */
function fixOfServer(code: ErrorCode): string {
  if (code === "invalid_config")
    return "correct the setting; until then serve does not start (docs/configuration.md)";
  if (code === "port_in_use") return "choose another port, unless it is a gateway of yours that has it";
  return "run `npm ci` again on this machine; it needs glibc (no Alpine) and Node 20 or 22";
}

/** A real gateway on a free port: the native binary is loaded and listens. */
async function checkServer({ config }: CheckContext): Promise<CheckResult> {
  const { startGateway } = await import("../../gateway.ts");
  const gateway = await startGateway({
    config: {
      ...config,
      host: "127.0.0.1",
      port: 0,
      opsHost: "127.0.0.1",
      opsPort: 0,
      // They have a check of their own.
      keysFile: "",
      logLevel: "silent",
    },
    // Nothing is said, so nothing is asked of it.
    upstreamBaseUrl: "http://127.0.0.1:9",
    upstreamKey: "",
    log: silentLog,
  });
  try {
    const isUp = await isGateway(gateway.url, ANSWER_TIMEOUT_MS);
    return isUp
      ? { status: "ok", detail: "uWebSockets.js loads, the gateway listens and answers" }
      : {
          status: "fail",
          detail: "the gateway listens but does not answer",
          fix: "see serve --log-level debug",
        };
  } finally {
    await gateway.close();
  }
}

/** Gives a tone at 48 kHz to a codec and gets back what its decoder makes of it. */
type RoundTrip = (tone: Int16Array) => Promise<Int16Array>;

const RATE = 48_000;
const FRAME = 960;
const TONE_HZ = 440;
const AMPLITUDE = 12_000;

const CODECS: Readonly<Record<string, RoundTrip>> = {
  "mu-law": async (tone) => decodeUlaw(encodeUlaw(tone)),
  "A-law": async (tone) => decodeAlaw(encodeAlaw(tone)),
  Opus: async (tone) => {
    const encoder = new OpusEncoder({ sampleRate: RATE, bitrateKbps: 64, complexity: 5 });
    const decoder = createOpusDecoder();
    try {
      return joined(framesOf(tone).map((frame) => decoder.decode(encoder.encode(frame))));
    } finally {
      encoder.close();
      decoder.close();
    }
  },
};

async function checkCodecs(): Promise<CheckResult> {
  const tone = Int16Array.from({ length: FRAME * 20 }, (_, index) =>
    Math.round(AMPLITUDE * Math.sin((2 * Math.PI * TONE_HZ * index) / RATE)),
  );
  const broken: string[] = [];
  for (const [name, roundTrip] of Object.entries(CODECS)) {
    try {
      const loudness = rms(await roundTrip(tone));
      // The tone's own is 8485; half of it means that something is missing.
      if (loudness < AMPLITUDE * 0.35) broken.push(`${name} (comes out as silence)`);
    } catch (thrown) {
      broken.push(`${name} (${messageOf(thrown)})`);
    }
  }
  await checkMp3(tone).catch((thrown: unknown) => broken.push(`MP3 (${messageOf(thrown)})`));
  if (broken.length === 0) {
    return { status: "ok", detail: `${Object.keys(CODECS).join(", ")} encode and decode, MP3 encodes` };
  }
  return { status: "fail", detail: broken.join("; "), fix: "run `npm ci` again on this machine" };
}

/** The gateway writes MP3 and never reads it: whole frames of 128 kbit/s must come out. */
async function checkMp3(tone: Int16Array): Promise<void> {
  const encoder = await createMp3Encoder({ sampleRate: 44_100, bitrateKbps: 128 });
  const bytes = Buffer.concat([encoder.encode(tone), encoder.finish()]);
  // ISO 11172-3 section 2.4.1.3: a frame begins with eleven ones.
  const isFrame = bytes[0] === 0xff && ((bytes[1] ?? 0) & 0xe0) === 0xe0;
  if (!isFrame || bytes.length < (tone.length / 44_100) * 16_000) throw new Error("no frames come out");
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function framesOf(pcm: Int16Array): Int16Array[] {
  return Array.from({ length: Math.floor(pcm.length / FRAME) }, (_, index) =>
    pcm.slice(index * FRAME, (index + 1) * FRAME),
  );
}

function joined(parts: readonly Int16Array[]): Int16Array {
  return Int16Array.from(parts.flatMap((part) => [...part]));
}

/** Root mean square of the samples' middle half: codecs begin and end softly. */
function rms(pcm: Int16Array): number {
  const middle = pcm.subarray(pcm.length >> 2, pcm.length - (pcm.length >> 2));
  const sum = middle.reduce((total, sample) => total + sample * sample, 0);
  return Math.sqrt(sum / Math.max(1, middle.length));
}

async function checkVoicePackage({ config }: CheckContext): Promise<CheckResult> {
  const { isVoicePackageInstalled } = await import("../../service/voice/engine/package.ts");
  if (isVoicePackageInstalled()) return { status: "ok", detail: "the embedded voice is installed" };
  const isNeeded = config.upstreamRegion === "none" && config.upstreamUrl === "embedded";
  return {
    status: isNeeded ? "fail" : "warn",
    detail: "the embedded voice is not installed",
    fix: VOICE_PACKAGE_ADVICE,
  };
}

async function checkPage(): Promise<CheckResult> {
  const files = ["index.html", "main.js"].map(
    (name) => new URL(`../../page/${name}`, workerUrl("./doctor.ts", import.meta.url)),
  );
  const missing = files.find((file) => !existsSync(file));
  if (missing === undefined) return { status: "ok", detail: "the page is built" };
  return {
    status: "fail",
    detail: `the page is not built: ${fileURLToPath(missing)} is missing`,
    fix: "run `npm run build`",
  };
}

async function checkPort({ config: { host, port, tlsCert } }: CheckContext): Promise<CheckResult> {
  if (port === 0) return { status: "ok", detail: "0: the system picks a free one" };
  const scheme = tlsCert === "" ? "http" : "https";
  return await checkAddress({ scheme, host, port, flag: "port", whenFree: `${host}:${port} is free` });
}

/** Where /metrics is. */
async function checkOpsPort({
  config: { opsHost: host, opsPort: port },
}: CheckContext): Promise<CheckResult> {
  if (port === "off") return { status: "ok", detail: "off: there are no metrics" };
  if (port === 0) return { status: "ok", detail: `${host}:0: a free port, which serve prints at its start` };
  const whenFree = `http://${host}:${port}/metrics, once serve runs`;
  return await checkAddress({ scheme: "http", host, port, flag: "ops-port", whenFree });
}

interface AddressToCheck {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
  readonly flag: "port" | "ops-port";
  readonly whenFree: string;
}

/** A gateway that runs there already is as good as a free port. */
async function checkAddress({ scheme, host, port, flag, whenFree }: AddressToCheck): Promise<CheckResult> {
  const failure = await listenFailure({ host, port });
  if (failure === undefined) return { status: "ok", detail: whenFree };
  if (await isGateway(`${scheme}://127.0.0.1:${port}`)) {
    return { status: "ok", detail: `${host}:${port}: a voicewire gateway runs there` };
  }
  const detail = `${host}:${port} can't be listened on (${failure})`;
  return { status: "fail", detail, fix: portAdvice(failure, flag) };
}

/** What the certificate is for, and how long. */
async function checkTls({ config }: CheckContext): Promise<CheckResult> {
  const files = certificateFiles(config);
  if (files === null) return withoutTls(config);
  const certificate = readCertificate(files);
  const nowMs = Date.now();
  const fault = certificateFault(certificate, nowMs);
  const { modeForOthers: mode } = certificate;
  const worries = [
    ...(fault === null
      ? []
      : [
          {
            what: fault,
            fix: "renew the files of tls-cert and tls-key; a gateway that runs takes them without a restart",
          },
        ]),
    ...(mode === null
      ? []
      : [{ what: `others may read its key (${mode})`, fix: `chmod 600 ${files.keyFile}` }]),
  ];
  const refused = refusedNames(certificate, config);
  if (refused.length > 0) {
    const list = refused.join(",");
    const what = `clients that come by ${list} get 421 host_not_allowed`;
    worries.push({ what, fix: `set --allowed-hosts ${list}` });
  }
  const status = isValid(certificate, nowMs) ? "warn" : "fail";
  return resultWith(`https and wss: ${describeCertificate(certificate)}`, worries, status);
}

function withoutTls(config: Config): CheckResult {
  const detail = "off: the port speaks http and ws";
  if (!areKeysReadable(config)) {
    const { trustedProxies } = config;
    return {
      status: "ok",
      detail: trustedProxies === "" ? detail : `${detail}; TLS has to end at ${trustedProxies}`,
    };
  }
  const fix =
    "set --tls-cert and --tls-key; or let a reverse proxy end TLS, and name its address in --trusted-proxies";
  return resultWith(detail, [{ what: READABLE_KEYS, fix }]);
}

/** Names of the certificate that the gateway does not take as Host. */
function refusedNames({ names }: Certificate, config: Config): string[] {
  const rules = new OriginRules(config);
  return names.filter((name) => !name.includes("*") && !rules.takesHost(name));
}

async function checkKeys({ config }: CheckContext): Promise<CheckResult> {
  if (config.keysFile === "")
    return { status: "ok", detail: "none are set: the gateway asks nobody for one" };
  return checkKeyFile(config.keysFile, Date.now());
}

/** What a stranger could do. */
async function checkAccess({ config }: CheckContext): Promise<CheckResult> {
  const detail = strangersMay(config);
  const ways = openWays(config);
  if (ways.length > 0) {
    const remedy = remedyOf(ways);
    if (config.insecure) return { status: "warn", detail, fix: remedy };
    return { status: "fail", detail, fix: `serve refuses to start so: ${remedy}` };
  }
  if (outsideNames(config).length === 0) return { status: "ok", detail };
  return { status: "warn", detail, fix: "set --keys-file (`voicewire keys new app` makes one)" };
}

/** Asks every region for the voices: reachable, and with a key that is taken. The embedded service is started for that. */
async function checkUpstream(context: CheckContext): Promise<CheckResult> {
  const { io, config } = context;
  let kind: "embedded" | "remote" = "remote";
  try {
    kind = chooseUpstream(config).kind;
    const upstream = await openUpstream({
      config: { ...config, logLevel: "silent" },
      log: silentLog,
      clock: io.clock,
      env: io.env,
    });
    try {
      const { baseUrl, key } = upstream;
      const isKeyed = kind === "remote" && key !== "";
      if (typeof baseUrl !== "string") return await checkRegions(context, { baseUrls: baseUrl, key });
      return {
        status: "ok",
        detail: (await askRegion(io, { baseUrl, key, isKeyed, label: upstream.label })).detail,
      };
    } finally {
      await upstream.stop();
    }
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    return { status: "fail", detail: thrown.message, ...adviceFor(thrown, kind) };
  }
}

interface AskedRegion {
  readonly baseUrl: string;
  readonly key: string;
  readonly isKeyed: boolean;
  readonly label: string;
}

/** Throws as fetchVoices does. */
async function askRegion(
  io: Io,
  { baseUrl, key, isKeyed, label }: AskedRegion,
): Promise<{ readonly voiceIds: ReadonlySet<string>; readonly detail: string }> {
  const startedMs = io.clock.nowMs();
  const voices = await fetchVoices({ baseUrl, key });
  const tookMs = Math.round(io.clock.nowMs() - startedMs);
  const detail = `${label}: ${voices.length} voices in ${tookMs} ms${isKeyed ? ", key accepted" : ""}`;
  return { voiceIds: new Set(voices.map((voice) => voice.voice_id)), detail };
}

/** One that works is enough to speak with; that others do not is worth a warning, and so are voices that only some know. */
async function checkRegions(
  { io }: CheckContext,
  { baseUrls, key }: { readonly baseUrls: readonly string[]; readonly key: string },
): Promise<CheckResult> {
  const isKeyed = key !== "";
  const asked = await Promise.allSettled(
    baseUrls.map((baseUrl) => askRegion(io, { baseUrl, key, isKeyed, label: baseUrl })),
  );
  const works = asked.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const detail = asked
    .map((result) =>
      result.status === "fulfilled" ? result.value.detail : toGatewayError(result.reason).message,
    )
    .join("; ");
  if (works.length === 0)
    return { status: "fail", detail, fix: "check upstream-region or upstream-url, the key and the network" };
  if (works.length < asked.length) {
    return {
      status: "warn",
      detail,
      fix: "requests go to the regions that work; take the others out, or mend them",
    };
  }
  const [first, ...others] = works.map(({ voiceIds }) => [...voiceIds].sort().join(" "));
  if (others.every((voices) => voices === first)) return { status: "ok", detail };
  return {
    status: "warn",
    detail,
    fix: "the regions do not have the same voices: list only those that share an account",
  };
}

function adviceFor(error: GatewayError, kind: "embedded" | "remote"): { fix?: string } {
  if (error.code !== "upstream_unreachable") return {};
  return kind === "embedded"
    ? { fix: "run `voicewire service` alone to see what it says" }
    : { fix: "check upstream-url, the network and any proxy; or leave it out to use the embedded voice" };
}
