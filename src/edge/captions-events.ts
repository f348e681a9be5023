/**
 * A listener that gets its events as server-sent events (WHATWG HTML 9.2): each with its place (`id`), so that a browser
 * that comes back says where it was.
 */
import type { Message, SendResult, Sink } from "../fanout/sink.ts";
import type { Clock, Timer } from "../kit/clock.ts";
import type { ResponseWriter } from "./response-writer.ts";

/** A comment comes so often, ms: proxies close what is silent for longer. */
const KEEP_ALIVE_MS = 15_000;
/** After so long a browser comes back, ms: well within what a session keeps for it. */
const RETRY_MS = 1000;

/** How every event begins on the wire. */
const HEAD = /^\{"type":"([a-z._]+)","seq":(\d+)/;

export class EventStreamSink implements Sink {
  readonly #body: ResponseWriter;
  readonly #epoch: string;
  readonly #clock: Clock;
  readonly #decoder = new TextDecoder();
  #keepAlive: Timer | null = null;

  constructor(body: ResponseWriter, { epoch, clock }: { readonly epoch: string; readonly clock: Clock }) {
    this.#body = body;
    this.#epoch = epoch;
    this.#clock = clock;
    body.write(`retry: ${RETRY_MS}\n\n`);
    this.#keepAliveSoon();
  }

  sendAll(messages: readonly Message[]): SendResult {
    let text = "";
    for (const { bytes, isFrame } of messages)
      if (!isFrame) text += this.#eventOf(this.#decoder.decode(bytes));
    return this.#write(text);
  }

  sendText(json: string): SendResult {
    return this.#write(this.#eventOf(json));
  }

  bufferedBytes(): number {
    return this.#body.bufferedBytes;
  }

  /** The last event says why. */
  end(closeCode: number, reason: string): void {
    this.stop();
    const data = JSON.stringify({ type: "closed", code: reason, close_code: closeCode });
    this.#body.end(`event: closed\ndata: ${data}\n\n`);
  }

  /** No comments any more. Idempotent. */
  stop(): void {
    this.#keepAlive?.cancel();
    this.#keepAlive = null;
  }

  #write(text: string): SendResult {
    this.#body.write(text);
    return this.#body.bufferedBytes === 0 ? "sent" : "buffered";
  }

  #eventOf(json: string): string {
    const [, type = "message", seq = "0"] = HEAD.exec(json) ?? [];
    // `error` is what a browser calls the loss of its connection.
    const name = type === "error" ? "session.error" : type;
    return `id: ${this.#epoch}:${seq}\nevent: ${name}\ndata: ${json}\n\n`;
  }

  #keepAliveSoon(): void {
    this.#keepAlive = this.#clock.at(this.#clock.nowMs() + KEEP_ALIVE_MS, () => {
      this.#body.write(":\n\n");
      if (!this.#body.isClosed) this.#keepAliveSoon();
    });
  }
}
