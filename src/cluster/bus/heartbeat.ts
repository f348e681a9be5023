/** What a node says of itself twice a second, and where it stands: facts and messages, pure. */

/** What others need to know of a node to place a session there, or to send a client there. */
export interface NodeFacts {
  /** Where clients reach it: `wss://a.example.com`. */
  readonly url: string;
  /** 0 is idle, 1 is full. */
  readonly load: number;
  /** It takes nothing new. */
  readonly isDraining: boolean;
  /** The process that goes on with its sessions when it has died; null: none. */
  readonly buddy: string | null;
}

export interface Heartbeat {
  readonly name: string;
  /** Names the process: a node that was started again has another. */
  readonly incarnation: string;
  readonly facts: NodeFacts;
  /** The last one: the node goes in order. */
  readonly isLeaving: boolean;
}

const MAX_URL_CHARS = 2048;
const NODE_NAME = /^[\w-]{1,64}$/;

export function isNodeName(text: string): boolean {
  return NODE_NAME.test(text);
}

export function encodeHeartbeat(heartbeat: Heartbeat): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(heartbeat));
}

/** Undefined for what is none: of another program, or of a version to come. */
export function decodeHeartbeat(bytes: Uint8Array): Heartbeat | undefined {
  const value = readJson(bytes);
  if (!isRecord(value) || !isRecord(value.facts)) return undefined;
  const { name, incarnation, isLeaving } = value;
  const { url, load, isDraining, buddy = null } = value.facts;
  if (typeof name !== "string" || !isNodeName(name) || typeof incarnation !== "string") return undefined;
  if (!isNodeName(incarnation) || typeof isLeaving !== "boolean" || typeof isDraining !== "boolean")
    return undefined;
  if (typeof url !== "string" || url.length > MAX_URL_CHARS || typeof load !== "number") return undefined;
  if (buddy !== null && (typeof buddy !== "string" || !isNodeName(buddy))) return undefined;
  const facts = { url, load: Math.min(1, Math.max(0, load)), isDraining, buddy };
  return { name, incarnation, isLeaving, facts };
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
