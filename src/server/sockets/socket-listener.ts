/** A client's WebSocket as a listener; the only place that sends. Events become JSON here. */
import type { ArrivedSocket } from "../../cluster/relay/relay.ts";
import type { RelayItem } from "../../cluster/relay/relay-format.ts";
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

  arrived(): ArrivedSocket {
    return new ArrivedUwsSocket(this.ws);
  }

  /** Frames are binary messages, events are text. */
  protected override hand(item: Delivery): number {
    return item instanceof Uint8Array
      ? this.ws.send(item, true)
      : this.ws.send(item.json(this.#offsets), false);
  }
}

/** A client's WebSocket whose session is at another node: messages go through it as they come. */
class ArrivedUwsSocket extends UwsBatchSocket<LiveConnection, RelayItem> implements ArrivedSocket {
  send(items: readonly RelayItem[]): SendResult {
    return this.sendBatch(items);
  }

  protected override hand({ bytes, isBinary }: RelayItem): number {
    return this.ws.send(bytes, isBinary);
  }
}
