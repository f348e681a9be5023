/** The counters as Prometheus text; read when asked, so that counting costs an addition and nothing else. */
import { Counter, type CounterConfiguration, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { SentAudio } from "./audio-sent.ts";
import { COUNTERS, type CounterKey, type Counters } from "./counters.ts";

/** What is counted of one upstream region. There are at most eight, with twenty limits each. */
export interface RegionFigures {
  readonly name: string;
  readonly isHealthy: boolean;
  readonly requests: number;
  /** Requests that went on from here to another region. */
  readonly failovers: number;
  /** Requests that may be open at once, as learned from the answers, by group (model). */
  readonly limits: readonly { readonly group: string; readonly limit: number }[];
}

/** What is counted of a voice that several upstreams may speak, at one of them. */
interface VoiceUpstreamFigures {
  readonly voice: string;
  readonly upstream: string;
  /** Answers that were spoken. */
  readonly served: number;
  /** Utterances that went on from here to another one in the middle. */
  readonly switches: number;
}

/** What is counted of the phrase cache. */
interface PhraseFigures {
  /** Requests answered from memory; asked of the upstream; that shared one that was on its way. */
  readonly hits: number;
  readonly misses: number;
  readonly shared: number;
  readonly bytes: number;
  readonly entries: number;
  /** Texts that were answered from memory, or shared a request that was on its way. */
  readonly savedCharacters: number;
}

/** The process that starts workers has this metric, too: its operations port has an audit log. */
export const AUDIT_LINES_LOST = {
  name: "voicewire_audit_lines_lost_total",
  help: "Lines of the audit log that were lost: its file could not be written",
} as const;

/** What is counted of the door. */
interface DoorFigures {
  /** Reason -> how many were refused for it. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Callers and addresses of which something is counted. */
  readonly limits: { readonly callers: number; readonly addresses: number };
  /** The file of keys can't be read as it is now. */
  readonly hasBrokenKeys: boolean;
  /** Lines of the audit log that could not be written. */
  readonly lostAuditLines: number;
}

/** What is counted of the nodes of a cluster. */
export interface NodeFigures {
  /** State -> how many nodes are in it, as this one sees them. */
  readonly nodes: ReadonlyMap<string, number>;
  readonly isBusUp: boolean;
  /** Bytes that were published and have not reached the bus's server. */
  readonly waitingBytes: number;
  /** Sessions of this node; clients from here at other nodes; clients of other nodes here. */
  readonly owned: number;
  readonly arrived: number;
  readonly hosted: number;
  /** Sessions taken over from nodes that are gone, and by others from this one. */
  readonly takeovers: number;
  readonly lost: number;
  /** Sessions of other nodes that would go on here, and how many there was no room for. */
  readonly kept: { readonly sessions: number; readonly refused: number };
  readonly usedTokens: number;
  /** Claims that failed; of tokens also because another node had claimed it. */
  readonly refused: { readonly session: number; readonly token: number };
  /** What crossed the bus between this node and all others, since its start. */
  readonly relay: {
    readonly messagesIn: number;
    readonly bytesIn: number;
    readonly messagesOut: number;
    readonly bytesOut: number;
  };
}

/** What became of the spans that have ended. */
export interface SpanFigures {
  readonly sent: number;
  /** There was no room for them, or the collector could not be reached. */
  readonly dropped: number;
  /** The collector does not take them. */
  readonly refused: number;
  readonly waiting: number;
}

/** What waits in listeners' send queues. */
interface SendQueueFigures {
  readonly bytes: number;
  /** What waits for the listener that is worst off. */
  readonly worstBytes: number;
}

/** Lines of the ledger. */
export interface LedgerFigures {
  readonly written: number;
  /** There was no room for them. */
  readonly lost: number;
  readonly waiting: number;
  /** On its disk; null: not known. */
  readonly freeBytes: number | null;
}

/** Recordings of sessions. */
export interface RecordingFigures {
  readonly open: number;
  /** By why they ended. */
  readonly ended: ReadonlyMap<string, number>;
  readonly writtenBytes: number;
  readonly folderBytes: number;
}

interface Gauges {
  /** The program's, and that of Node. */
  readonly versions: { readonly version: string; readonly node: string };
  readonly sessions: () => number;
  /** Accepted, and not over. */
  readonly utterances: () => number;
  readonly sendQueues: () => SendQueueFigures;
  /** Nothing new is taken. */
  readonly isDraining: () => boolean;
  /** Messages that wait for their turn. */
  readonly inboxBytes: () => number;
  /** Bodies of requests that are not handled, and these messages. */
  readonly receivedBytes: () => number;
  /** Texts that are not spoken to their end, in all sessions. */
  readonly queuedTextBytes: () => number;
  /** Sounds that are not played to their end, and prepared speech, in all sessions. */
  readonly soundsBytes: () => number;
  /** Memory lent to G.711 and PCM of live sessions that has come and was not taken; Opus is not counted. */
  readonly waitingAudioBytes: () => number;
  /** Memory of audio at and behind the playhead of live sessions, from which `resume` goes on. */
  readonly recentAudioBytes: () => number;
  readonly upstreamOpen: () => number;
  readonly upstreamQueued: () => number;
  readonly upstreamRegions: () => readonly RegionFigures[];
  /** Default: there are none. */
  readonly voices?: () => readonly VoiceUpstreamFigures[];
  /** null where no phrases are cached. */
  readonly phrases: () => PhraseFigures | null;
  /** null where nothing is traced. Default: nothing is. */
  readonly spans?: () => SpanFigures | null;
  /** null where there is no ledger. Default: there is none. */
  readonly ledger?: () => LedgerFigures | null;
  /** null where nothing is recorded. Default: nothing is. */
  readonly recordings?: () => RecordingFigures | null;
  /** null where the gateway runs no speech service of its own. */
  readonly serviceHangs: () => number | null;
  /** How late it was with what is played, ms; null where there is none. Default: there is none. */
  readonly serviceBehindMs?: () => number | null;
  /** When the certificate that is shown ends, in Unix seconds; null without TLS. */
  readonly certificateEnd: () => number | null;
  /** What the door has refused, and what it counts. */
  readonly door: () => DoorFigures;
  /** What the node knows of the others; null, and by default: the gateway is alone. */
  readonly cluster?: () => NodeFigures | null;
  /** Other machines reach the gateway, and it asks for no key. */
  readonly isInsecure: boolean;
}

/** A label is no place for a text of any length that a client has made up. */
const MAX_LABEL_CHARS = 64;

/** Returns a function that renders the current values. */
export function createExposition(counters: Counters, gauges: Gauges): () => Promise<string> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const metric of metricsOf(counters, gauges)) register(registry, metric);
  return async () => {
    const texts = [registry.metrics(), counters.stages.render(), counters.histograms.render()];
    return (await Promise.all(texts)).join("\n");
  };
}

interface Metric {
  readonly kind: "counter" | "gauge";
  readonly name: string;
  readonly help: string;
  /** Default: none. */
  readonly labels?: readonly string[];
  /** The value now, or one for each of the labels' values. */
  readonly read: () => number | readonly Sample[];
}

interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

function metricsOf(counters: Counters, gauges: Gauges): Metric[] {
  const counted = (Object.keys(COUNTERS) as CounterKey[]).map((key): Metric => {
    const [name, help] = COUNTERS[key];
    return { kind: "counter", name, help, read: () => counters[key] };
  });
  return [
    ...counted,
    ...labelledCounters(counters, gauges),
    ...stateMetrics(gauges),
    {
      kind: "gauge",
      name: "voicewire_inbox_bytes",
      help: "Bytes of messages that wait for their turn",
      read: gauges.inboxBytes,
    },
    {
      kind: "gauge",
      name: "voicewire_received_bytes",
      help: "Bytes of requests and messages that have come and are not handled",
      read: gauges.receivedBytes,
    },
    {
      kind: "gauge",
      name: "voicewire_queued_text_bytes",
      help: "Memory of the texts of all clients that are not spoken to their end",
      read: gauges.queuedTextBytes,
    },
    {
      kind: "gauge",
      name: "voicewire_sounds_bytes",
      help: "Memory of sounds that are not played to their end, and of prepared speech",
      read: gauges.soundsBytes,
    },
    {
      kind: "gauge",
      name: "voicewire_waiting_audio_bytes",
      help: "Memory of audio (G.711 and PCM of live sessions) that has come from the upstream and was not taken",
      read: gauges.waitingAudioBytes,
    },
    {
      kind: "gauge",
      name: "voicewire_recent_audio_bytes",
      help: "Memory of audio that live sessions keep behind the playhead, for resume",
      read: gauges.recentAudioBytes,
    },
    {
      kind: "gauge",
      name: "voicewire_upstream_open",
      help: "Upstream requests open now",
      read: gauges.upstreamOpen,
    },
    {
      kind: "gauge",
      name: "voicewire_upstream_queued",
      help: "Upstream requests that wait for a connection",
      read: gauges.upstreamQueued,
    },
    {
      kind: "gauge",
      name: "voicewire_insecure",
      help: "1 where other machines reach the gateway and it asks for no key, else 0",
      read: () => Number(gauges.isInsecure),
    },
    ...doorMetrics(gauges.door),
    ...regionMetrics(gauges.upstreamRegions),
    ...voiceMetrics(gauges.voices ?? (() => [])),
    ...(gauges.phrases() === null ? [] : phraseMetrics(gauges.phrases)),
    ...(gauges.certificateEnd() === null ? [] : [certificateMetric(gauges.certificateEnd)]),
    ...clusterMetrics(gauges.cluster?.() ?? null, () => gauges.cluster?.() ?? null),
    ...spanMetrics(() => gauges.spans?.() ?? null),
    ...ledgerMetrics(() => gauges.ledger?.() ?? null),
    ...recordingMetrics(() => gauges.recordings?.() ?? null),
    ...(gauges.serviceHangs() === null ? [] : [hangMetric(gauges.serviceHangs)]),
    ...behindMetrics(gauges.serviceBehindMs),
  ];
}

/** What is counted under labels. */
function labelledCounters({ closes, audioSent, characters }: Counters, { phrases }: Gauges): Metric[] {
  const ofFormats = (value: (sent: Readonly<SentAudio>) => number) => () =>
    [...audioSent.byFormat].map(([format, sent]) => ({ labels: { format }, value: value(sent) }));
  return [
    {
      kind: "counter",
      name: "voicewire_socket_closes_total",
      help: "WebSockets of the public port that have closed, by their close code",
      labels: ["code"],
      read: () => [...closes.byCode].map(([code, value]) => ({ labels: { code }, value })),
    },
    {
      kind: "counter",
      name: "voicewire_audio_sent_bytes_total",
      help: "Bytes of frames handed to listeners, by format",
      labels: ["format"],
      read: ofFormats(({ bytes }) => bytes),
    },
    {
      kind: "counter",
      name: "voicewire_audio_sent_seconds_total",
      help: "Audio handed to listeners, each listener's counted, by format",
      labels: ["format"],
      read: ofFormats(({ ms }) => ms / 1000),
    },
    {
      kind: "counter",
      name: "voicewire_characters_total",
      help: "Characters of texts: accepted, billed by the upstream, heard, and answered from the phrase cache",
      labels: ["outcome"],
      read: () =>
        Object.entries({ ...characters, cached: phrases()?.savedCharacters ?? 0 }).map(
          ([outcome, value]) => ({
            labels: { outcome },
            value,
          }),
        ),
    },
  ];
}

/** How things stand now. */
function stateMetrics({ versions, sessions, utterances, sendQueues, isDraining }: Gauges): Metric[] {
  return [
    {
      kind: "gauge",
      name: "voicewire_build_info",
      help: "1; its labels say which program runs on which Node",
      labels: ["version", "node"],
      read: () => [{ labels: { ...versions }, value: 1 }],
    },
    { kind: "gauge", name: "voicewire_sessions", help: "Sessions open now", read: sessions },
    {
      kind: "gauge",
      name: "voicewire_utterances_in_flight",
      help: "Utterances that were accepted and are not over",
      read: utterances,
    },
    {
      kind: "gauge",
      name: "voicewire_send_queue_bytes",
      help: "Bytes that wait in the sockets of all listeners",
      read: () => sendQueues().bytes,
    },
    {
      kind: "gauge",
      name: "voicewire_send_queue_worst_bytes",
      help: "Bytes that wait in the socket of the slowest listener",
      read: () => sendQueues().worstBytes,
    },
    {
      kind: "gauge",
      name: "voicewire_draining",
      help: "1 where the gateway takes nothing new because it is to end, else 0",
      read: () => Number(isDraining()),
    },
  ];
}

function doorMetrics(read: () => DoorFigures): Metric[] {
  return [
    {
      kind: "counter",
      name: "voicewire_refused_total",
      help: "What the gateway itself has refused, closed or broken off, by reason",
      labels: ["reason"],
      read: () => [...read().refusals].map(([reason, value]) => ({ labels: { reason }, value })),
    },
    {
      kind: "gauge",
      name: "voicewire_limits_callers",
      help: "Keys, tenants, subjects and tokens of which something is counted for their limits",
      read: () => read().limits.callers,
    },
    {
      kind: "gauge",
      name: "voicewire_limits_addresses",
      help: "Client addresses of which something is counted for their limits",
      read: () => read().limits.addresses,
    },
    {
      kind: "gauge",
      name: "voicewire_keys_broken",
      help: "1 where the file of keys can't be read as it is now and those from before hold, else 0",
      read: () => Number(read().hasBrokenKeys),
    },
    {
      kind: "counter",
      name: AUDIT_LINES_LOST.name,
      help: AUDIT_LINES_LOST.help,
      read: () => read().lostAuditLines,
    },
  ];
}

function regionMetrics(read: () => readonly RegionFigures[]): Metric[] {
  const labels = ["region"];
  const ofEach = (value: (region: RegionFigures) => number) => () =>
    read().map((region) => ({ labels: { region: region.name }, value: value(region) }));
  return [
    {
      kind: "counter",
      name: "voicewire_upstream_region_requests_total",
      help: "Requests begun in an upstream region",
      labels,
      read: ofEach(({ requests }) => requests),
    },
    {
      kind: "counter",
      name: "voicewire_upstream_region_failovers_total",
      help: "Requests that went on from an upstream region to another one",
      labels,
      read: ofEach(({ failovers }) => failovers),
    },
    {
      kind: "gauge",
      name: "voicewire_upstream_region_healthy",
      help: "Whether an upstream region is fit to be asked (1) or not (0)",
      labels,
      read: ofEach(({ isHealthy }) => Number(isHealthy)),
    },
    {
      kind: "gauge",
      name: "voicewire_upstream_limit",
      help: "Requests of a model that may be open in an upstream region, as learned from its answers",
      labels: ["region", "group"],
      read: () =>
        read().flatMap(({ name, limits }) =>
          limits.map(({ group, limit }) => ({
            labels: { region: name, group: group.slice(0, MAX_LABEL_CHARS) },
            value: limit,
          })),
        ),
    },
  ];
}

function voiceMetrics(read: () => readonly VoiceUpstreamFigures[]): Metric[] {
  const ofEach = (value: (figures: VoiceUpstreamFigures) => number) => () =>
    read().map((figures) => ({
      labels: { voice: figures.voice, region: figures.upstream },
      value: value(figures),
    }));
  return [
    {
      kind: "counter",
      name: "voicewire_voice_served_total",
      help: "Answers for a voice of one's own that were spoken, by the upstream that gave them",
      labels: ["voice", "region"],
      read: ofEach(({ served }) => served),
    },
    {
      kind: "counter",
      name: "voicewire_voice_switches_total",
      help: "Utterances in a voice of one's own that another upstream took over in the middle, by the one that failed",
      labels: ["voice", "region"],
      read: ofEach(({ switches }) => switches),
    },
  ];
}

function spanMetrics(read: () => SpanFigures | null): Metric[] {
  if (read() === null) return [];
  return [
    {
      kind: "counter",
      name: "voicewire_spans_total",
      help: "Spans of traces that have ended, by what became of them",
      labels: ["outcome"],
      read: () => {
        const { sent = 0, dropped = 0, refused = 0 } = read() ?? {};
        return Object.entries({ sent, dropped, refused }).map(([outcome, value]) => ({
          labels: { outcome },
          value,
        }));
      },
    },
    {
      kind: "gauge",
      name: "voicewire_spans_waiting",
      help: "Spans that wait for the collector",
      read: () => read()?.waiting ?? 0,
    },
  ];
}

function ledgerMetrics(read: () => LedgerFigures | null): Metric[] {
  if (read() === null) return [];
  return [
    {
      kind: "counter",
      name: "voicewire_ledger_written_total",
      help: "Lines of the ledger that were written",
      read: () => read()?.written ?? 0,
    },
    {
      kind: "counter",
      name: "voicewire_ledger_lost_total",
      help: "Lines of the ledger that were lost: it could not be written, and too many waited",
      read: () => read()?.lost ?? 0,
    },
    {
      kind: "gauge",
      name: "voicewire_ledger_waiting",
      help: "Lines of the ledger that wait to be written",
      read: () => read()?.waiting ?? 0,
    },
    {
      kind: "gauge",
      name: "voicewire_ledger_free_bytes",
      help: "Room on the disk of the ledger, looked at once a minute; -1 where it is not known",
      read: () => read()?.freeBytes ?? -1,
    },
  ];
}

function recordingMetrics(read: () => RecordingFigures | null): Metric[] {
  if (read() === null) return [];
  return [
    {
      kind: "gauge",
      name: "voicewire_recordings_open",
      help: "Sessions that are being recorded",
      read: () => read()?.open ?? 0,
    },
    {
      kind: "counter",
      name: "voicewire_recordings_ended_total",
      help: "Recordings that ended, by why: all but closed, shutdown and zero_retention lack what came then",
      labels: ["reason"],
      read: () => [...(read()?.ended ?? [])].map(([reason, value]) => ({ labels: { reason }, value })),
    },
    {
      kind: "counter",
      name: "voicewire_recorded_bytes_total",
      help: "Bytes of recordings that were taken to be written",
      read: () => read()?.writtenBytes ?? 0,
    },
    {
      kind: "gauge",
      name: "voicewire_recordings_folder_bytes",
      help: "Size of all recordings in the folder, looked at every 5 s",
      read: () => read()?.folderBytes ?? 0,
    },
  ];
}

function phraseMetrics(read: () => PhraseFigures | null): Metric[] {
  return [
    {
      kind: "counter",
      name: "voicewire_phrases_total",
      help: "Phrases asked of the cache, by what came of it",
      labels: ["outcome"],
      read: () => {
        const { hits = 0, misses = 0, shared = 0 } = read() ?? {};
        return [
          { labels: { outcome: "hit" }, value: hits },
          { labels: { outcome: "miss" }, value: misses },
          { labels: { outcome: "shared" }, value: shared },
        ];
      },
    },
    {
      kind: "gauge",
      name: "voicewire_phrase_bytes",
      help: "Memory that cached phrases take",
      read: () => read()?.bytes ?? 0,
    },
    {
      kind: "gauge",
      name: "voicewire_phrases",
      help: "Phrases in the cache",
      read: () => read()?.entries ?? 0,
    },
  ];
}

const STATES = ["alive", "suspect", "gone"] as const;

/** `now`: null where the gateway is alone. */
function clusterMetrics(now: NodeFigures | null, read: () => NodeFigures | null): Metric[] {
  if (now === null) return [];
  const of =
    <T>(value: (figures: NodeFigures) => T) =>
    (): T =>
      value(read() ?? now);
  const inAndOut = (value: (figures: NodeFigures) => readonly [incoming: number, outgoing: number]) =>
    of((figures): readonly Sample[] => {
      const [incoming, outgoing] = value(figures);
      return [
        { labels: { direction: "in" }, value: incoming },
        { labels: { direction: "out" }, value: outgoing },
      ];
    });
  return [
    {
      kind: "gauge",
      name: "voicewire_cluster_nodes",
      help: "Nodes of the cluster by their state, as this one sees them",
      labels: ["state"],
      read: of(({ nodes }) => STATES.map((state) => ({ labels: { state }, value: nodes.get(state) ?? 0 }))),
    },
    {
      kind: "gauge",
      name: "voicewire_cluster_bus_up",
      help: "Whether the bus between the nodes can be reached (1) or not (0)",
      read: of(({ isBusUp }) => Number(isBusUp)),
    },
    {
      kind: "gauge",
      name: "voicewire_cluster_bus_waiting_bytes",
      help: "Bytes of messages that have not reached the bus's server",
      read: of(({ waitingBytes }) => waitingBytes),
    },
    {
      kind: "gauge",
      name: "voicewire_cluster_sessions_owned",
      help: "Sessions that this node owns in the cluster's store",
      read: of(({ owned }) => owned),
    },
    {
      kind: "gauge",
      name: "voicewire_cluster_relayed_connections",
      help: "Clients that arrived here and whose session another node has (arrived), and the other way round (hosted)",
      labels: ["side"],
      read: of(({ arrived, hosted }) => [
        { labels: { side: "arrived" }, value: arrived },
        { labels: { side: "hosted" }, value: hosted },
      ]),
    },
    {
      kind: "counter",
      name: "voicewire_cluster_relay_messages_total",
      help: "Messages of relayed clients between this node and others",
      labels: ["direction"],
      read: inAndOut(({ relay }) => [relay.messagesIn, relay.messagesOut]),
    },
    {
      kind: "counter",
      name: "voicewire_cluster_relay_bytes_total",
      help: "Bytes of these messages",
      labels: ["direction"],
      read: inAndOut(({ relay }) => [relay.bytesIn, relay.bytesOut]),
    },
    {
      kind: "counter",
      name: "voicewire_cluster_claims_refused_total",
      help: "Claims of sessions that failed, and of single-use tokens that failed or that another node had used",
      labels: ["what"],
      read: of(({ refused }) => [
        { labels: { what: "session" }, value: refused.session },
        { labels: { what: "token" }, value: refused.token },
      ]),
    },
    {
      kind: "counter",
      name: "voicewire_cluster_takeovers_total",
      help: "Sessions that this node took over from nodes that are gone",
      read: of(({ takeovers }) => takeovers),
    },
    {
      kind: "counter",
      name: "voicewire_cluster_sessions_lost_total",
      help: "Sessions that ended here because another node owns them now",
      read: of(({ lost }) => lost),
    },
    {
      kind: "gauge",
      name: "voicewire_cluster_sessions_kept",
      help: "Sessions of other nodes that go on here when their node dies",
      read: of(({ kept }) => kept.sessions),
    },
    {
      kind: "counter",
      name: "voicewire_cluster_sessions_not_kept_total",
      help: "Sessions of other nodes for whose texts there was no room here",
      read: of(({ kept }) => kept.refused),
    },
    {
      kind: "gauge",
      name: "voicewire_cluster_used_tokens",
      help: "Single-use tokens that were used at this node and have not expired",
      read: of(({ usedTokens }) => usedTokens),
    },
  ];
}

function certificateMetric(readEnd: () => number | null): Metric {
  return {
    kind: "gauge",
    name: "voicewire_tls_certificate_end_seconds",
    help: "Unix time at which the certificate that is shown ends",
    read: () => readEnd() ?? 0,
  };
}

function hangMetric(readHangs: () => number | null): Metric {
  return {
    kind: "counter",
    name: "voicewire_service_hangs_total",
    help: "Times that the embedded speech service was killed because it did not answer",
    read: () => readHangs() ?? 0,
  };
}

function behindMetrics(readMs: Gauges["serviceBehindMs"] = () => null): Metric[] {
  if (readMs() === null) return [];
  return [
    {
      kind: "gauge",
      name: "voicewire_service_behind_seconds",
      help: "How late the embedded speech service was with what is played, as its last answer says",
      read: () => (readMs() ?? 0) / 1000,
    },
  ];
}

function register(registry: Registry, { kind, name, help, labels = [], read }: Metric): void {
  const MetricClass: new (options: CounterConfiguration<string>) => Counter | Gauge =
    kind === "counter" ? Counter : Gauge;
  new MetricClass({
    name,
    help,
    labelNames: labels,
    registers: [registry],
    collect() {
      this.reset();
      const now = read();
      if (typeof now === "number") this.inc(now);
      else for (const { labels: values, value } of now) this.inc(values, value);
    },
  });
}
