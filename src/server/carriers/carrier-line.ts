/** A carrier's WebSocket as a call sees it. */

import type { SendResult } from "../../delivery/listener.ts";
import type { Wire } from "../../protocol/carrier/carrier.ts";
import type { CallLine } from "../../telephony/carrier-listener.ts";
import { UwsBatchSocket } from "../sockets/uws-port.ts";

/** `T`: what the server library keeps for the socket. */
export class CarrierLine<T> extends UwsBatchSocket<T, Wire> implements CallLine {
  send(messages: readonly Wire[]): SendResult {
    return this.sendBatch(messages);
  }

  protected override hand(message: Wire): number {
    return this.ws.send(message, typeof message !== "string");
  }
}
