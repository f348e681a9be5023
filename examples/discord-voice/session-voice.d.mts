import type { Event } from "../../src/protocol/events.ts";
import type { VoiceSink } from "./packet-pacer.d.mts";

export function joinSession(options: {
  /** `ws://HOST:PORT` */
  readonly gateway: string;
  readonly session: string;
  readonly sink: VoiceSink;
  readonly onEvent?: (event: Event) => void;
}): Promise<{
  send(command: object): void;
  /** Close code. */
  readonly closed: Promise<number>;
  close(): void;
}>;
