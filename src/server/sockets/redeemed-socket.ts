/**
 * A client that came with a single-use token, and whose session is at another node. Where that refuses it, the token is good again:
 * the node says `hello` first to who has joined, and `error` to who has not.
 */
import type { ArrivedSocket } from "../../cluster/relay/relay.ts";
import { jsonOf, type RelayItem } from "../../cluster/relay/relay-format.ts";
import type { SendResult } from "../../delivery/listener.ts";

/** The owner could not read who comes. */
const RELAY_REFUSED = "relay_refused";

export class RedeemedSocket implements ArrivedSocket {
  readonly #socket: ArrivedSocket;
  readonly #giveBack: () => void;
  /** null: its node has said nothing yet. A connection that is lost then may have joined: its token stays used. */
  #isRefused: boolean | null = null;

  constructor(socket: ArrivedSocket, giveBack: () => void) {
    this.#socket = socket;
    this.#giveBack = giveBack;
  }

  send(items: readonly RelayItem[]): SendResult {
    const [first] = items;
    if (first !== undefined) this.#isRefused ??= isError(first);
    return this.#socket.send(items);
  }

  bufferedBytes(): number {
    return this.#socket.bufferedBytes();
  }

  end(closeCode: number, reason: string, retryAfterMs?: number): void {
    const isRefused = this.#isRefused ?? reason === RELAY_REFUSED;
    this.#isRefused = false;
    // Before its client hears of it, and comes back.
    if (isRefused) this.#giveBack();
    this.#socket.end(closeCode, reason, retryAfterMs);
  }
}

function isError({ isBinary, bytes }: RelayItem): boolean {
  const value = isBinary ? undefined : jsonOf(bytes);
  return typeof value === "object" && value !== null && "type" in value && value.type === "error";
}
