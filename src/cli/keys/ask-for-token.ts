/** Asks a running gateway for a token (`POST /tokens`): for who has a key of it, but not its file. */
import type { Grants } from "../../access/grants.ts";
import { GatewayError } from "../../errors.ts";
import { usageError } from "../exit.ts";
import { safeText } from "../output/terminal-text.ts";
import { reasonOf } from "../say/voices.ts";
import { keyRefused } from "../session/gateway-key.ts";

const TIMEOUT_MS = 5_000;
const CODES = { 403: "forbidden", 429: "rate_limited" } as const;

interface AskedToken {
  readonly subject: string;
  readonly grants: Grants;
  readonly lifeSeconds: number;
}

/** Throws what the gateway answers, invalid_config where the key can't be one, and upstream_unreachable where there is none. */
export async function askForToken(
  { baseUrl, key }: { readonly baseUrl: string; readonly key: string },
  { subject, grants, lifeSeconds }: AskedToken,
): Promise<string> {
  // Else what fails would name the header with the key in it.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw usageError("VOICEWIRE_KEY: not a key, expected what `voicewire keys new` has printed", "key");
  }
  let status: number;
  let body: unknown;
  try {
    const response = await fetch(`${baseUrl}/tokens`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ subject, grants, expires_in_seconds: lifeSeconds }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    status = response.status;
    body = await response.json().catch(() => undefined);
  } catch (cause) {
    const message = `No gateway answers at ${baseUrl}: ${reasonOf(cause)}; check --url`;
    throw new GatewayError("upstream_unreachable", message, { cause });
  }
  const token = fieldOf(body, "token");
  if (status === 201 && typeof token === "string") return token;
  if (status === 401) throw new GatewayError("unauthorized", keyRefused(baseUrl, key));
  const said = fieldOf(fieldOf(body, "error"), "message");
  const what = typeof said === "string" ? safeText(said) : `status ${status}, expected 201 with a token`;
  const code = status === 403 || status === 429 ? CODES[status] : "invalid_field";
  throw new GatewayError(code, `The gateway at ${baseUrl}: ${what}`);
}

function fieldOf(body: unknown, name: string): unknown {
  return typeof body === "object" && body !== null ? Reflect.get(body, name) : undefined;
}
