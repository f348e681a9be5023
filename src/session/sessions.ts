/** All sessions of a gateway, by id; bounded. */
import { randomBytes } from "node:crypto";
import { GatewayError } from "../errors.ts";
import { sleep } from "../kit/clock.ts";
import type { SavedSession } from "./saved-session.ts";
import { Session, type SessionKeeper, type SessionOptions } from "./session.ts";
import type { SessionDeps } from "./session-deps.ts";
import type { Tape } from "./tape/tape.ts";
import { tapedDeps } from "./tape/taped-deps.ts";

const SESSION_ID = /^[A-Za-z0-9_.-]{1,64}$/;

/** Where it is written down which sessions are here: for the other nodes of a cluster. */
export interface SessionRegister {
  /**
   * A session is opened. `epoch`: unlike that of any before; `former`: what another node had of it, which has gone. Throws where
   * it is another node's.
   */
  opened(sessionId: string): {
    readonly epoch: string;
    readonly former: { readonly epoch: string; readonly saved: SavedSession } | null;
  };
  ended(sessionId: string): void;
  /** Who has to know what another node would need of a session; null: nobody. */
  readonly keeper: SessionKeeper | null;
}

/** For a gateway that is alone. */
export const NO_REGISTER: SessionRegister = {
  opened: () => ({ epoch: randomBytes(6).toString("hex"), former: null }),
  ended: () => undefined,
  keeper: null,
};

/** Who records sessions. */
export interface SessionRecorder {
  /** null: this one is not recorded. `settings` and `server`: what it is opened with. */
  begin(
    session: { readonly id: string; readonly epoch: string } & Pick<SessionDeps, "settings" | "server">,
  ): {
    readonly tape: Tape;
    /** The session has ended. */
    end(): void;
  } | null;
}

export class Sessions {
  readonly #recorder: SessionRecorder | null;
  readonly #deps: SessionDeps;
  readonly #maxSessions: number;
  readonly #byId = new Map<string, Session>();
  readonly #register: () => SessionRegister;
  #isDraining = false;
  #isLeaving = false;

  /** `register`: as it is then. `recorder` null: nothing is recorded. */
  constructor(
    deps: SessionDeps,
    maxSessions: number,
    register = (): SessionRegister => NO_REGISTER,
    recorder: SessionRecorder | null = null,
  ) {
    this.#recorder = recorder;
    this.#deps = deps;
    this.#maxSessions = maxSessions;
    this.#register = register;
  }

  get count(): number {
    return this.#byId.size;
  }
  /** Memory of the audio that sessions keep for `resume` while it is spoken; added up when it is asked for. */
  get recentAudioBytes(): number {
    let bytes = 0;
    for (const session of this.#byId.values()) bytes += session.recentAudioBytes;
    return bytes;
  }
  /** Utterances that are not over. */
  get utteranceCount(): number {
    let count = 0;
    for (const session of this.#byId.values()) count += session.utteranceCount;
    return count;
  }
  /** What waits in the sockets of all listeners, and in that of the slowest; looked at when it is asked for. */
  get sendQueues(): { readonly bytes: number; readonly worstBytes: number } {
    let [bytes, worstBytes] = [0, 0];
    for (const session of this.#byId.values()) {
      for (const { listener } of session.participants) {
        const waiting = listener.bufferedBytes();
        bytes += waiting;
        worstBytes = Math.max(worstBytes, waiting);
      }
    }
    return { bytes, worstBytes };
  }
  get isDraining(): boolean {
    return this.#isDraining;
  }
  /** Load balancers are to send nobody here any more. */
  get isLeaving(): boolean {
    return this.#isLeaving || this.#isDraining;
  }
  leave(): void {
    this.#isLeaving = true;
  }

  has(id: string): boolean {
    return this.#byId.get(id)?.isClosed === false;
  }

  *[Symbol.iterator](): Iterator<Session> {
    yield* this.#byId.values();
  }

  /** Throws invalid_field for an id that can't be one, unknown_session. */
  get(id: string): Session {
    const session = this.#byId.get(checkId(id));
    if (session === undefined) {
      throw new GatewayError(
        "unknown_session",
        `No session is called ${id}: a speaker has to open it first`,
        {
          field: "session",
          retryAfterMs: 1000,
        },
      );
    }
    return session;
  }

  /**
   * The session, opened if need be: then `claim` takes a place for it, and gives what lets that go when it has ended. Throws
   * invalid_field, session_limit, draining, bus_lost where it is another node's, and what `claim` throws.
   */
  open(id: string, claim: () => () => void = () => () => undefined): Session {
    const known = this.#byId.get(checkId(id));
    // One that is being closed still stands here while its connections are closed.
    if (known?.isClosed === false) return known;
    if (this.#isDraining) throw new GatewayError("draining", "Gateway is shutting down: no new sessions");
    if (this.#byId.size >= this.#maxSessions) {
      throw new GatewayError(
        "session_limit",
        `Gateway is full: ${this.#maxSessions} sessions, which is the limit`,
        {
          retryAfterMs: 5000,
        },
      );
    }
    const register = this.#register();
    const { epoch, former } = register.opened(id);
    const letGo = claim();
    const { settings, server } = this.#deps;
    const recording = this.#recorder?.begin({ id, epoch, settings, server }) ?? null;
    const session = openSession(this.#deps, recording?.tape, {
      id,
      epoch,
      keeper: register.keeper,
      onClose: (closed) => {
        letGo();
        recording?.end();
        this.#register().ended(id);
        this.#forget(closed);
      },
    });
    this.#byId.set(id, session);
    if (former !== null) session.restore(former.saved, former.epoch);
    return session;
  }

  /** Opens no session any more, and takes no new utterance. Idempotent. */
  refuseMore(): void {
    this.#isDraining = true;
    for (const session of this.#byId.values()) session.utteranceCommands.drain();
  }

  /** Takes nothing new and resolves when nobody speaks any more, at the latest after `deadlineMs`. */
  async drain(deadlineMs: number): Promise<void> {
    this.refuseMore();
    const { clock } = this.#deps;
    const endMs = clock.nowMs() + deadlineMs;
    while ([...this.#byId.values()].some((session) => !session.isIdle) && clock.nowMs() < endMs) {
      await sleep(clock, Math.min(50, endMs - clock.nowMs()));
    }
  }

  /** `why`: asked for each session, so that not all clients come back at once. */
  close(why: () => GatewayError): void {
    this.#isDraining = true;
    for (const session of [...this.#byId.values()]) session.close(why());
  }

  #forget(session: Session): void {
    if (this.#byId.get(session.id) === session) this.#byId.delete(session.id);
  }
}

/** `tape`: between it and all else. */
export function openSession(
  deps: SessionDeps,
  tape: Tape | undefined,
  options: Omit<SessionOptions, "deps">,
): Session {
  if (tape === undefined) return new Session({ ...options, deps });
  return tape.enter("open", [], () => new Session({ ...options, deps: tapedDeps(deps, tape) }));
}

/** The id, where it can be one. Throws invalid_field. */
export function checkId(id: string): string {
  if (SESSION_ID.test(id)) return id;
  throw new GatewayError(
    "invalid_field",
    "Session id is not valid: expected 1 to 64 letters, digits, dots, dashes or underscores",
    { field: "session" },
  );
}
