/** Which page's scripts may read an answer (W3C Fetch, "CORS protocol"): that of the request's origin, where it is allowed. */
import type { HttpResponse } from "uWebSockets.js";

/** Notes that scripts of this origin may read the answer. */
export function allowReader(res: HttpResponse, origin: string): void {
  res.reader = origin;
}

/** Headers of an answer that pages of allowed origins may read. */
export function corsHeaders(res: HttpResponse): Readonly<Record<string, string>> {
  const reader: unknown = res.reader;
  // Caches keep answers apart whoever asks first.
  if (typeof reader !== "string") return { vary: "Origin" };
  return { vary: "Origin", "access-control-allow-origin": reader };
}
