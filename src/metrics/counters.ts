import { RefusalCounts } from "../kit/refusal-counts.ts";
import { AudioSent } from "./audio-sent.ts";
import { CloseCounts } from "./close-counts.ts";
import { Histograms } from "./histograms.ts";
import { StageTimes } from "./stage-times.ts";

/** What is counted: key -> metric name and help. */
export const COUNTERS = {
  framesSent: ["voicewire_frames_sent_total", "Audio frames handed to listeners' sockets, one per listener"],
  framesDropped: ["voicewire_frames_dropped_total", "Audio frames that slow listeners missed"],
  framesMade: ["voicewire_frames_made_total", "Audio frames cut or encoded, one per rendition"],
  audioMadeSeconds: ["voicewire_audio_made_seconds_total", "Audio put on sessions' timelines"],
  audioHeardSeconds: [
    "voicewire_audio_heard_seconds_total",
    "Audio of utterances up to where they were played or cut, once a session",
  ],
  eventsMade: ["voicewire_events_total", "Events written by sessions"],
  sessionsOpened: ["voicewire_sessions_opened_total", "Sessions opened"],
  sessionsClosed: ["voicewire_sessions_closed_total", "Sessions closed"],
  connectionsOpened: ["voicewire_connections_opened_total", "Connections that joined a session"],
  connectionsClosed: ["voicewire_connections_closed_total", "Connections that left a session"],
  connectionsFlooding: [
    "voicewire_connections_flooding_total",
    "Connections closed because they went on sending what was refused",
  ],
  uploadsSlowed: [
    "voicewire_uploads_slowed_total",
    "Times that an upload was paused, since its client sends more bytes than it may",
  ],
  messagesWaited: [
    "voicewire_messages_waited_total",
    "Messages that waited for their turn, because their connection brought many at once",
  ],
  inboxesFull: [
    "voicewire_inboxes_full_total",
    "Connections closed because they sent faster than they are handled",
  ],
  utterancesDone: ["voicewire_utterances_done_total", "Utterances played to their end"],
  utterancesInterrupted: ["voicewire_utterances_interrupted_total", "Utterances cut"],
  utterancesFailed: ["voicewire_utterances_failed_total", "Utterances that failed"],
  utterancesCancelled: ["voicewire_utterances_cancelled_total", "Utterances taken out of the queue"],
  utterancesResumed: ["voicewire_utterances_resumed_total", "Interrupted utterances that went on"],
  upstreamRequests: [
    "voicewire_upstream_requests_total",
    "Requests of sessions that left for an upstream, or failed before",
  ],
  upstreamRetries: ["voicewire_upstream_retries_total", "Requests sent upstream again"],
  upstreamLateFirstAudio: [
    "voicewire_upstream_late_first_audio_total",
    "Requests given up because their first audio was too late",
  ],
  speechRecovered: [
    "voicewire_speech_recovered_total",
    "Responses that broke off and whose rest was asked for again",
  ],
  upstreamErrors: ["voicewire_upstream_errors_total", "Requests that the upstream failed"],
  timesFound: [
    "voicewire_times_found_total",
    "Responses without times whose words were found in their audio",
  ],
  timesGuessed: [
    "voicewire_times_guessed_total",
    "Responses without times that were timed by their pauses and their text alone",
  ],
  underruns: ["voicewire_underruns_total", "Times that audio ran dry in the middle of an utterance"],
  lateWakes: ["voicewire_late_wakes_total", "Pacer wakes more than 5 ms late"],
  textPauses: ["voicewire_text_pauses_total", "Speakers asked to pause sending text"],
  stallCuts: ["voicewire_stall_cuts_total", "Texts cut because their tokens stayed away"],
  listenersResumed: [
    "voicewire_listeners_resumed_total",
    "Connections that came back and got what they missed",
  ],
  resumesRefused: [
    "voicewire_resumes_refused_total",
    "Connections that came back too late or to another session",
  ],
  wyomingOpened: ["voicewire_wyoming_connections_opened_total", "Wyoming clients that were taken"],
  wyomingClosed: ["voicewire_wyoming_connections_closed_total", "Wyoming clients that have gone"],
  wyomingTexts: ["voicewire_wyoming_texts_total", "Texts of Wyoming clients whose speech was begun"],
  wyomingBytes: ["voicewire_wyoming_audio_bytes_total", "Bytes of audio handed to Wyoming clients' sockets"],
  tlsRenewals: ["voicewire_tls_renewals_total", "Certificates that took the place of another one"],
  tlsRenewalsRefused: [
    "voicewire_tls_renewals_refused_total",
    "Certificates or keys that were replaced by files that can't be used",
  ],
} as const satisfies Record<string, readonly [name: string, help: string]>;

export type CounterKey = keyof typeof COUNTERS;

/** Plain numbers that the hot path adds to; they are formatted only when /metrics is asked for. */
export type Counters = Record<CounterKey, number> & {
  readonly stages: StageTimes;
  readonly refusals: RefusalCounts;
  readonly audioSent: AudioSent;
  readonly closes: CloseCounts;
  readonly histograms: Histograms;
  readonly characters: Characters;
};

/** Characters of texts by what became of them; the phrase cache counts those that it answered. */
export interface Characters {
  /** Accepted of clients, each once. */
  requested: number;
  /** As the upstream says it, of each request. */
  billed: number;
  /** Up to where utterances were played or cut, each once. */
  heard: number;
}

export function createCounters(): Counters {
  const zeros = Object.fromEntries(Object.keys(COUNTERS).map((key) => [key, 0]));
  return {
    ...(zeros as Record<CounterKey, number>),
    stages: new StageTimes(),
    refusals: new RefusalCounts(),
    audioSent: new AudioSent(),
    closes: new CloseCounts(),
    histograms: new Histograms(),
    characters: { requested: 0, billed: 0, heard: 0 },
  };
}
