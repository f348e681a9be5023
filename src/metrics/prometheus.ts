/** The counters as Prometheus text; read when asked, so that counting costs an addition and nothing else. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { Counters } from "./counters.ts";
import { addPhraseMetrics, type PhraseFigures } from "./phrase-metrics.ts";
import { addRegionMetrics, type RegionFigures } from "./region-metrics.ts";

/** Counter -> metric name and help. */
const COUNTERS: Record<
  Exclude<keyof Counters, "stages">,
  { readonly name: string; readonly help: string }
> = {
  framesSent: { name: "voicewire_frames_sent_total", help: "Audio frames handed to listeners' sockets" },
  framesDropped: { name: "voicewire_frames_dropped_total", help: "Audio frames that slow listeners missed" },
  framesMade: { name: "voicewire_frames_made_total", help: "Audio frames cut or encoded, one per rendition" },
  eventsMade: { name: "voicewire_events_total", help: "Events written by sessions" },
  sessionsOpened: { name: "voicewire_sessions_opened_total", help: "Sessions opened" },
  sessionsClosed: { name: "voicewire_sessions_closed_total", help: "Sessions closed" },
  connectionsOpened: {
    name: "voicewire_connections_opened_total",
    help: "Connections that joined a session",
  },
  connectionsClosed: { name: "voicewire_connections_closed_total", help: "Connections that left a session" },
  utterancesDone: { name: "voicewire_utterances_done_total", help: "Utterances played to their end" },
  utterancesInterrupted: { name: "voicewire_utterances_interrupted_total", help: "Utterances cut" },
  utterancesFailed: { name: "voicewire_utterances_failed_total", help: "Utterances that failed" },
  upstreamRequests: { name: "voicewire_upstream_requests_total", help: "Requests sent upstream" },
  upstreamRetries: { name: "voicewire_upstream_retries_total", help: "Requests sent upstream again" },
  upstreamLateFirstAudio: {
    name: "voicewire_upstream_late_first_audio_total",
    help: "Requests given up because their first audio was too late",
  },
  speechRecovered: {
    name: "voicewire_speech_recovered_total",
    help: "Responses that broke off and whose rest was asked for anew",
  },
  upstreamErrors: { name: "voicewire_upstream_errors_total", help: "Requests that the upstream failed" },
  underruns: {
    name: "voicewire_underruns_total",
    help: "Times that audio ran dry in the middle of an utterance",
  },
  connectionsFlooding: {
    name: "voicewire_connections_flooding_total",
    help: "Connections closed because they went on sending what was refused",
  },
  messagesWaited: {
    name: "voicewire_messages_waited_total",
    help: "Messages that waited for their turn, because their connection brought many at once",
  },
  inboxesFull: {
    name: "voicewire_inboxes_full_total",
    help: "Connections closed because they sent faster than they are handled",
  },
  lateWakes: { name: "voicewire_late_wakes_total", help: "Pacer wakes more than 5 ms late" },
  utterancesCancelled: {
    name: "voicewire_utterances_cancelled_total",
    help: "Utterances taken out of the queue",
  },
  utterancesResumed: {
    name: "voicewire_utterances_resumed_total",
    help: "Interrupted utterances that went on",
  },
  textPauses: { name: "voicewire_text_pauses_total", help: "Speakers asked to pause sending text" },
  stallCuts: { name: "voicewire_stall_cuts_total", help: "Texts cut because their tokens dried up" },
  listenersResumed: {
    name: "voicewire_listeners_resumed_total",
    help: "Connections that came back and got what they missed",
  },
  resumesRefused: {
    name: "voicewire_resumes_refused_total",
    help: "Connections that came back too late or to another session",
  },
};

export interface Gauges {
  readonly sessions: () => number;
  /** Of messages that wait for their turn. */
  readonly inboxBytes: () => number;
  /** Memory lent to G.711 and PCM of live sessions that has come and was not taken; Opus is not counted. */
  readonly waitingAudioBytes: () => number;
  /** Memory of audio at and behind the playhead of live sessions, from which `resume` goes on. */
  readonly recentAudioBytes: () => number;
  readonly upstreamOpen: () => number;
  readonly upstreamQueued: () => number;
  readonly upstreamRegions: () => readonly RegionFigures[];
  /** null where no phrases are kept. */
  readonly phrases: () => PhraseFigures | null;
  /** null where the gateway runs no speech service of its own. */
  readonly serviceHangs: () => number | null;
  /** Other machines reach the gateway, and it asks for no key. */
  readonly isInsecure: boolean;
}

/** Returns a function that renders the current values. */
export function createExposition(counters: Counters, gauges: Gauges): () => Promise<string> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const key of Object.keys(COUNTERS) as (keyof typeof COUNTERS)[]) {
    new Counter({
      ...COUNTERS[key],
      registers: [registry],
      collect() {
        this.reset();
        this.inc(counters[key]);
      },
    });
  }
  addGauge(registry, { name: "voicewire_sessions", help: "Sessions open now", read: gauges.sessions });
  addGauge(registry, {
    name: "voicewire_inbox_bytes",
    help: "Bytes of messages that wait for their turn",
    read: gauges.inboxBytes,
  });
  addGauge(registry, {
    name: "voicewire_waiting_audio_bytes",
    help: "Memory of audio (G.711 and PCM of live sessions) that has come from the upstream and was not taken",
    read: gauges.waitingAudioBytes,
  });
  addGauge(registry, {
    name: "voicewire_recent_audio_bytes",
    help: "Memory of audio that live sessions keep behind what is heard, for resume",
    read: gauges.recentAudioBytes,
  });
  addGauge(registry, {
    name: "voicewire_upstream_open",
    help: "Upstream requests open now",
    read: gauges.upstreamOpen,
  });
  addGauge(registry, {
    name: "voicewire_upstream_queued",
    help: "Upstream requests that wait for a connection",
    read: gauges.upstreamQueued,
  });
  addGauge(registry, {
    name: "voicewire_insecure",
    help: "1 where other machines reach the gateway and it asks for no key, else 0",
    read: () => (gauges.isInsecure ? 1 : 0),
  });
  addRegionMetrics(registry, gauges.upstreamRegions);
  addPhraseMetrics(registry, gauges.phrases);
  addServiceMetrics(registry, gauges.serviceHangs);
  return async () => `${await registry.metrics()}\n${counters.stages.render()}`;
}

function addServiceMetrics(registry: Registry, readHangs: () => number | null): void {
  if (readHangs() === null) return;
  new Counter({
    name: "voicewire_service_hangs_total",
    help: "Times that the embedded speech service was killed because it did not answer",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(readHangs() ?? 0);
    },
  });
}

function addGauge(registry: Registry, gauge: { name: string; help: string; read: () => number }): void {
  new Gauge({
    name: gauge.name,
    help: gauge.help,
    registers: [registry],
    collect() {
      this.set(gauge.read());
    },
  });
}
