/** Composition root: builds every part of a gateway by hand and takes it down again. Nothing else is wired here. */
import { fileURLToPath } from "node:url";
import { InsecureWarning, isInsecure } from "./access/binding.ts";
import { createDoor, type Door } from "./access/door.ts";
import { OriginRules } from "./access/origin-rules.ts";
import { createOpusPool } from "./audio/codecs/opus-pool.ts";
import type { Bus } from "./cluster/bus/bus.ts";
import { Cluster } from "./cluster/cluster.ts";
import { handOverAll } from "./cluster/takeover/hand-over.ts";
import type { Config } from "./config.ts";
import { Pacer } from "./delivery/pacer.ts";
import { GatewayError, toGatewayError } from "./errors.ts";
import { BlockPool } from "./kit/block-pool.ts";
import { ByteRoom } from "./kit/byte-room.ts";
import { type Clock, sleep, systemClock } from "./kit/clock.ts";
import { listenUrl } from "./kit/listen-url.ts";
import type { Logger } from "./kit/log.ts";
import { type Counters, createCounters } from "./metrics/counters.ts";
import { createExposition } from "./metrics/prometheus.ts";
import { type AudioSocketServer, startAudioSocket } from "./server/carriers/audiosocket.ts";
import { AudioSocketTickets } from "./server/carriers/audiosocket-tickets.ts";
import { CarrierAuth } from "./server/carriers/carrier-auth.ts";
import { readCarrierRules } from "./server/carriers/carrier-rules.ts";
import { readNetworks, readPeerList } from "./server/carriers/rtp-networks.ts";
import { RtpPorts, readPortRange } from "./server/carriers/rtp-routes.ts";
import type { ListeningPort } from "./server/listen.ts";
import { startOperations, type UpstreamState } from "./server/operations.ts";
import { PassedPaths } from "./server/proxy/proxy-paths.ts";
import { VoiceNames } from "./server/proxy/voice-names.ts";
import { farCalls } from "./server/relayed/far-calls.ts";
import { startServer } from "./server/server.ts";
import { FairScheduler } from "./server/sockets/fair-scheduler.ts";
import { inboxBytes } from "./server/sockets/inbox.ts";
import { type Certificate, certificateFiles } from "./server/tls/certificate.ts";
import { startWyoming, type WyomingServer } from "./server/wyoming/wyoming-server.ts";
import { AlignmentPool } from "./service/alignment/alignment-pool.ts";
import { languageVoicesOf } from "./session/language-voices.ts";
import { SESSION_BOUNDS } from "./session/ports.ts";
import { NO_REGISTER, Sessions } from "./session/sessions.ts";
import { textDefaultsOf } from "./session/text-defaults.ts";
import { mustBeLoudness, VoiceLoudness } from "./session/voice-loudness.ts";
import { Calls } from "./telephony/calls.ts";
import { PhraseCache } from "./upstream/cache/phrase-cache.ts";
import { createUpstream, type UpstreamClient } from "./upstream/client.ts";
import { defaultVoice } from "./upstream/default-voice.ts";
import type { ServiceConfig } from "./upstream/services/service-config.ts";
import { createServiceUpstream } from "./upstream/services/services.ts";
import { UpstreamRouter } from "./upstream/upstream-router.ts";
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
  /** Clients may ask the upstream to fail, by `x-voicewire-fault`: for the embedded service. Default false. */
  readonly passesFaults?: boolean;
  /** The embedded speech service, where that is the upstream. */
  readonly service?: { readonly hangs: number } | undefined;
  readonly log: Logger;
  /** Who did what with which key or token; `log` where not given. */
  readonly auditLog?: Logger;
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
  /** Of the operations port; null where there is none. */
  readonly opsUrl: string | null;
  /** That new connections get; null without TLS. */
  certificate(): Certificate | null;
  readonly counters: Counters;
  /** Nodes that live, this one among them, and sessions of others that have gone on here; null: it is alone. */
  cluster(): { readonly alive: number; readonly takenOver: number } | null;
  /** Prometheus text. */
  metrics(): Promise<string>;
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
  const { config, log, watchMs } = options;
  const clock = options.clock ?? systemClock;
  const counters = createCounters();
  const rtpPortRange = readPortRange(config.rtpPorts);
  const rtpPeers = readPeerList(config.rtpPeers);
  const audioSocketAllow = readNetworks(config.audiosocketAllow, "audiosocket-allow");
  const wyomingAllow = readNetworks(config.wyomingAllow, "wyoming-allow");
  const carrierRules = readCarrierRules(config);
  const door = createDoor({
    ...config,
    log,
    auditLogger: options.auditLog ?? log,
    clock,
    watchMs,
    refusals: counters.refusals,
    otherNodes: () => cluster,
  });
  begun.add(() => door.close());
  const passedPaths = new PassedPaths(config.proxyPaths);
  const tlsFiles = certificateFiles(config);
  const origins = new OriginRules({ ...config, isTls: tlsFiles !== null });
  const opsOrigins = new OriginRules({ ...config, host: config.opsHost });
  const pacer = new Pacer(clock, (nowMs) => cluster?.isHeld(nowMs) === true);
  begun.add(() => pacer.close());
  const scheduler = new FairScheduler({
    clock,
    counters,
    room: door.limits.received,
    between: () => pacer.catchUp(),
  });
  const blocks = new BlockPool();
  const asking = {
    maxQueued: config.upstreamQueue,
    timeoutMs: config.upstreamTimeoutMs,
    patienceMs: config.upstreamPatienceMs,
    onRead: () => pacer.catchUp(),
    log,
    clock,
  };
  const { voices = [] } = options;
  const ownVoices = new Set(voices.map(({ name }) => name));
  const first = createUpstream({
    ...asking,
    baseUrl: options.upstreamBaseUrl,
    key: options.upstreamKey,
    maxConnections: config.upstreamConnections,
    failoverMs: config.upstreamFailoverMs,
    hasSubstitutes: voices.length > 0,
  });
  const services = (options.services ?? []).map((service) => createServiceUpstream(service, asking));
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
      ? new PhraseCache({ upstream, maxBytes: config.phraseCacheMb * 1024 * 1024, clock })
      : null;
  begun.add(() => phrases?.close());
  const opusPool = await createOpusPool({
    workers: config.opusWorkers,
    bitrateKbps: Number(config.opusBitrateKbps),
  });
  begun.add(() => opusPool.close());
  const aligner = new AlignmentPool({ log });
  begun.add(() => aligner.close());
  const tuning = {
    ...config,
    ...SESSION_BOUNDS,
    maxInboxBytes: inboxBytes(config),
    languageVoices: languageVoicesOf(config.voices),
    textDefaults: textDefaultsOf(config),
    ownVoices,
  };
  mustBeLoudness(config.loudnessLufs);
  const sounds = new ByteRoom(config.soundsMb * 1024 * 1024);
  const voice = defaultVoice(upstream, config.voice);
  const sessions = new Sessions(
    {
      clock,
      pacer,
      upstream: phrases ?? upstream,
      opusPool,
      aligner,
      blocks,
      log,
      counters,
      tuning,
      loudness: new VoiceLoudness(),
      sounds,
      server: SERVER,
      defaultVoice: voice,
    },
    config.maxSessions,
    () => cluster ?? NO_REGISTER,
  );
  const cluster =
    options.cluster === undefined
      ? null
      : await joinCluster(options.cluster, sessions, { begun, clock, log, config, counters });
  await cluster?.shareUsage(
    door.limits.share(),
    config.upstreamTotal === 0
      ? null
      : {
          total: config.upstreamTotal,
          stats: () => first.stats(),
          limitOpen: (max) => first.limitOpen(max),
        },
  );
  const calls = new Calls({
    sessions,
    clock,
    log,
    maxCalls: config.maxCalls,
    far: cluster === null ? null : farCalls(cluster),
  });
  const { host, maxMessageBytes } = config;
  const carrierAuth = new CarrierAuth({ rules: carrierRules, door, clock });
  const audioSocketTickets = new AudioSocketTickets({
    carrierAuth,
    clock,
    host,
    port: config.audiosocketPort,
    maxTickets: config.maxCalls,
    maxMessageBytes,
  });
  const rtpPorts = new RtpPorts({
    carrierAuth,
    calls,
    pacer,
    clock,
    log,
    host,
    maxMessageBytes,
    rtpPorts: rtpPortRange,
    peers: rtpPeers,
    allowsListenOnly: config.rtpListenOnly,
    proxyTrust: door.proxyTrust,
    cluster,
  });
  begun.add(() => rtpPorts.close());
  let audioSocket: AudioSocketServer | null = null;
  let operations: ListeningPort | null = null;
  const insecure = isInsecure(config) ? new InsecureWarning({ host, log, clock }) : null;
  begun.add(() => insecure?.close());
  const server = await startServer({
    cluster,
    sessions,
    log,
    host,
    origins,
    door,
    port: config.port,
    isPortShared: options.isPortShared ?? false,
    tls: tlsFiles === null ? null : { files: tlsFiles, hstsSeconds: config.hstsSeconds, watchMs },
    calls,
    carrierAuth,
    callPorts: [rtpPorts, audioSocketTickets],
    vendor: {
      upstream: phrases ?? upstream,
      get: (path) => upstream.get(path),
      clock,
      counters,
      maxSockets: config.maxListeners,
      firstAudioMs: config.firstAudioMs,
      defaultModel: config.model,
      ownVoices,
    },
    defaults: tuning,
    maxMessageBytes,
    maxOutboxBytes: config.maxOutboxBytes,
    idleSeconds: config.idleSeconds,
    clock,
    counters,
    scheduler,
    maxInboxBytes: tuning.maxInboxBytes,
    version: VERSION,
    pageFolder: options.pageFolder ?? fileURLToPath(new URL("./page", import.meta.url)),
    passesFaults: options.passesFaults ?? false,
    passedPaths,
    forward: (request, handlers) => upstream.forward(request, handlers),
    maxUploadsPerClient: config.maxUploadsPerClient,
    proxyTrust: door.proxyTrust,
  });
  begun.add(() => {
    server.stopListening();
    server.close();
  });
  const exposition = createExposition(counters, {
    sessions: () => sessions.count,
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
    }),
    isInsecure: insecure !== null,
    cluster: () => cluster?.figures ?? null,
    serviceHangs: () => options.service?.hangs ?? null,
  });
  const metrics = async (): Promise<string> => `${await exposition()}\n${calls.stats.render()}`;
  if (config.opsPort !== "off") {
    operations = await startOperations({
      host: config.opsHost,
      port: config.opsPort,
      origins: opsOrigins,
      door,
      sessions,
      server: SERVER,
      metrics,
      upstream: () => upstreamState(upstream),
      details: () => (cluster === null ? {} : { bus: cluster.busState }),
    });
    begun.add(() => operations?.close());
  }
  if (config.audiosocketPort > 0) {
    audioSocket = await startAudioSocket({
      calls,
      pacer,
      clock,
      log,
      door,
      tickets: audioSocketTickets,
      carrierAuth,
      allow: audioSocketAllow,
      host,
      port: config.audiosocketPort,
    });
    begun.add(() => audioSocket?.close());
  }
  let wyoming: WyomingServer | null = null;
  if (config.wyomingPort > 0) {
    wyoming = await startWyoming({
      upstream: phrases ?? upstream,
      clock,
      counters,
      firstAudioMs: config.firstAudioMs,
      door,
      log,
      voices: new VoiceNames({ clock, get: (path) => upstream.get(path) }),
      defaultVoice: voice,
      defaultModel: config.model,
      allow: wyomingAllow,
      version: VERSION,
      host,
      port: config.wyomingPort,
    });
    begun.add(() => wyoming?.close());
  }
  // The first request should not pay for the connection; a service that is not up yet is no reason to stop.
  Promise.all([upstream.warm(), voice()]).catch((thrown: unknown) => {
    const { code, message } = toGatewayError(thrown);
    log.warn({ code, detail: message }, "Upstream is not usable yet");
  });

  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing ??= (async () => {
      server.stopListening();
      sessions.close(new GatewayError("draining", "Gateway is shutting down"));
      // Before the sockets: clients of other nodes' sessions hear why theirs ends.
      await Promise.all([cluster?.close(), begun.close()]);
    })();
    return closing;
  };
  const url = listenUrl({ scheme: tlsFiles === null ? "http" : "https", host, port: server.port });
  cluster?.listensAt(options.cluster?.nodeUrl ?? url);
  const settle = async (): Promise<void> => {
    cluster?.drain();
    sessions.leave();
    if (config.drainDelayMs > 0) await sleep(clock, config.drainDelayMs);
    server.stopListening();
    audioSocket?.stopListening();
    wyoming?.stopListening();
    if (cluster === null) await sessions.drain(config.drainMs);
    else {
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
  };
  return {
    port: server.port,
    url,
    opsUrl:
      operations === null ? null : listenUrl({ scheme: "http", host: config.opsHost, port: operations.port }),
    certificate: () => server.certificate(),
    counters,
    cluster: () =>
      cluster === null
        ? null
        : {
            alive: cluster.nodes.filter(({ state }) => state === "alive").length,
            takenOver: cluster.takeover.takenOver,
          },
    metrics,
    state: () => ({
      sessions: sessions.count,
      isDraining: sessions.isLeaving,
      upstream: upstreamState(upstream),
    }),
    settle,
    drain: async () => {
      await settle();
      await close();
    },
    close,
  };
}

interface Joining extends Pick<GatewayOptions, "log"> {
  readonly counters: Counters;
  readonly begun: Begun;
  readonly clock: Clock;
  readonly config: Config;
}

async function joinCluster(
  { nodeName, connect }: ClusterPlace,
  sessions: Sessions,
  { begun, clock, log, config, counters }: Joining,
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
      end: (sessionId, error) => {
        if (sessions.has(sessionId)) sessions.get(sessionId).close(error);
      },
    },
  });
  begun.add(() => cluster.close());
  return cluster;
}

function endSeconds(certificate: Certificate | null): number | null {
  return certificate === null ? null : certificate.endMs / 1000;
}

/** By reason: of the door, and of the queue in front of the upstream. */
function refusalsOf({ audit }: Door, upstream: UpstreamClient): ReadonlyMap<string, number> {
  const { refused } = upstream.stats();
  return refused === 0 ? audit.refusals : new Map([...audit.refusals, ["upstream_busy", refused]]);
}

function upstreamState(upstream: UpstreamClient): UpstreamState {
  const { open, queued } = upstream.stats();
  const regions = upstream.regions().map(({ name, isHealthy }) => ({ name, healthy: isHealthy }));
  return { open, queued, regions };
}
