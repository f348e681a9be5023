/** What a node says of itself twice a second, and where it stands: facts and messages, pure. */

/**
 * Version of all that nodes say to one another: heartbeats, entries of the tables, relayed messages, usage. A node of another
 * version is seen, and nothing else is done with it.
 */
export const BUS_VERSION = 3;

/** What others need to know of a node to place a session there, or to send a client there. */
export interface NodeFacts {
  /** Where clients reach it: `wss://a.example.com`; that of a worker leads to all of its machine. Empty until it listens. */
  readonly url: string;
  /** 0 is idle, 1 is full, and more is too much. */
  readonly load: number;
  /** It takes nothing new. */
  readonly isDraining: boolean;
  /** The process that goes on with its sessions when it has died; null: none. */
  readonly buddy: string | null;
  /** Nodes with the same one die together. */
  readonly machine: string;
}

/** Sessions may be opened there, or be given to it. */
export function takesSessions({ url, isDraining }: NodeFacts): boolean {
  return url !== "" && !isDraining;
}

export interface Heartbeat {
  readonly version: number;
  readonly name: string;
  /** Names the process: a node that was started again has another. */
  readonly incarnation: string;
  readonly facts: NodeFacts;
  /** The last one: the node goes in order. */
  readonly isLeaving: boolean;
}

/** Subject that all nodes listen to. */
export const HEARTBEATS = "node.heartbeat";

const MAX_URL_CHARS = 2048;
/** Longest name of a host (RFC 1035 section 2.3.4). */
const MAX_MACHINE_CHARS = 255;
/** What a node of another version counts as: nobody is sent there. */
const UNREADABLE: NodeFacts = { url: "", load: 1, isDraining: true, buddy: null, machine: "" };
const NODE_NAME = /^[\w-]{1,64}$/;

export function isNodeName(text: string): boolean {
  return NODE_NAME.test(text);
}

export function encodeHeartbeat(heartbeat: Omit<Heartbeat, "version">): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ version: BUS_VERSION, ...heartbeat }));
}

/** Undefined for what is none. Of another version, these are read: version, name, incarnation and whether it is leaving. */
export function decodeHeartbeat(bytes: Uint8Array): Heartbeat | undefined {
  const value = readJson(bytes);
  if (!isRecord(value)) return undefined;
  const { version, name, incarnation, isLeaving } = value;
  if (typeof version !== "number" || typeof name !== "string" || !isNodeName(name)) return undefined;
  if (typeof incarnation !== "string" || !isNodeName(incarnation) || typeof isLeaving !== "boolean")
    return undefined;
  const facts = version === BUS_VERSION ? factsOf(value.facts) : UNREADABLE;
  return facts === undefined ? undefined : { version, name, incarnation, isLeaving, facts };
}

function factsOf(value: unknown): NodeFacts | undefined {
  if (!isRecord(value)) return undefined;
  const { url, load, isDraining, buddy = null, machine } = value;
  if (typeof url !== "string" || url.length > MAX_URL_CHARS || typeof load !== "number") return undefined;
  if (typeof isDraining !== "boolean") return undefined;
  if (typeof machine !== "string" || machine.length > MAX_MACHINE_CHARS) return undefined;
  if (buddy !== null && (typeof buddy !== "string" || !isNodeName(buddy))) return undefined;
  return { url, load: Math.max(0, load), isDraining, buddy, machine };
}

function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    // Not JSON, or not text.
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
