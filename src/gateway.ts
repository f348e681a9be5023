/** Composition root: builds every part of a gateway by hand and takes it down again. Nothing else is wired here. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AuditLog } from "./access/audit.ts";
import { InsecureWarning, openWays } from "./access/binding.ts";
import { createDoor, type Door } from "./access/door.ts";
import { OriginRules } from "./access/origin-rules.ts";
import { createOpusPool } from "./audio/codecs/opus-pool.ts";
import type { Bus } from "./cluster/bus/bus.ts";
import { Cluster } from "./cluster/cluster.ts";
import { shuttingDown } from "./cluster/come-back.ts";
import { handOverAll } from "./cluster/takeover/hand-over.ts";
import type { Config } from "./config.ts";
import { Pacer } from "./delivery/pacer.ts";
import { toGatewayError } from "./errors.ts";
import { BlockPool } from "./kit/block-pool.ts";
import { ByteRoom } from "./kit/byte-room.ts";
import { type Clock, sleep, systemClock } from "./kit/clock.ts";
import { listenUrl } from "./kit/listen-url.ts";
import type { Logger } from "./kit/log.ts";
import { Ledger } from "./ledger/ledger.ts";
import { openLedgerFile } from "./ledger/ledger-file.ts";
import { type Counters, createCounters } from "./metrics/counters.ts";
import { createExposition } from "./metrics/prometheus.ts";
import type { LiveUpstream } from "./protocol/live-view.ts";
import { Recordings } from "./recording/recordings.ts";
import { type AudioSocketServer, startAudioSocket } from "./server/carriers/audiosocket.ts";
import { AudioSocketTickets } from "./server/carriers/audiosocket-tickets.ts";
import { CarrierAuth } from "./server/carriers/carrier-auth.ts";
import { readCarrierRules } from "./server/carriers/carrier-rules.ts";
import { readNetworks, readPeerList } from "./server/carriers/rtp-networks.ts";
import { RtpPorts, readPortRange } from "./server/carriers/rtp-routes.ts";
import type { ListeningPort } from "./server/listen.ts";
import { GatewaySource } from "./server/live-view/gateway-source.ts";
import type { LiveSource } from "./server/live-view/live-source.ts";
import { startOperations, type UpstreamState } from "./server/operations.ts";
import { PassedPaths } from "./server/proxy/proxy-paths.ts";
import { VoiceNames } from "./server/proxy/voice-names.ts";
import { farCalls } from "./server/relayed/far-calls.ts";
import { type RunningServer, startServer } from "./server/server.ts";
import { FairScheduler } from "./server/sockets/fair-scheduler.ts";
import { inboxBytes } from "./server/sockets/inbox.ts";
import { type Certificate, certificateFiles } from "./server/tls/certificate.ts";
import { startWyoming, type WyomingServer } from "./server/wyoming/wyoming-server.ts";
import { AlignmentPool } from "./service/alignment/alignment-pool.ts";
import { languageVoicesOf } from "./session/language-voices.ts";
import { SESSION_BOUNDS } from "./session/session-deps.ts";
import { NO_REGISTER, type SessionRegister, Sessions } from "./session/sessions.ts";
import { textDefaultsOf } from "./session/text-defaults.ts";
import { mustBeLoudness, VoiceLoudness } from "./session/voice-loudness.ts";
import { Calls } from "./telephony/calls.ts";
import { SpanExporter } from "./tracing/span-exporter.ts";
import { Tracer } from "./tracing/tracer.ts";
import type { TracingSettings } from "./tracing/tracing-settings.ts";
import { PhraseCache } from "./upstream/cache/phrase-cache.ts";
import { defaultVoice } from "./upstream/default-voice.ts";
import type { RegionStats } from "./upstream/failover/region.ts";
import { createUpstream } from "./upstream/regional-upstream.ts";
import type { ServiceConfig } from "./upstream/services/service-config.ts";
import { createServiceUpstream } from "./upstream/services/services.ts";
import type { UpstreamClient } from "./upstream/upstream-client.ts";
import { UpstreamRouter } from "./upstream/upstream-router.ts";
import { offeredVoices } from "./upstream/voices/offered-voices.ts";
import type { VoiceConfig } from "./upstream/voices/voice-config.ts";
import { VERSION } from "./version.ts";

/** How the gateway names itself in `hello`, and in /healthz of the operations port. */
const SERVER = `voicewire/${VERSION}`;

export interface GatewayOptions {
  readonly config: Config;
  /** Base URL of the speech service, resolved from the settings; several in order of preference. */
  readonly upstreamBaseUrl: string | readonly string[];
  readonly upstreamKey: string;
  /** Other speech services beside it; default: none. */
  readonly services?: readonly ServiceConfig[];
  /** Voices that several of them stand for; default: none. */
  readonly voices?: readonly VoiceConfig[];
  /** Where traces go; default: nothing is traced. */
  readonly tracing?: TracingSettings | null;
  /**
   * The upstream is the embedded service: clients may ask it to fail, by `x-voicewire-fault`, and it is told how soon speech is
   * needed. Default false.
   */
  readonly passesFaults?: boolean;
  /** The embedded speech service, where that is the upstream. */
  readonly service?: { readonly hangs: number } | undefined;
  readonly log: Logger;
  /** Who did what with which key or token; `log` where not given. */
  readonly auditLog?: AuditLog;
  /** Folder of the built page; the one beside the compiled code where not given. */
  readonly pageFolder?: string;
  readonly clock?: Clock;
  /** How soon a change of the file of keys or of the certificate is seen; default: a second. */
  readonly watchMs?: number;
  /** Other nodes, over a bus that the gateway closes; default: it is alone. */
  readonly cluster?: ClusterPlace | undefined;
  /** Other processes of this program listen on the port, too. Default false. */
  readonly isPortShared?: boolean;
}

export interface ClusterPlace {
  readonly nodeName: string;
  /** Where clients reach this node; the address that it listens on where not given. */
  readonly nodeUrl?: string;
  readonly connect: () => Promise<Bus>;
}

export interface Gateway {
  readonly port: number;
  readonly url: string;
  /** URL of the operations port; null where there is none. */
  readonly opsUrl: string | null;
  /** That new connections get; null without TLS. */
  certificate(): Certificate | null;
  readonly counters: Counters;
  /** Nodes that live, this one among them, and sessions of others that have gone on here; null: it is alone. */
  cluster(): { readonly alive: number; readonly takenOver: number } | null;
  /** Prometheus text. */
  metrics(): Promise<string>;
  /** What the live view shows. */
  readonly liveView: LiveSource;
  state(): GatewayState;
  /** Takes nothing new, and resolves when speech has ended (at most `drainMs`); connections stay until `close`. */
  settle(): Promise<void>;
  /** Takes nothing new, waits for speech to end (at most `drainMs`), then closes. */
  drain(): Promise<void>;
  /** Ends everything now. Both may be called in any order, any number of times. */
  close(): Promise<void>;
}

export interface GatewayState {
  readonly sessions: number;
  readonly isDraining: boolean;
  readonly upstream: UpstreamState;
}

/** Rejects with invalid_config, port_in_use, encoder_failed; what had begun by then is ended. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const begun = new Begun();
  try {
    return await start(options, begun);
  } catch (thrown) {
    await begun.close();
    throw thrown;
  }
}

/** What runs, and ends in reverse order. */
class Begun {
  readonly #closers: (() => void | Promise<void>)[] = [];

  add(close: () => void | Promise<void>): void {
    this.#closers.push(close);
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await Promise.all(
      this.#closers
        .splice(0)
        .reverse()
        .map((close) => close()),
    );
  }
}

async function start(options: GatewayOptions, begun: Begun): Promise<Gateway> {
  const { config, log, auditLog = log, watchMs, clock = systemClock } = options;
  const rules = readRules(config);
  const counters = createCounters();
  const door = createDoor({
    ...config,
    log,
    auditLogger: auditLog,
    clock,
    watchMs,
    refusals: counters.refusals,
    otherNodes: () => cluster,
  });
  begun.add(() => door.close());
  const pacer = new Pacer(clock, (nowMs) => cluster?.isHeld(nowMs) === true);
  begun.add(() => pacer.close());
  const tracing = openTracing(options, { clock, log, begun });
  const ledger = openLedger(options, { clock, log });
  const recordings = openRecordings(config, { clock, log });
  const core = {
    options,
    config,
    log,
    clock,
    counters,
    begun,
    rules,
    door,
    pacer,
    tracing,
    ledger,
    recordings,
  };

  const upstreams = openUpstreams(core);
  const live = await openSessions(core, upstreams, () => cluster ?? NO_REGISTER);
  const { sessions } = live;
  const cluster: Cluster | null =
    options.cluster === undefined ? null : await joinCluster(options.cluster, sessions, core);
  await cluster?.shareUsage(door.limits.share(), sharedUpstream(config, upstreams));

  const calls = openCalls(core, sessions, cluster);
  const parts = { upstreams, live, cluster, calls };
  const ways = openWays(config);
  const insecure = ways.length > 0 ? new InsecureWarning({ ways, log, clock }) : null;
  begun.add(() => insecure?.close());
  const server = await listenToClients(core, parts);
  const metrics = metricsOf(core, parts, { server, isInsecure: insecure !== null });
  const liveView = liveSourceOf(core, parts);
  const operations = await listenToOperators(core, parts, { metrics, liveView });
  const audioSocket = await listenToAudioSocket(core, calls);
  const wyoming = await listenToWyoming(core, upstreams);
  warmUp(upstreams, log);

  const scheme = rules.tlsFiles === null ? "http" : "https";
  const url = listenUrl({ scheme, host: config.host, port: server.port });
  cluster?.listensAt(options.cluster?.nodeUrl ?? url);

  const settle = async (): Promise<void> => {
    cluster?.drain();
    sessions.leave();
    if (config.drainDelayMs > 0) await sleep(clock, config.drainDelayMs);
    for (const port of [server, audioSocket, wyoming]) port?.stopListening();
    await letSpeechEnd(core, parts);
  };
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing ??= (async () => {
      server.stopListening();
      sessions.close(shuttingDown);
      calls.calls.close(shuttingDown);
      // Before the sockets: clients of other nodes' sessions hear why theirs ends.
      await Promise.all([cluster?.close(), begun.close()]);
      // Last: what was just cut off has lines, too.
      await Promise.all([ledger?.close(), recordings?.close()]);
    })();
    return closing;
  };
  return {
    port: server.port,
    url,
    opsUrl:
      operations === null ? null : listenUrl({ scheme: "http", host: config.opsHost, port: operations.port }),
    certificate: () => server.certificate(),
    counters,
    cluster: () => (cluster === null ? null : nodesOf(cluster)),
    metrics,
    liveView,
    state: () => ({
      sessions: sessions.count,
      isDraining: sessions.isLeaving,
      upstream: upstreamState(upstreams.upstream),
    }),
    settle,
    drain: async () => {
      await settle();
      await close();
    },
    close,
  };
}

/** What all parts are built with. */
interface Core {
  readonly options: GatewayOptions;
  readonly config: Config;
  readonly log: Logger;
  readonly clock: Clock;
  readonly counters: Counters;
  readonly begun: Begun;
  readonly rules: ReturnType<typeof readRules>;
  readonly door: Door;
  readonly pacer: Pacer;
  /** null: nothing is traced. */
  readonly tracing: Tracing | null;
  /** null: it is not written down what speech costs. */
  readonly ledger: Ledger | null;
  /** null: no session is recorded. */
  readonly recordings: Recordings | null;
}

type Upstreams = ReturnType<typeof openUpstreams>;
type Live = Awaited<ReturnType<typeof openSessions>>;
type PhoneCalls = ReturnType<typeof openCalls>;

/** What is behind the ports. */
interface Parts {
  readonly upstreams: Upstreams;
  readonly live: Live;
  /** null: the gateway is alone. */
  readonly cluster: Cluster | null;
  readonly calls: PhoneCalls;
}

// ---- What is read before anything runs ---------------------------------------------------------------------------------

/** Settings that have a form of their own. Throws invalid_config. */
function readRules(config: Config) {
  const tlsFiles = certificateFiles(config);
  mustBeLoudness(config.loudnessLufs);
  return {
    rtpPorts: readPortRange(config.rtpPorts),
    rtpPeers: readPeerList(config.rtpPeers),
    audioSocketAllow: readNetworks(config.audiosocketAllow, "audiosocket-allow"),
    wyomingAllow: readNetworks(config.wyomingAllow, "wyoming-allow"),
    carriers: readCarrierRules(config),
    passedPaths: new PassedPaths(config.proxyPaths),
    tlsFiles,
    origins: new OriginRules({ ...config, isTls: tlsFiles !== null }),
    opsOrigins: new OriginRules({ ...config, host: config.opsHost }),
    languageVoices: languageVoicesOf(config.voices),
    textDefaults: textDefaultsOf(config),
  };
}

// ---- Who is told what was done -----------------------------------------------------------------------------------------

interface Tracing {
  readonly tracer: Tracer;
  readonly exporter: SpanExporter;
}

function openTracing(
  { tracing, cluster }: GatewayOptions,
  { clock, log, begun }: Pick<Core, "clock" | "log" | "begun">,
): Tracing | null {
  if (tracing === undefined || tracing === null) return null;
  const resource = {
    "service.version": VERSION,
    "service.instance.id": cluster?.nodeName ?? randomUUID(),
    ...tracing.resource,
  };
  const scope = { name: "voicewire", version: VERSION };
  const exporter = new SpanExporter({ ...tracing, resource, scope, clock, log });
  begun.add(() => exporter.close());
  const deliver = (json: string): void => exporter.push(json);
  return { exporter, tracer: new Tracer({ clock, sampler: tracing.sampler, wallMs: Date.now, deliver }) };
}

/** Throws invalid_config. */
function openLedger(
  { config: { ledger: path }, cluster, isPortShared = false }: GatewayOptions,
  { clock, log }: Pick<Core, "clock" | "log">,
): Ledger | null {
  if (path === "") return null;
  // Workers of two machines may have the same names.
  const node = [cluster === undefined || isPortShared ? hostname() : "", cluster?.nodeName ?? ""];
  const name = node.filter((part) => part !== "").join("-");
  return new Ledger({ ...openLedgerFile(path), node: name, clock, wallMs: Date.now, log });
}

/** Throws invalid_config. */
function openRecordings(
  { record: folder, recordText, recordMb: maxSessionMb, recordFolderMb: maxFolderMb }: Config,
  { clock, log }: Pick<Core, "clock" | "log">,
): Recordings | null {
  if (folder === "") return null;
  const isRedacted = recordText === "hash";
  return new Recordings({ folder, isRedacted, maxSessionMb, maxFolderMb, clock, wallMs: Date.now, log });
}

// ---- Who synthesizes ---------------------------------------------------------------------------------------------------

function openUpstreams({ options, config, log, clock, pacer, begun, ledger: opened }: Core) {
  const ledger = opened ?? undefined;
  const { services: serviceConfigs = [], voices = [] } = options;
  const asking = {
    maxQueued: config.upstreamQueue,
    timeoutMs: config.upstreamTimeoutMs,
    patienceMs: config.upstreamPatienceMs,
    onRead: () => pacer.wakeOverdue(),
    log,
    clock,
    ledger,
  };
  const first = createUpstream({
    ...asking,
    baseUrl: options.upstreamBaseUrl,
    key: options.upstreamKey,
    isEmbedded: options.passesFaults,
    maxConnections: config.upstreamConnections,
    failoverMs: config.upstreamFailoverMs,
    hasSubstitutes: voices.length > 0,
  });
  const services = serviceConfigs.map((service) => createServiceUpstream(service, asking));
  const router =
    services.length === 0 && voices.length === 0
      ? null
      : new UpstreamRouter({
          ...{ first, services, voices, clock, log },
          model: config.model,
          failoverMs: Math.min(config.upstreamFailoverMs, config.upstreamTimeoutMs),
        });
  const upstream = router ?? first;
  begun.add(() => upstream.close());
  const phrases =
    config.phraseCacheMb > 0
      ? new PhraseCache({ upstream, maxBytes: config.phraseCacheMb * 1024 * 1024, clock, ledger })
      : null;
  begun.add(() => phrases?.close());
  const ownVoices = new Set(voices.map(({ name }) => name));
  const voiceNames = new VoiceNames({ clock, get: (path) => upstream.get(path), ownVoices });
  return {
    /** The upstream of the settings alone. */
    first,
    router,
    upstream,
    phrases,
    /** Where speech is asked for. */
    speech: phrases ?? upstream,
    ownVoices,
    voiceNames,
    /** Every voice that may be named. */
    offered: () => offeredVoices({ first: () => voiceNames.list(), services, own: voices, clock }),
    defaultVoice: defaultVoice(upstream, config.voice),
  };
}

/** What all nodes have open at it together; null: each for itself. */
function sharedUpstream({ upstreamTotal }: Config, { first }: Upstreams) {
  if (upstreamTotal === 0) return null;
  return {
    total: upstreamTotal,
    stats: () => first.stats(),
    limitOpen: (max: number) => first.limitOpen(max),
  };
}

/** The first request should not pay for the connection; a service that is not up yet is no reason to stop. */
function warmUp({ upstream, defaultVoice }: Upstreams, log: Logger): void {
  Promise.all([upstream.warm(), defaultVoice()]).catch((thrown: unknown) => {
    const { code, message } = toGatewayError(thrown);
    log.warn({ code, detail: message }, "Upstream is not usable yet");
  });
}

// ---- Sessions, and where they are --------------------------------------------------------------------------------------

async function openSessions(
  { config, log, clock, counters, pacer, door, begun, rules, tracing, ledger, recordings }: Core,
  { speech, ownVoices, defaultVoice }: Upstreams,
  register: () => SessionRegister,
) {
  const opusPool = await createOpusPool({
    workers: config.opusWorkers,
    bitrateKbps: Number(config.opusBitrateKbps),
  });
  begun.add(() => opusPool.close());
  const aligner = new AlignmentPool({ log });
  begun.add(() => aligner.close());
  const { languageVoices, textDefaults } = rules;
  const settings = {
    ...config,
    ...SESSION_BOUNDS,
    maxInboxBytes: inboxBytes(config),
    languageVoices,
    textDefaults,
    ownVoices,
  };
  const blocks = new BlockPool();
  const sounds = new ByteRoom(config.soundsMb * 1024 * 1024);
  const scheduler = new FairScheduler({
    clock,
    counters,
    room: door.limits.received,
    between: () => pacer.wakeOverdue(),
  });
  const deps = {
    ...{ clock, pacer, upstream: speech, opusPool, aligner, blocks, log, counters, settings, sounds },
    loudness: new VoiceLoudness(),
    tracer: tracing?.tracer,
    ledger: ledger ?? undefined,
    server: SERVER,
    defaultVoice,
  };
  const sessions = new Sessions(deps, config.maxSessions, register, recordings);
  return { sessions, settings, blocks, sounds, scheduler };
}

async function joinCluster(
  { nodeName, connect }: ClusterPlace,
  sessions: Sessions,
  { begun, clock, log, config, counters }: Core,
): Promise<Cluster> {
  const bus = await connect();
  begun.add(() => bus.close());
  const { maxListeners: maxConnections, maxOutboxBytes } = config;
  const cluster = await Cluster.join({
    bus,
    nodeName,
    clock,
    log,
    slowBytes: maxOutboxBytes / 16,
    maxConnections,
    frames: () => counters.framesSent,
    sessions: {
      [Symbol.iterator]: () => sessions[Symbol.iterator](),
      find: (sessionId) => (sessions.has(sessionId) ? sessions.get(sessionId) : undefined),
      open: (sessionId) => void sessions.open(sessionId),
      get count() {
        return sessions.count;
      },
      has: (sessionId) => sessions.has(sessionId),
      leave: () => sessions.leave(),
      end: (sessionId, error) => {
        if (sessions.has(sessionId)) sessions.get(sessionId).close(error);
      },
    },
  });
  begun.add(() => cluster.close());
  return cluster;
}

/** Waits until speech has ended, or goes on at another node. */
async function letSpeechEnd(
  { config, clock }: Core,
  { live: { sessions }, cluster, calls: { calls } }: Parts,
): Promise<void> {
  if (cluster === null) {
    await sessions.drain(config.drainMs);
    return;
  }
  await handOverAll({
    clock,
    deadlineMs: config.drainMs,
    sessions: () => sessions,
    callCount: () => calls.stats.openCount,
    isTaken: () => cluster.takeover.hasBuddy,
    refuseMore: () => sessions.refuseMore(),
    move: (sessionId) => cluster.takeover.handOver(sessionId),
  });
}

function nodesOf({ nodes, takeover: { takenOver } }: Cluster) {
  return { alive: nodes.filter(({ state }) => state === "alive").length, takenOver };
}

// ---- Phone calls -------------------------------------------------------------------------------------------------------

function openCalls(
  { config, log, clock, counters, pacer, door, begun, rules }: Core,
  sessions: Sessions,
  cluster: Cluster | null,
) {
  const { host, maxCalls, maxMessageBytes } = config;
  const far = cluster === null ? null : farCalls(cluster);
  const calls = new Calls({
    ...{ sessions, clock, log, maxCalls, far },
    band: config.callBand,
    comfortNoiseDbfs: config.comfortNoiseDbfs,
    refusals: counters.refusals,
  });
  const carrierAuth = new CarrierAuth({ rules: rules.carriers, door, clock });
  const audioSocketTickets = new AudioSocketTickets({
    carrierAuth,
    clock,
    host,
    port: config.audiosocketPort,
    maxTickets: maxCalls,
    maxMessageBytes,
  });
  const rtpPorts = new RtpPorts({
    ...{ carrierAuth, calls, pacer, clock, log, host, maxMessageBytes, cluster },
    rtpPorts: rules.rtpPorts,
    peers: rules.rtpPeers,
    allowsListenOnly: config.rtpListenOnly,
    proxyTrust: door.proxyTrust,
  });
  begun.add(() => rtpPorts.close());
  return { calls, carrierAuth, audioSocketTickets, rtpPorts };
}

// ---- Ports -------------------------------------------------------------------------------------------------------------

async function listenToClients(core: Core, parts: Parts): Promise<RunningServer> {
  const { options, config, log, clock, counters, door, begun, rules, tracing, ledger } = core;
  const { upstream, speech, ownVoices, voiceNames: voices, offered } = parts.upstreams;
  const { sessions, settings, scheduler } = parts.live;
  const { calls, carrierAuth, rtpPorts, audioSocketTickets } = parts.calls;
  const { tlsFiles, origins, passedPaths } = rules;
  const { watchMs, isPortShared = false, passesFaults = false } = options;
  const server = await startServer({
    ...{ sessions, log, clock, counters, door, origins, scheduler, calls, carrierAuth },
    cluster: parts.cluster,
    host: config.host,
    port: config.port,
    isPortShared,
    tls: tlsFiles === null ? null : { files: tlsFiles, hstsSeconds: config.hstsSeconds, watchMs },
    callPorts: [rtpPorts, audioSocketTickets],
    vendor: {
      upstream: speech,
      voices,
      offered,
      clock,
      counters,
      maxSockets: config.maxListeners,
      firstAudioMs: config.firstAudioMs,
      defaultModel: config.model,
      ownVoices,
      tracer: tracing?.tracer,
    },
    tracer: tracing?.tracer,
    defaults: settings,
    maxMessageBytes: config.maxMessageBytes,
    maxOutboxBytes: config.maxOutboxBytes,
    maxInboxBytes: settings.maxInboxBytes,
    idleSeconds: config.idleSeconds,
    version: VERSION,
    pageFolder: options.pageFolder ?? fileURLToPath(new URL("./page", import.meta.url)),
    passesFaults,
    ledger: ledger ?? undefined,
    passedPaths,
    forward: (request, handlers) => upstream.forward(request, handlers),
    maxUploadsPerClient: config.maxUploadsPerClient,
    proxyTrust: door.proxyTrust,
  });
  begun.add(() => {
    server.stopListening();
    server.close();
  });
  return server;
}

/** null: there is no such port. */
async function listenToOperators(
  { options, config, clock, door, begun, rules, ledger, recordings }: Core,
  { upstreams: { upstream }, live: { sessions }, cluster }: Parts,
  { metrics, liveView }: Pick<Gateway, "metrics" | "liveView">,
): Promise<ListeningPort | null> {
  if (config.opsPort === "off") return null;
  const operations = await startOperations({
    host: config.opsHost,
    port: config.opsPort,
    origins: rules.opsOrigins,
    door,
    sessions,
    server: SERVER,
    metrics,
    liveView,
    clock,
    liveFolder: options.pageFolder === undefined ? undefined : join(options.pageFolder, "admin"),
    upstream: () => upstreamState(upstream),
    details: () => ({
      ...(cluster === null ? {} : { bus: cluster.isBusReached ? "up" : "lost" }),
      ...(ledger === null ? {} : { ledger: ledger.state }),
      ...(recordings === null ? {} : { recordings: recordings.state }),
    }),
  });
  begun.add(() => operations.close());
  return operations;
}

/** null: there is no such port. */
async function listenToAudioSocket(
  { config, log, clock, pacer, door, begun, rules }: Core,
  { calls, carrierAuth, audioSocketTickets }: PhoneCalls,
): Promise<AudioSocketServer | null> {
  if (config.audiosocketPort === 0) return null;
  const audioSocket = await startAudioSocket({
    ...{ calls, pacer, clock, log, door, carrierAuth },
    tickets: audioSocketTickets,
    allow: rules.audioSocketAllow,
    host: config.host,
    port: config.audiosocketPort,
  });
  begun.add(() => audioSocket.close());
  return audioSocket;
}

/** null: there is no such port. */
async function listenToWyoming(
  { config, log, clock, counters, door, begun, rules, tracing }: Core,
  { speech, ownVoices, voiceNames: voices, offered, defaultVoice }: Upstreams,
): Promise<WyomingServer | null> {
  if (config.wyomingPort === 0) return null;
  const wyoming = await startWyoming({
    ...{ clock, counters, door, log, voices, offered, ownVoices, defaultVoice, upstream: speech },
    firstAudioMs: config.firstAudioMs,
    defaultModel: config.model,
    allow: rules.wyomingAllow,
    version: VERSION,
    traced: tracing?.tracer.within(null),
    host: config.host,
    port: config.wyomingPort,
  });
  begun.add(() => wyoming.close());
  return wyoming;
}

// ---- What operators see ------------------------------------------------------------------------------------------------

/** Prometheus text. */
function metricsOf(
  { options, counters, door, tracing, ledger, recordings }: Core,
  { upstreams, live, cluster, calls }: Parts,
  { server, isInsecure }: { readonly server: RunningServer; readonly isInsecure: boolean },
): () => Promise<string> {
  const { upstream, router, phrases } = upstreams;
  const { sessions, scheduler, sounds, blocks } = live;
  const exposition = createExposition(counters, {
    versions: { version: VERSION, node: process.version },
    sessions: () => sessions.count,
    utterances: () => sessions.utteranceCount,
    sendQueues: () => sessions.sendQueues,
    isDraining: () => sessions.isLeaving,
    inboxBytes: () => scheduler.waitingBytes,
    receivedBytes: () => door.limits.received.usedBytes,
    queuedTextBytes: () => door.limits.queuedTextBytes,
    soundsBytes: () => sounds.usedBytes,
    waitingAudioBytes: () => blocks.lentBytes,
    recentAudioBytes: () => sessions.recentAudioBytes,
    upstreamOpen: () => upstream.stats().open,
    upstreamQueued: () => upstream.stats().queued,
    upstreamRegions: () => upstream.regions(),
    voices: () => router?.voices() ?? [],
    phrases: () => phrases?.stats() ?? null,
    certificateEnd: () => endSeconds(server.certificate()),
    door: () => ({
      refusals: refusalsOf(door, upstream),
      limits: door.limits.sizes,
      hasBrokenKeys: door.hasBrokenKeys,
      lostAuditLines: door.audit.lostLines,
    }),
    isInsecure,
    cluster: () => cluster?.figures ?? null,
    spans: () => tracing?.exporter.figures ?? null,
    ledger: () => ledger?.figures ?? null,
    recordings: () => recordings?.figures ?? null,
    serviceHangs: () => options.service?.hangs ?? null,
    serviceBehindMs: () => (options.passesFaults === true ? behindMsOf(upstream) : null),
  });
  return async () => `${await exposition()}\n${calls.calls.stats.render()}`;
}

/** What the live view shows of this process. */
function liveSourceOf(
  { options, clock, door, begun }: Core,
  { upstreams: { upstream }, live: { sessions }, cluster }: Parts,
): LiveSource {
  const own = options.cluster?.nodeName ?? hostname();
  const source = new GatewaySource({
    node: { name: own, version: VERSION },
    ...{ clock, door, sessions },
    upstreams: () => upstream.regions().map(liveUpstreamOf),
    otherNodes: () =>
      (cluster?.nodes ?? [])
        .filter(({ name }) => name !== own)
        .map(({ name, state, facts: { load, isDraining } }) => ({
          ...{ name, state, load },
          is_draining: isDraining,
        })),
  });
  begun.add(() => source.close());
  return source;
}

function liveUpstreamOf({ name, limits, ...stats }: RegionStats): LiveUpstream {
  // Models have limits of their own: only where there is one is it the region's.
  const [learned = null] = limits.length === 1 ? limits : [];
  return {
    name,
    is_healthy: stats.isHealthy,
    open: stats.open,
    queued: stats.queued,
    limit: Math.min(stats.maxOpen, learned?.limit ?? stats.maxOpen),
    requests: stats.requests,
    failovers: stats.failovers,
    errors_last_minute: stats.errorsLastMinute,
  };
}

function endSeconds(certificate: Certificate | null): number | null {
  return certificate === null ? null : certificate.endMs / 1000;
}

/** By reason: of the door, and of the queue in front of the upstream. That one has an alert, which sees a counter rise, not appear. */
function refusalsOf({ audit }: Door, upstream: UpstreamClient): ReadonlyMap<string, number> {
  return new Map([...audit.refusals, ["upstream_busy", upstream.stats().refused]]);
}

/** How late the region is that is worst off: the embedded service is one. */
function behindMsOf(upstream: UpstreamClient): number {
  return Math.max(...upstream.regions().map(({ behindMs }) => behindMs));
}

function upstreamState(upstream: UpstreamClient): UpstreamState {
  const { open, queued } = upstream.stats();
  const regions = upstream.regions().map(({ name, isHealthy }) => ({ name, healthy: isHealthy }));
  return { open, queued, regions };
}
