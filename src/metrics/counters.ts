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
  utterancesDone: number;
  utterancesInterrupted: number;
  utterancesFailed: number;
  upstreamRequests: number;
  upstreamRetries: number;
  upstreamErrors: number;
  /** Times that a listener waited because the audio ran dry mid-utterance. */
  underruns: number;
  /** Wakes of the pacer that came more than 5 ms after the time asked for. */
  lateWakes: number;
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
    utterancesDone: 0,
    utterancesInterrupted: 0,
    utterancesFailed: 0,
    upstreamRequests: 0,
    upstreamRetries: 0,
    upstreamErrors: 0,
    underruns: 0,
    lateWakes: 0,
  };
}
