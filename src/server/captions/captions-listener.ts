/**
 * A listener that gets its events as server-sent events (WHATWG HTML 9.2): each with its place (`id`), so that a browser
 * that comes back says where it was.
 */
import type { SendResult } from "../../delivery/listener.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Event } from "../../protocol/events.ts";
import type { OffsetUnit } from "../../protocol/vocabulary.ts";
import type { ResponseWriter } from "../players/response-writer.ts";
import type { PlayerEvent, PlayerListener } from "../relayed/far-listener.ts";

/** A comment comes so often, ms: proxies close what is silent for longer. */
const KEEP_ALIVE_MS = 15_000;
/** After so long a browser comes back, ms: well within what a session keeps for it. */
const RETRY_MS = 1000;

const MESSAGE_END = Buffer.from("\n\n");

export class CaptionsListener implements PlayerListener {
  readonly surface = "captions";
  readonly #body: ResponseWriter;
  /** The epoch of the session, as `hello` says it. */
  #epoch = "";
  readonly #clock: Clock;
  #keepAlive: Timer | null = null;

  constructor(body: ResponseWriter, { clock }: { readonly clock: Clock }) {
    this.#body = body;
    this.#clock = clock;
    body.write(`retry: ${RETRY_MS}\n\n`);
    this.#keepAliveSoon();
  }

  deliver(batch: readonly (Uint8Array | PlayerEvent)[], offsets: OffsetUnit): SendResult {
    const parts: Uint8Array[] = [];
    for (const item of batch) {
      if (!(item instanceof Uint8Array)) parts.push(this.#headOf(item), item.json(offsets), MESSAGE_END);
    }
    return this.#write(Buffer.concat(parts));
  }

  notify(event: Event): SendResult {
    if (event.type === "hello") this.#epoch = event.epoch;
    return this.#write(Buffer.concat([this.#headOf(event), Buffer.from(JSON.stringify(event)), MESSAGE_END]));
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

  #write(bytes: Uint8Array): SendResult {
    this.#body.write(bytes);
    return this.#body.bufferedBytes === 0 ? "sent" : "buffered";
  }

  /** All that stands before an event's JSON. */
  #headOf({ type, seq }: { readonly type: string; readonly seq: number }): Uint8Array {
    // `error` is what a browser calls the loss of its connection.
    const name = type === "error" ? "session.error" : type;
    return Buffer.from(`id: ${this.#epoch}:${seq}\nevent: ${name}\ndata: `);
  }

  #keepAliveSoon(): void {
    this.#keepAlive = this.#clock.at(this.#clock.nowMs() + KEEP_ALIVE_MS, () => {
      this.#body.write(":\n\n");
      if (!this.#body.isClosed) this.#keepAliveSoon();
    });
  }
}
