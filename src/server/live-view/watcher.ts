/**
 * Somebody who has the live view open: gets a view each second, and four times a second the session that is opened. One that
 * reads slowly gets fewer.
 */
import type { WebSocket } from "uWebSockets.js";
import type { Caller } from "../../access/caller.ts";
import type { Door } from "../../access/door.ts";
import type { Lease } from "../../access/lease.ts";
import { toGatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { errorBody } from "../../protocol/events.ts";
import { type LiveMessage, type OpenedSession, WATCH } from "../../protocol/live-view.ts";
import { readJson } from "../../protocol/read-json.ts";
import { UwsPort } from "../sockets/uws-sockets.ts";
import type { LiveSource } from "./live-source.ts";

const TICK_MS = 250;
/** Ticks between two views. */
const VIEW_TICKS = 4;

export interface Arrived {
  readonly caller: Caller;
  readonly address: string;
  /** null until its socket is open. */
  watcher: Watcher | null;
}

export interface WatcherOptions {
  readonly source: LiveSource;
  readonly clock: Clock;
  readonly door: Pick<Door, "leases" | "audit">;
  readonly surface: string;
}

export class Watcher {
  readonly #options: WatcherOptions;
  readonly #arrived: Arrived;
  readonly #socket: UwsPort<Arrived>;
  readonly #lease: Lease | null;
  /** null: it has not said what it wants to see. */
  #watch: ReturnType<typeof readWatch> | null = null;
  /** The session that was written to the audit log last; empty: none. */
  #noted = "";
  #ticks = 0;
  #timer: Timer;
  #isLooking = false;

  constructor(ws: WebSocket<Arrived>, options: WatcherOptions) {
    this.#options = options;
    this.#arrived = ws.getUserData();
    this.#socket = new UwsPort(ws);
    const { caller } = this.#arrived;
    const end = (thrown: unknown): void => this.refuse(thrown);
    this.#lease = caller.isAnybody
      ? null
      : options.door.leases.begin(caller, {
          warn: () => undefined,
          expired: end,
          revoked: end,
          mustStay: (now) => now.must("admin"),
        });
    this.#timer = this.#nextTick();
  }

  /** Says what it wants to see from now on. */
  message(json: string): void {
    try {
      this.#watch = readWatch(json);
      this.#ticks = 0;
    } catch (thrown) {
      this.refuse(thrown);
    }
  }

  refuse(thrown: unknown): void {
    const error = toGatewayError(thrown);
    this.#socket.send(JSON.stringify({ type: "error", ...errorBody(error) }));
    this.#socket.end(error.closeCode, error.code);
  }

  /** Its socket has closed. Idempotent. */
  closed(): void {
    this.#socket.markClosed();
    this.#timer.cancel();
    this.#lease?.close();
  }

  get #caller(): Caller {
    return this.#lease?.caller ?? this.#arrived.caller;
  }

  /** The session that is watched; who begins to watch another one stands in the audit log. */
  #open(name: string): Promise<OpenedSession | null> {
    const { source, door, surface } = this.#options;
    const isNoted = name === this.#noted;
    this.#noted = name;
    const looking = { caller: this.#caller, address: this.#arrived.address, surface };
    return openFor(looking, name, { source, ...(isNoted ? {} : { audit: door.audit }) });
  }

  #nextTick(): Timer {
    const { clock } = this.#options;
    return clock.at(clock.nowMs() + TICK_MS, () => {
      this.#timer = this.#nextTick();
      if (this.#watch === null || this.#isLooking || this.#socket.bufferedBytes() > 0) return;
      const isViewDue = this.#ticks % VIEW_TICKS === 0;
      this.#ticks += 1;
      this.#isLooking = true;
      this.#look(this.#watch, isViewDue)
        .catch((thrown: unknown) => this.refuse(thrown))
        .finally(() => {
          this.#isLooking = false;
        });
    });
  }

  async #look(watch: ReturnType<typeof readWatch>, isViewDue: boolean): Promise<void> {
    const { source } = this.#options;
    const { session: name } = watch;
    if (name === "") this.#noted = "";
    else this.#send({ type: "session", name, opened: await this.#open(name) });
    if (!isViewDue) return;
    this.#send({ type: "view", view: await source.look({ ...watch, sessions: this.#caller.sessionLists }) });
  }

  #send(message: LiveMessage): void {
    this.#socket.send(JSON.stringify(message));
  }
}

/** Who asks to see a session, and where. */
interface Looking {
  readonly caller: Caller;
  readonly address: string;
  readonly surface: string;
}

/** A session, as far as the caller may see it; null: there is none of this name, or none for them. */
export async function openFor(
  { caller, ...place }: Looking,
  name: string,
  { source, audit }: { readonly source: LiveSource; readonly audit?: Door["audit"] },
): Promise<OpenedSession | null> {
  try {
    caller.must("admin", name);
  } catch (thrown) {
    audit?.refused({ thrown, caller, ...place, sessionId: name });
    return null;
  }
  audit?.admitted(caller, { ...place, sessionId: name });
  return await source.open({ name, showsText: mayRead(caller, name) });
}

/** Whether words of a session may be read. What is said is as private as its audio. */
function mayRead(caller: Caller, sessionId: string): boolean {
  return caller.isAnybody || caller.may("listen", sessionId);
}

/** Throws malformed_json, invalid_field. */
function readWatch(json: string) {
  return readJson(json, WATCH, "Message");
}
