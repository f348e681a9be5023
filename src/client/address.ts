/** Builds the address of a session's socket from the pieces that a caller has. */
import type { ListenerSettings } from "../protocol/vocabulary.ts";
import type { ReturnQuery } from "./return-point.ts";

/** What to ask for; the gateway fills in the rest and says in `hello` what came of it. */
export interface ConnectionSettings extends Partial<ListenerSettings> {
  /** A listener waits in a session that nobody has opened yet instead of being refused. */
  readonly wait?: boolean;
}

/**
 * `baseUrl` may be http(s) or ws(s), with or without a path prefix; query and fragment are dropped.
 * Throws TypeError where it is no URL.
 */
export function liveUrl(baseUrl: string, where: { session: string; settings?: ConnectionSettings }): string {
  const url = new URL(baseUrl);
  url.protocol = url.protocol === "https:" || url.protocol === "wss:" ? "wss:" : "ws:";
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/live/${encodeURIComponent(where.session)}`;
  url.hash = "";
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(where.settings ?? {})) {
    if (value !== undefined) query.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  url.search = query.toString();
  return url.href;
}

/** The address to come back to: the same place with the settings of now (`configure` may have changed them). */
export function returnUrl(
  url: string,
  where: { resume: ReturnQuery; settings: Partial<ListenerSettings> },
): string {
  const back = new URL(url);
  for (const [name, value] of Object.entries(where.settings)) {
    const text = Array.isArray(value) ? value.join(",") || "none" : String(value);
    if (name !== "role") back.searchParams.set(name, text);
  }
  for (const [name, value] of Object.entries(where.resume)) {
    if (value === null) back.searchParams.delete(name);
    else back.searchParams.set(name, String(value));
  }
  return back.href;
}
