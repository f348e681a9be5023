// Hands Opus packets to a voice connection one by one, each when it is due, and ends speech as Discord asks for it.

/** A packet of silence of 20 ms, mono as the gateway's packets are. */
export const SILENCE_FRAME = Buffer.from([0xf8, 0xff, 0xfe]);
/** So many of them follow whatever breaks off: else Discord's listeners hear the last sound ring on. */
const SILENCE_FRAMES = 5;
const PACKET_MS = 20;
/** Two seconds; the gateway is `lead_ms` ahead, 300 ms. Of more, the oldest go. */
const MAX_WAITING = 100;
/** Later than this, the program stood still: what is due is not sent all at once, the beat begins anew. */
const MAX_LATE_MS = 200;

export class PacketPacer {
  #sink;
  #played;
  #waiting = [];
  #silenceLeft = 0;
  #timer = null;
  #dueMs = 0;
  #dropped = 0;
  #isClosed = false;

  /**
   * `sink`: what is used of a voice connection, `playOpusPacket(buffer)` and `setSpeaking(boolean)`;
   * `played(endMs, isLast)` is told of each packet that has gone, by the place on the timeline where it ends.
   */
  constructor(sink, played = () => undefined) {
    this.#sink = sink;
    this.#played = played;
  }

  /** Packets that were thrown away because too many waited. */
  get dropped() {
    return this.#dropped;
  }

  /** One packet of 20 ms that ends at `endMs` on the timeline. The first one goes at once; none once it is closed. */
  push(packet, endMs) {
    if (this.#isClosed) return;
    if (this.#waiting.length === MAX_WAITING) {
      this.#waiting.shift();
      this.#dropped += 1;
    }
    this.#waiting.push({ packet, endMs });
    if (this.#timer !== null) return;
    this.#sink.setSpeaking(true);
    this.#dueMs = performance.now();
    this.#beat();
  }

  /** What waits is not to be heard any more: silence follows. */
  cut() {
    this.#waiting = [];
  }

  /** Nothing is sent any more. May be called again. */
  close() {
    this.#isClosed = true;
    this.cut();
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#sink.setSpeaking(false);
  }

  #beat() {
    const next = this.#waiting.shift();
    if (next === undefined && this.#silenceLeft === 0) {
      this.#timer = null;
      this.#sink.setSpeaking(false);
      return;
    }
    // Each beat is counted from the one before and not from now: what a timer is late does not add up.
    const now = performance.now();
    this.#dueMs = (now - this.#dueMs > MAX_LATE_MS ? now : this.#dueMs) + PACKET_MS;
    this.#timer = setTimeout(() => this.#beat(), Math.max(0, this.#dueMs - now));
    if (next === undefined) {
      this.#silenceLeft -= 1;
      this.#sink.playOpusPacket(SILENCE_FRAME);
      return;
    }
    this.#silenceLeft = SILENCE_FRAMES;
    this.#sink.playOpusPacket(next.packet);
    this.#played(next.endMs, this.#waiting.length === 0);
  }
}
