/**
 * A player over plain HTTP as a listener: frames become the body of one endless response. Until `open`
 * everything is held, so that a session may be joined before a status is written.
 */
import type { LiveContainer } from "../../audio/containers/live-container.ts";
import type { SendResult } from "../../delivery/listener.ts";
import type { Timer } from "../../kit/clock.ts";
import { GOING_AWAY, NORMAL_CLOSURE } from "../../kit/close-codes.ts";
import type { Event } from "../../protocol/events.ts";
import type { PlayerEvent, PlayerListener } from "../relayed/far-listener.ts";
import { ResponseWriter, type ResponseWriterOptions } from "./response-writer.ts";

export interface AudioListenerOptions extends Omit<ResponseWriterOptions, "onLost"> {
  readonly container: LiveContainer;
  /** Silence follows speech in any case: no encoder has to be settled with some. */
  readonly isFilled: boolean;
  /** So many frames were sent, or given up for this listener. */
  readonly onFrames: (frames: number) => void;
}

/** So long after the end of an utterance without another frame nothing is being said, ms: more than two batches. */
const QUIET_MS = 250;
/** WebSocket close codes of an ordinary end. */
const ORDINARY_ENDS: readonly number[] = [NORMAL_CLOSURE, GOING_AWAY];

export class AudioListener implements PlayerListener {
  readonly surface = "audio";
  readonly #options: AudioListenerOptions;
  readonly #body: ResponseWriter;
  #settleTimer: Timer | null = null;
  /** Timeline position of the first frame, ms; known once the session was joined. */
  #startMs = 0;
  #hasFrames = false;

  constructor(options: AudioListenerOptions) {
    this.#options = options;
    this.#body = new ResponseWriter({
      ...options,
      onClosed: () => {
        this.#settleTimer?.cancel();
        options.onClosed();
      },
      onLost: ({ closeCode }) => this.end(closeCode),
    });
    this.#body.write(options.container.start());
  }

  get isClosed(): boolean {
    return this.#body.isClosed;
  }
  get isBlocked(): boolean {
    return this.#body.isBlocked;
  }

  /**
   * Writes the head, with where on the timeline the body begins, and everything held. A body without a beginning gets a
   * little silence: else no head is sent. Where frames have come there are bytes, or there will be with the next ones.
   */
  open(headers: Readonly<Record<string, string>>): void {
    const { container, onDrained } = this.#options;
    const body = this.#body;
    let startMs = this.#startMs - container.delayMs;
    if (body.bufferedBytes === 0 && !this.#hasFrames) {
      const { bytes, silenceMs } = container.opening();
      body.write(bytes);
      startMs -= silenceMs;
    }
    body.open({ ...headers, "voicewire-start-ms": String(Math.round(startMs * 1000) / 1000) });
    if (!body.isBlocked) onDrained();
  }

  deliver(batch: readonly (Uint8Array | PlayerEvent)[]): SendResult {
    if (this.#body.isClosed) return "sent";
    const frames: Uint8Array[] = [];
    let isSpeechOver = false;
    for (const item of batch) {
      const isFrame = item instanceof Uint8Array;
      if (isFrame) frames.push(item);
      isSpeechOver = !isFrame && (isSpeechOver || item.type === "utterance.done");
    }
    if (frames.length > 0) this.#sendFrames(frames);
    if (isSpeechOver) this.#settleSoon();
    return this.bufferedBytes() === 0 ? "sent" : "buffered";
  }

  /** `hello` says where the audio starts, `gap` what is missing. */
  notify(event: Event): SendResult {
    if (this.#body.isClosed) return "sent";
    if (event.type === "hello") this.#startMs = event.audio?.start_ms ?? 0;
    if (event.type === "gap" && event.frames > 0) {
      this.#options.onFrames(event.frames);
      this.#body.write(this.#options.container.missing(event.frames));
    }
    return "sent";
  }

  /** Silence between utterances; not where the client does not read. */
  sendSilence(frames: number): void {
    const body = this.#body;
    if (!body.isClosed && !body.isBlocked) body.write(this.#options.container.silence(frames));
  }

  bufferedBytes(): number {
    return this.#body.bufferedBytes;
  }

  /** An ordinary end finishes the file; any other one cuts the response, so that the client sees that it is not whole. */
  end(closeCode: number): void {
    const body = this.#body;
    if (body.isClosed) return;
    const isWhole = body.isOpen && ORDINARY_ENDS.includes(closeCode);
    if (isWhole) body.end(this.#options.container.finish());
    else body.cut();
  }

  /** The client has gone: the response may not be touched any more. */
  markAborted(): void {
    this.#body.markAborted();
  }

  #sendFrames(frames: readonly Uint8Array[]): void {
    this.#settleTimer?.cancel();
    this.#hasFrames = true;
    this.#options.onFrames(frames.length);
    this.#body.write(this.#options.container.frames(frames));
  }

  /** An utterance is over; another one may follow at once, and then there is nothing to settle. */
  #settleSoon(): void {
    const { clock, container, isFilled } = this.#options;
    if (!container.isHoldingBack || isFilled) return;
    this.#settleTimer?.cancel();
    this.#settleTimer = clock.at(clock.nowMs() + QUIET_MS, () => this.#body.write(container.settle()));
  }
}
