/** Reads the lines of a ledger, whatever is in them: those of other programs, torn ones, and ones of later versions. */
import { GatewayError } from "../errors.ts";
import { LEDGER_VERSION } from "./entries.ts";

/** What is read of a line; unknown fields are kept out. */
export interface ReadLine {
  readonly id: string;
  /** Unix ms. */
  readonly atMs: number;
  readonly node: string;
  readonly tenant: string;
  readonly key: string;
  readonly model: string;
  readonly voice: string;
  readonly spent: Spent;
}

export type Spent =
  | {
      readonly type: "request";
      readonly upstream: string;
      /** null: nobody knows. */
      readonly characters: number | null;
      /** They are the text's own: the upstream has not said what it bills. */
      readonly isCounted: boolean;
      readonly audioMs: number;
      readonly isCached: boolean;
    }
  | { readonly type: "heard"; readonly characters: number; readonly ms: number };

/** Longer ones are none of ours. */
const MAX_LINE_CHARS = 64 * 1024;
const MAX_NAME_CHARS = 1000;

/** null: it is damaged, or none of a ledger. Throws invalid_config where a later version wrote it. */
export function readLine(line: string): ReadLine | null {
  const value = line.length > MAX_LINE_CHARS ? null : objectIn(line);
  if (value === null || typeof value.v !== "number") return null;
  if (value.v !== LEDGER_VERSION) {
    throw new GatewayError(
      "invalid_config",
      `The ledger is of version ${value.v}, expected ${LEDGER_VERSION}: read it with the voicewire that wrote it`,
    );
  }
  const atMs = typeof value.at === "string" ? Date.parse(value.at) : Number.NaN;
  const spent = spentIn(value);
  if (Number.isNaN(atMs) || spent === null || typeof value.id !== "string") return null;
  return {
    id: value.id,
    atMs,
    node: nameIn(value.node),
    tenant: nameIn(value.tenant),
    key: nameIn(value.key),
    model: nameIn(value.model),
    voice: nameIn(value.voice),
    spent,
  };
}

type JsonObject = Readonly<Record<string, unknown>>;

function spentIn(value: JsonObject): Spent | null {
  if (value.type === "heard") {
    const [characters, ms] = [countIn(value.chars_heard), countIn(value.heard_ms)];
    return characters === null || ms === null ? null : { type: "heard", characters, ms };
  }
  if (value.type !== "request") return null;
  const [sent, billed] = [value.chars_sent ?? null, value.chars_billed ?? null];
  // A figure that can't be read is damage, and not the figure of another.
  if ([sent, billed].some((figure) => figure !== null && countIn(figure) === null)) return null;
  return {
    type: "request",
    upstream: nameIn(value.upstream),
    characters: countIn(billed) ?? countIn(sent),
    isCounted: billed === null,
    audioMs: countIn(value.audio_ms) ?? 0,
    isCached: value.cached === true,
  };
}

function objectIn(line: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as JsonObject) : null;
  } catch {
    return null;
  }
}

function nameIn(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_NAME_CHARS) : "";
}

/** null: it is none. */
function countIn(value: unknown): number | null {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : null;
}
