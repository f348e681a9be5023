/** Who did what at the door, one line each: never a key, a token, a text or a session's name. */
import { hash } from "node:crypto";
import { type ErrorCode, toGatewayError } from "../errors.ts";
import type { Logger } from "../kit/log.ts";
import { RefusalCounts } from "../kit/refusal-counts.ts";
import { AccessError } from "./access-error.ts";
import type { Caller } from "./caller.ts";
import { LimitError } from "./limits/limit-error.ts";
import type { LowBudget } from "./limits/scope-counts.ts";

/** Lines of refusals a second: a flood of strangers fills no disk. All of them are counted. */
const MAX_REFUSALS_A_SECOND = 10;

export interface Refusal {
  readonly thrown: unknown;
  /** Pattern of the route. */
  readonly surface: string;
  readonly address: string;
  /** null: it is not known who asks. */
  readonly caller: Caller | null;
  /** Default: it is about no session. */
  readonly sessionId?: string | null;
  /** The command that was refused, on a connection that stands. */
  readonly command?: string | undefined;
}

/** The last two also where the gateway, or a session, has as many as it may. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  "forbidden",
  "token_expired",
  "session_limit",
  "listener_limit",
]);

/** Whether somebody may not do something, or has had all of it. Other errors are of the request itself. */
export function isRefusal(thrown: unknown): boolean {
  if (thrown instanceof AccessError || thrown instanceof LimitError) return true;
  return REFUSALS.has(toGatewayError(thrown).code);
}

export function reasonOf(thrown: unknown): string {
  return thrown instanceof AccessError ? thrown.reason : toGatewayError(thrown).code;
}

/** Where the lines go. */
export interface AuditLog extends Logger {
  /** That could not be written. Without it none are lost. */
  readonly lostLines?: number;
}

export interface AuditOptions {
  readonly log: AuditLog;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  /** Default: its own. */
  readonly counts?: RefusalCounts | undefined;
}

export class Audit {
  readonly #options: AuditOptions;
  readonly #counts: RefusalCounts;
  #second = 0;
  #lines = 0;

  constructor(options: AuditOptions) {
    this.#options = options;
    this.#counts = options.counts ?? new RefusalCounts();
  }

  /** Reason -> how many were refused for it. */
  get refusals(): ReadonlyMap<string, number> {
    return this.#counts.byReason;
  }

  /** Lines that could not be written. */
  get lostLines(): number {
    return this.#options.log.lostLines ?? 0;
  }

  refused(refusal: Refusal): void {
    this.count(refusal);
    if (this.#hasRoom()) this.#options.log.warn(refusedFacts(refusal), "Refused");
  }

  /** Without a line. */
  count({ thrown }: Pick<Refusal, "thrown">): void {
    this.#counts.count(reasonOf(thrown), thrown);
  }

  /** An error goes out to a client: it counts unless it did before, or is none of the gateway's own. */
  sent(thrown: unknown): void {
    this.#counts.sent(thrown);
  }

  /** Writes a line for `again` more refusals, which are counted already. */
  refusedAgain(refusal: Refusal, again: number): void {
    if (this.#hasRoom()) this.#options.log.warn({ ...refusedFacts(refusal), again }, "Refused again");
  }

  /** A request or a connection was let in. */
  admitted(caller: Caller, { surface, address, sessionId }: Admission): void {
    if (caller.isAnybody) return;
    const facts = { surface, address, ...sessionOf(sessionId), ...factsOf(caller) };
    this.#options.log.info({ audit: "admitted", ...facts }, "Admitted");
  }

  /** A key minted a token. */
  minted(caller: Caller, { tokenId, subject }: { readonly tokenId: string; readonly subject: string }): void {
    const facts = { ...factsOf(caller), minted: tokenId, for: subject };
    this.#options.log.info({ audit: "minted", ...facts }, "Minted a token");
  }

  /** The upstream has billed these for a request that was passed on. */
  spent(
    caller: Caller,
    { surface, characters }: { readonly surface: string; readonly characters: number },
  ): void {
    if (caller.isAnybody) return;
    this.#options.log.info({ audit: "spent", surface, characters, ...factsOf(caller) }, "Spent");
  }

  /** Most of a budget is spent. */
  budgetLow({ id, spent, limit }: Pick<LowBudget, "id" | "spent" | "limit">): void {
    this.#options.log.warn(
      { audit: "budget_low", of: id, characters: spent, limit },
      "Budget is nearly spent",
    );
  }

  /** A connection lost its right while it stood. */
  ended(caller: Caller, reason: string): void {
    this.#options.log.info({ audit: "ended", reason, ...factsOf(caller) }, "Ended");
  }

  #hasRoom(): boolean {
    const second = Math.floor(this.#options.nowMs() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#lines = 0;
    }
    this.#lines += 1;
    return this.#lines <= MAX_REFUSALS_A_SECOND;
  }
}

interface Admission {
  readonly surface: string;
  readonly address: string;
  /** null: it is about no session. */
  readonly sessionId: string | null;
}

function refusedFacts({ thrown, surface, address, caller, sessionId = null, command }: Refusal) {
  return {
    audit: "refused",
    reason: reasonOf(thrown),
    surface,
    ...(command === undefined ? {} : { command }),
    address,
    ...sessionOf(sessionId),
    ...(thrown instanceof AccessError ? thrown.facts : {}),
    ...(caller === null ? {} : factsOf(caller)),
  };
}

/** Nothing where no keys are set. */
function factsOf({ key, token }: Caller) {
  return {
    ...(key === null ? {} : { key: key.id }),
    ...(token === null ? {} : { subject: token.subject, token: token.id }),
  };
}

/** Names of sessions can be those of calls or people: the same name has the same digest. */
function sessionOf(name: string | null) {
  if (name === null) return {};
  return { session: hash("sha256", name, "base64url").slice(0, 16) };
}
