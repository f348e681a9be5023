/** What a key or a token of the gateway allows who brings a call by it. */
import { AccessError } from "../../access/access-error.ts";
import type { Caller } from "../../access/caller.ts";
import type { Door } from "../../access/door.ts";
import type { OpusAccount } from "../../access/limits/limits.ts";
import type { SpeakCommand } from "../../protocol/commands.ts";
import type { Payer } from "../../session/payer.ts";
import type { CallEnding, CallRights, CallStarting } from "../../telephony/call.ts";
import { checkCommand } from "../sockets/live-access.ts";
import { audited } from "../speech-access.ts";

/** What a request that sets a call up says of it, by the names that the call has it under. */
interface CallParameters {
  readonly session: string;
  readonly text?: string;
  readonly voice_id?: string;
}

export interface CallerRightsOptions {
  readonly door: Door;
  readonly caller: Caller;
  /** Pattern of the route. */
  readonly surface: string;
  /** Where the client calls from. */
  readonly address: string;
}

export class CallerRights implements CallRights {
  readonly #options: CallerRightsOptions;

  constructor(options: CallerRightsOptions) {
    this.#options = options;
  }

  /** One more RTP port: gives what ends it (idempotent). Throws listener_limit. */
  openPort(): () => void {
    const { door, caller, address } = this.#options;
    return this.unlessRefused(() => door.limits.begin("rtp_ports", caller, address));
  }

  get payer(): Payer {
    const { caller, address } = this.#options;
    const { limits } = this.#options.door;
    const { begin, add } = limits.speechBudget(() => caller);
    const budget = { begin: (characters: number) => this.unlessRefused(() => begin(characters)), add };
    return { budget, subject: limits.upstreamSubject(caller, address) };
  }

  get opusAccount(): OpusAccount {
    const { door, caller, address } = this.#options;
    return door.limits.opusAccount(caller, address);
  }

  /** By the keys as they are now. Throws forbidden, unauthorized. */
  mustCall(sessionId: string): Caller {
    const { door, caller } = this.#options;
    const now = door.access.renewed(caller);
    if (now === null) throw new AccessError("revoked");
    if (!now.isAnybody) now.must("call", sessionId);
    return now;
  }

  /** What begins later, by a request that sets it up. Throws what `begin` and `greeting` do. */
  check({ session, text, voice_id }: CallParameters): void {
    this.unlessRefused(() => {
      this.mustCall(session);
      if (text !== undefined) {
        this.greeting({ type: "speak", text, ...(voice_id === undefined ? {} : { voice_id }) }, session);
      }
    });
  }

  /** What `check` gives; where it refuses the caller something, that stands in the audit log, and is counted. */
  unlessRefused<T>(check: () => T): T {
    return audited(this.#options, check);
  }

  greeting(command: SpeakCommand, sessionId: string): SpeakCommand {
    const checked = checkCommand(this.#options.caller, sessionId, command);
    return checked.type === "speak" ? checked : command;
  }

  /** The call ends with the key or the token that it was brought by. */
  begin({ sessionId }: CallStarting, ending: CallEnding): () => void {
    const { door, surface, address } = this.#options;
    const caller = this.mustCall(sessionId);
    if (caller.isAnybody) return () => undefined;
    const leave = door.limits.enter(caller, address);
    door.audit.admitted(caller, { surface, address, sessionId });
    const lease = door.leases.begin(caller, {
      warn: () => undefined,
      ...ending,
      mustStay: (now) => now.must("call", sessionId),
    });
    return () => {
      lease.close();
      leave();
    };
  }

  /** A line in the audit log. */
  refused(thrown: unknown): void {
    const { door, caller, surface, address } = this.#options;
    door.audit.refused({ thrown, surface, address, caller });
  }
}
