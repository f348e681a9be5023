// Which place of the session's timeline is heard now.

/** The gateway keeps an <audio> about this much ahead with silence: speech is late by it, ms. */
const SILENCE_AHEAD_MS = 80;
/** How far behind the gateway an <audio> may be, ms; what was before that is forgotten. */
const MAX_DELAY_MS = 60_000;

/** The timeline moves while something is said, and stands still in between: the gateway's events tell when. */
export class Timeline {
  #turns = [{ atMs: 0, placeMs: 0, moves: false }];
  #speaking = new Set();
  #isJoined = false;

  /** `nowMs`: when the event came. */
  take(event, nowMs) {
    if (event.type === "hello" && !this.#isJoined) {
      this.#isJoined = true;
      this.#turn(nowMs, event.at_ms, false);
    } else if (event.type === "utterance.started" || event.type === "utterance.resumed") {
      // One that follows another is told ahead of its sound: the timeline just moves on.
      if (this.#speaking.size === 0) this.#turn(nowMs, Math.max(event.start_ms, this.at(nowMs)), true);
      this.#speaking.add(event.utterance_id);
    } else if (event.type === "words" && event.at_ms < this.at(nowMs)) {
      // Words are told before their sound leaves: where they come late, the upstream was too slow.
      if (this.#speaking.size > 0) this.#turn(nowMs, event.at_ms, true);
    } else if (event.type === "interrupted" && event.next_ms !== null) {
      this.#speaking.delete(event.utterance_id);
      this.#turn(nowMs, event.next_ms, this.#speaking.size > 0);
    } else if (event.type === "utterance.done" && this.#speaking.delete(event.utterance_id)) {
      if (this.#speaking.size === 0) this.#turn(nowMs, event.end_ms ?? this.at(nowMs), false);
    }
  }

  get isSpeaking() {
    return this.#speaking.size > 0;
  }

  /** The place that the gateway had come to at that time. */
  at(timeMs) {
    const turn = this.#turns.findLast(({ atMs }) => atMs <= timeMs) ?? this.#turns[0];
    return turn.placeMs + (turn.moves ? Math.max(0, timeMs - turn.atMs) : 0);
  }

  #turn(atMs, placeMs, moves) {
    const first = this.#turns.findLastIndex((turn) => turn.atMs < atMs - MAX_DELAY_MS);
    this.#turns = [...this.#turns.slice(Math.max(0, first)), { atMs, placeMs, moves }];
  }
}

/** How far an <audio> that never pauses by itself is behind the gateway. */
export class Delay {
  #audio;
  #begunMs = 0;

  constructor(audio) {
    this.#audio = audio;
    audio.addEventListener("loadstart", () => {
      this.#begunMs = performance.now();
    });
  }

  /** ms; 0 without sound. */
  at(nowMs) {
    if (this.#begunMs === 0) return 0;
    return nowMs - this.#begunMs - this.#audio.currentTime * 1000 + SILENCE_AHEAD_MS;
  }
}
