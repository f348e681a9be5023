/** A client's WebSocket as the fan-out sees it; the only place that sends. */
import type { Message, SendResult, Sink } from "../fanout/sink.ts";
import type { Member } from "../session/member.ts";
import type { Inbox } from "./inbox.ts";
import type { Refusals } from "./refusals.ts";
import { UwsBatchSocket } from "./uws-port.ts";

/** What the server library keeps for each socket. */
export interface SocketData {
  readonly sessionId: string;
  readonly query: string;
  sink: UwsSink | null;
  inbox: Inbox<SocketData> | null;
  member: Member | null;
  /** The `listener_id` of the connection that it goes on with, as it says. */
  takesUp: string | null;
  readonly refusals: Refusals;
}

export class UwsSink extends UwsBatchSocket<SocketData, Message> implements Sink {
  sendAll(messages: readonly Message[]): SendResult {
    return this.sendBatch(messages);
  }

  sendText(text: string): SendResult {
    return this.sendOne(text);
  }

  /** Events are bytes, too, but go as text. */
  protected override hand({ bytes, isFrame }: Message): number {
    return this.ws.send(bytes, isFrame);
  }
}
