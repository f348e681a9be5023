/** A client's WebSocket as a listener; the only place that sends. Events become JSON here. */
import type { Delivery, SendResult } from "../../delivery/listener.ts";
import type { Event } from "../../protocol/events.ts";
import type { OffsetUnit } from "../../protocol/vocabulary.ts";
import type { ClientListener, LiveConnection } from "./live-connection.ts";
import { UwsBatchSocket } from "./uws-port.ts";

export class SocketListener extends UwsBatchSocket<LiveConnection, Delivery> implements ClientListener {
  #offsets: OffsetUnit = "utf16";

  deliver(batch: readonly Delivery[], offsets: OffsetUnit): SendResult {
    this.#offsets = offsets;
    return this.sendBatch(batch);
  }

  notify(event: Event): SendResult {
    return this.sendOne(JSON.stringify(event));
  }

  /** Frames are binary messages, events are text. */
  protected override hand(item: Delivery): number {
    return item instanceof Uint8Array
      ? this.ws.send(item, true)
      : this.ws.send(item.json(this.#offsets), false);
  }
}
