import { StageTimes } from "./stage-times.ts";

/** Plain numbers that the hot path adds to; they are read and formatted only when /metrics is asked for. */
export interface Counters {
  /** Frames handed to sockets, one per listener. */
  framesSent: number;
  /** Frames that slow live listeners missed. */
  framesDropped: number;
  /** Frames encoded or cut, one per rendition. */
  framesMade: number;
  eventsMade: number;
  sessionsOpened: number;
  sessionsClosed: number;
  connectionsOpened: number;
  connectionsClosed: number;
  /** Connections closed because they went on sending what was refused. */
  connectionsFlooding: number;
  /** Messages that waited for their turn, because their connection brought many at once. */
  messagesWaited: number;
  /** Connections closed because more of their messages waited than may. */
  inboxesFull: number;
  utterancesDone: number;
  utterancesInterrupted: number;
  utterancesFailed: number;
  upstreamRequests: number;
  upstreamRetries: number;
  /** Requests given up because their first audio was too late. */
  upstreamLateFirstAudio: number;
  /** Responses that broke off and whose rest was asked for anew. */
  speechRecovered: number;
  upstreamErrors: number;
  /** Times that a listener waited because the audio ran dry mid-utterance. */
  underruns: number;
  /** Wakes of the pacer that came more than 5 ms after the time asked for. */
  lateWakes: number;
  utterancesCancelled: number;
  utterancesResumed: number;
  /** Speakers that were asked to pause. */
  textPauses: number;
  /** Texts that were cut because their tokens dried up. */
  stallCuts: number;
  /** Connections that came back with a resume, and those whose resume was refused. */
  listenersResumed: number;
  resumesRefused: number;
  readonly stages: StageTimes;
}

export function createCounters(): Counters {
  return {
    framesSent: 0,
    framesDropped: 0,
    framesMade: 0,
    eventsMade: 0,
    sessionsOpened: 0,
    sessionsClosed: 0,
    connectionsOpened: 0,
    connectionsClosed: 0,
    connectionsFlooding: 0,
    messagesWaited: 0,
    inboxesFull: 0,
    utterancesDone: 0,
    utterancesInterrupted: 0,
    utterancesFailed: 0,
    upstreamRequests: 0,
    upstreamRetries: 0,
    upstreamLateFirstAudio: 0,
    speechRecovered: 0,
    upstreamErrors: 0,
    underruns: 0,
    lateWakes: 0,
    utterancesCancelled: 0,
    utterancesResumed: 0,
    textPauses: 0,
    stallCuts: 0,
    listenersResumed: 0,
    resumesRefused: 0,
    stages: new StageTimes(),
  };
}
