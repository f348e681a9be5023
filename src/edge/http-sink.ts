/**
 * A listener over plain HTTP as the fan-out sees it: frames become the body of one endless response. Until `open`
 * everything is held, so that a session may be joined before a status is written.
 *
 * What uWebSockets.js does here (measured): `write` returns false once bytes wait in its own buffer; that buffer is
 * drained by the next write, or by an empty cork, not by itself where a writable handler is set; and a response that
 * is blocked for 10 s is aborted unless `resume` is called.
 */
import type { HttpResponse } from "uWebSockets.js";
import type { LiveContainer } from "../audio/live-container.ts";
import type { Message, SendResult, Sink } from "../fanout/sink.ts";
import type { Clock, Timer } from "../kit/clock.ts";

export interface HttpSinkOptions {
  readonly res: HttpResponse;
  readonly container: LiveContainer;
  readonly clock: Clock;
  /** A client that takes nothing for so long is gone. */
  readonly idleSeconds: number;
  /** Silence follows speech in any case: no encoder has to be settled with some. */
  readonly isFilled: boolean;
  /** So many frames were sent, or given up for this listener. */
  readonly onFrames: (frames: number) => void;
  /** The client has taken what waited. */
  readonly onDrained: () => void;
  /** The response is over, whoever ended it. Called once. */
  readonly onClosed: () => void;
}

/** How often a blocked response is kept from the library's own time limit, ms. */
const BLOCKED_CHECK_MS = 4000;
/** So long after the end of an utterance without another frame nothing is being said, ms: more than two batches. */
const QUIET_MS = 250;
/** WebSocket close codes of an ordinary end. */
const ORDINARY_ENDS: readonly number[] = [1000, 1001];
/** How the session's events begin on the wire. */
const DONE_PREFIX = new TextEncoder().encode('{"type":"utterance.done"');

export class HttpAudioSink implements Sink {
  readonly #options: HttpSinkOptions;
  /** Bytes that the response has not been given; all of them until `open`. */
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #isOpen = false;
  #isClosed = false;
  /** The library holds bytes that the client does not take; how many at least. */
  #isBlocked = false;
  #blockedBytes = 0;
  #blockedTimer: Timer | null = null;
  #settleTimer: Timer | null = null;
  #startMs = 0;

  constructor(options: HttpSinkOptions) {
    this.#options = options;
    this.#write(options.container.start());
  }

  /** Timeline position of the first frame, ms; known once the session was joined. */
  get startMs(): number {
    return this.#startMs;
  }
  get isClosed(): boolean {
    return this.#isClosed;
  }
  get isBlocked(): boolean {
    return this.#isBlocked;
  }

  /** Writes the head and everything held. A body without a beginning gets a little silence: else no head is sent. */
  open(headers: Readonly<Record<string, string>>): void {
    const { res, container, clock, idleSeconds } = this.#options;
    if (this.#heldBytes === 0) this.#write(container.silence(1));
    if (this.#heldBytes === 0) this.#write(container.settle());
    const body = this.#takeHeld();
    res.onWritable(() => this.#resWritable());
    res.cork(() => {
      res.writeStatus("200 OK");
      for (const [name, value] of Object.entries(headers)) res.writeHeader(name, value);
      for (const bytes of body) if (!res.write(bytes)) this.#isBlocked = true;
    });
    this.#isOpen = true;
    if (this.#isBlocked) this.#watch(clock.nowMs() + idleSeconds * 1000);
    else this.#options.onDrained();
  }

  sendAll(messages: readonly Message[]): SendResult {
    if (this.#isClosed) return "sent";
    const frames: Uint8Array[] = [];
    let isSpeechOver = false;
    for (const { bytes, isFrame } of messages) {
      if (isFrame) frames.push(bytes);
      isSpeechOver = !isFrame && (isSpeechOver || isDoneEvent(bytes));
    }
    if (frames.length > 0) this.#sendFrames(frames);
    if (isSpeechOver) this.#settleSoon();
    return this.bufferedBytes() === 0 ? "sent" : "buffered";
  }

  /** Messages to this listener alone: `hello` says where the audio starts, `gap` what is missing. */
  sendText(text: string): SendResult {
    if (this.#isClosed) return "sent";
    const event = JSON.parse(text) as { type?: string; frames?: number; audio?: { start_ms: number } | null };
    if (event.type === "hello") this.#startMs = event.audio?.start_ms ?? 0;
    if (event.type === "gap" && event.frames !== undefined && event.frames > 0) {
      this.#options.onFrames(event.frames);
      this.#write(this.#options.container.missing(event.frames));
    }
    return "sent";
  }

  /** Silence between utterances; not where the client does not read. */
  sendSilence(frames: number): void {
    if (!this.#isClosed && !this.#isBlocked) this.#write(this.#options.container.silence(frames));
  }

  bufferedBytes(): number {
    return this.#isClosed ? 0 : this.#heldBytes + this.#blockedBytes;
  }

  /** An ordinary end finishes the file; any other one cuts the response, so that the client sees that it is not whole. */
  end(closeCode: number): void {
    if (this.#isClosed) return;
    const { res, container } = this.#options;
    if (!this.#isOpen) {
      this.#close();
      return;
    }
    if (ORDINARY_ENDS.includes(closeCode)) {
      const rest = this.#takeHeld();
      const last = container.finish();
      this.#close();
      res.cork(() => {
        for (const bytes of rest) res.write(bytes);
        res.end(last);
      });
    } else {
      this.#close();
      res.close();
    }
  }

  /** The client has gone: the response may not be touched any more. */
  markAborted(): void {
    this.#close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#takeHeld();
    this.#blockedTimer?.cancel();
    this.#settleTimer?.cancel();
    this.#options.onClosed();
  }

  #sendFrames(frames: readonly Uint8Array[]): void {
    this.#settleTimer?.cancel();
    this.#options.onFrames(frames.length);
    this.#write(this.#options.container.frames(frames));
  }

  /** An utterance is over; another one may follow at once, and then there is nothing to settle. */
  #settleSoon(): void {
    const { clock, container, isFilled } = this.#options;
    if (!container.isHoldingBack || isFilled) return;
    this.#settleTimer?.cancel();
    this.#settleTimer = clock.at(clock.nowMs() + QUIET_MS, () => this.#write(container.settle()));
  }

  #write(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.#isOpen && !this.#isBlocked) this.#hand(bytes);
    else {
      // A view of memory that is not ours for longer than this call.
      this.#held.push(bytes.slice());
      this.#heldBytes += bytes.length;
    }
  }

  #hand(bytes: Uint8Array): void {
    const { res, clock, idleSeconds } = this.#options;
    let isTaken = true;
    res.cork(() => {
      isTaken = res.write(bytes);
    });
    if (isTaken) return;
    this.#isBlocked = true;
    this.#blockedBytes = bytes.length;
    this.#watch(clock.nowMs() + idleSeconds * 1000);
  }

  #takeHeld(): Uint8Array[] {
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    return held;
  }

  #resWritable(): boolean {
    if (this.#isClosed) return true;
    this.#options.res.cork(() => undefined);
    this.#isBlocked = false;
    this.#blockedBytes = 0;
    this.#blockedTimer?.cancel();
    while (!this.#isBlocked) {
      const bytes = this.#held.shift();
      if (bytes === undefined) break;
      this.#heldBytes -= bytes.length;
      this.#hand(bytes);
    }
    if (!this.#isBlocked) this.#options.onDrained();
    return true;
  }

  #watch(untilMs: number): void {
    const { clock, res } = this.#options;
    this.#blockedTimer?.cancel();
    this.#blockedTimer = clock.at(Math.min(untilMs, clock.nowMs() + BLOCKED_CHECK_MS), () => {
      if (this.#isClosed) return;
      if (clock.nowMs() >= untilMs) {
        this.#close();
        res.close();
        return;
      }
      res.resume();
      this.#watch(untilMs);
    });
  }
}

function isDoneEvent(bytes: Uint8Array): boolean {
  return DONE_PREFIX.every((byte, index) => bytes[index] === byte);
}
