/** What one node says to another of a client that has arrived there, as JSON. */
import { ANYBODY, type Caller } from "../access/caller.ts";
import type { Door } from "../access/door.ts";
import { passCaller } from "../access/passed-caller.ts";
import { withoutTokens } from "./credential.ts";

/** What is passed on of every client. */
interface ClientFacts {
  readonly sessionId: string;
  readonly caller: Caller;
  readonly address: string;
}

/** What the client wants: a connection of the native protocol, an answer over HTTP, a phone call. */
export type ArrivalKind = "client" | "request" | "call";

export interface PassedFacts extends ClientFacts {
  readonly kind: ArrivalKind;
  /** What else its kind has to say; not checked yet. */
  readonly more: Readonly<Record<string, unknown>>;
}

const KINDS: readonly ArrivalKind[] = ["client", "request", "call"];

export function passFacts(
  kind: ArrivalKind,
  { sessionId, caller, address }: ClientFacts,
  more: Readonly<Record<string, unknown>>,
): object {
  return { kind, sessionId, address, caller: passCaller(caller), more };
}

/** A URL's query as another node may see it. Where no keys are set nothing in it is secret, and `hello` names what is ignored. */
export function passedQuery(query: string, { isAnybody }: Caller): string {
  return isAnybody ? query : withoutTokens(query);
}

/** undefined: they can't be read, or its key or token is none of this node's. */
export function readFacts(value: unknown, { access }: Pick<Door, "access">): PassedFacts | undefined {
  if (!isObject(value)) return undefined;
  const { kind: named, sessionId, address, caller: passed, more } = value;
  const kind = KINDS.find((known) => known === named);
  // A call was checked where it arrived, maybe by its carrier's signature: it comes without a key.
  const caller = kind === "call" ? ANYBODY : access.received(passed);
  if (kind === undefined || caller === null || !isObject(more)) return undefined;
  if (typeof sessionId !== "string" || typeof address !== "string") return undefined;
  return { kind, sessionId, address, caller, more };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
