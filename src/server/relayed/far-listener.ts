/**
 * A listener at this node whose session is at another one. It joins there as a client of the native protocol does, and what comes
 * back is handed on: frames as they are, events with as much of their JSON read as players need.
 */
import type { ArrivedSocket, OwnerConnection } from "../../cluster/relay/relay.ts";
import { jsonOf, type RelayItem } from "../../cluster/relay/relay-format.ts";
import type { LoggedEvent } from "../../delivery/event-log.ts";
import type { Listener, SendResult } from "../../delivery/listener.ts";
import { ERRORS, GatewayError, isErrorCode } from "../../errors.ts";
import { NORMAL_CLOSURE } from "../../kit/close-codes.ts";
import type { Event } from "../../protocol/events.ts";
import type { OffsetUnit } from "../../protocol/vocabulary.ts";
import type { ParsedSettings } from "../../session/listener-settings.ts";
import type { LiveCall, LiveDeps } from "../live-request.ts";
import type { HttpArrival } from "../sockets/live-connection.ts";
import { liveFacts } from "../sockets/live-connections.ts";

/** What players read of an event. */
export type PlayerEvent = Pick<LoggedEvent, "type" | "seq" | "json">;

/** A listener that needs no more of events than that. */
export interface PlayerListener extends Listener {
  deliver(batch: readonly (Uint8Array | PlayerEvent)[], offsets: OffsetUnit): SendResult;
}

/** Who joins, and what for. */
interface FarJoining {
  readonly call: LiveCall;
  readonly joining: ParsedSettings;
  readonly http: HttpArrival;
}

export interface FarListenerOptions {
  readonly listener: PlayerListener;
  readonly offsets: OffsetUnit;
  /** The session has taken it in, and has greeted it. */
  readonly onJoined: () => void;
  /** It has not, and will not. */
  readonly onRefused: (error: GatewayError) => void;
}

/** Settings as the query of the native socket says them. */
function queryFor({ settings, mayWait }: ParsedSettings): string {
  const { events, ...rest } = settings;
  const query = new URLSearchParams({ events: events.length === 0 ? "none" : events.join(",") });
  for (const [key, value] of Object.entries(rest)) if (value !== undefined) query.set(key, String(value));
  if (mayWait) query.set("wait", "true");
  return query.toString();
}

export class FarListener implements ArrivedSocket {
  readonly #options: FarListenerOptions;
  #connection: OwnerConnection | null = null;
  #isJoined = false;
  #isOver = false;
  /** Why it is not taken in, as far as it was said. */
  #refusal: GatewayError | null = null;

  private constructor(options: FarListenerOptions) {
    this.#options = options;
  }

  /** Joins the session at `owner`, as what is asked for over HTTP here. Throws bus_lost. */
  static join(
    { cluster, owner }: Pick<LiveDeps, "cluster"> & { readonly owner: string },
    { call, joining, http }: FarJoining,
    handlers: Omit<FarListenerOptions, "offsets">,
  ): FarListener {
    if (cluster === null) throw new TypeError("There is no other node");
    const { sessionId, caller, address } = call;
    const listener = new FarListener({ ...handlers, offsets: joining.settings.offsets });
    const facts = liveFacts({ sessionId, caller, address, origin: "", query: queryFor(joining), http });
    listener.#connection = cluster.connect(owner, facts, listener);
    return listener;
  }

  send(items: readonly RelayItem[]): SendResult {
    const batch: (Uint8Array | PlayerEvent)[] = [];
    for (const { isBinary, bytes } of items) {
      if (this.#isOver) break;
      if (isBinary) {
        batch.push(bytes);
        continue;
      }
      const event = readEvent(bytes);
      if (event === undefined) continue;
      if (event.type === "hello" || event.type === "gap") {
        this.#hand(batch);
        this.#options.listener.notify(event);
        if (event.type === "hello") this.#joined();
      } else if (event.type === "error" && !this.#isJoined) this.#refusal = errorOf(event);
      else batch.push({ type: event.type, seq: event.seq, json: () => bytes });
    }
    this.#hand(batch);
    return this.bufferedBytes() === 0 ? "sent" : "buffered";
  }

  bufferedBytes(): number {
    return this.#isOver ? 0 : this.#options.listener.bufferedBytes();
  }

  end(closeCode: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#connection?.closed(closeCode);
    if (this.#isJoined) this.#options.listener.end(closeCode, reason);
    else this.#options.onRefused(this.#refusal ?? endedBefore(reason));
  }

  /** The listener's client has taken what waited. */
  drained(): void {
    this.#connection?.drained();
  }

  /** The listener has gone. Idempotent. */
  leave(): void {
    this.#isOver = true;
    this.#connection?.closed(NORMAL_CLOSURE);
  }

  #joined(): void {
    if (this.#isJoined) return;
    this.#isJoined = true;
    this.#options.onJoined();
  }

  #hand(batch: (Uint8Array | PlayerEvent)[]): void {
    if (batch.length > 0 && !this.#isOver)
      this.#options.listener.deliver(batch.splice(0), this.#options.offsets);
  }
}

/** An event as another node has written it; undefined: it is none. */
function readEvent(bytes: Uint8Array): Event | undefined {
  const value = jsonOf(bytes);
  if (typeof value !== "object" || value === null || !("type" in value) || !("seq" in value))
    return undefined;
  return typeof value.type === "string" && typeof value.seq === "number" ? (value as Event) : undefined;
}

function errorOf({
  code,
  message,
  field,
  retry_after_ms: retryAfterMs,
}: Extract<Event, { type: "error" }>): GatewayError {
  return new GatewayError(isErrorCode(code) ? code : "internal", message, {
    ...(field === undefined ? {} : { field }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** `reason`: the code of an error. */
export function endedBefore(reason: string): GatewayError {
  const code = isErrorCode(reason) ? reason : "bus_lost";
  const { meaning, isRetryable } = ERRORS[code];
  if (!isRetryable) return new GatewayError(code, meaning);
  return new GatewayError(code, "The session's node ended the connection before it had answered", {
    retryAfterMs: 500,
  });
}
