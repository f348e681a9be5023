/**
 * A request that waits for an answer of other nodes: the library takes its own back when the handler returns. At most what came
 * with the request is kept of its body; the client sends the rest when its handler reads it.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";

/** More than any route has. */
const MAX_PARAMETERS = 8;

type BodyHandler = (chunk: ArrayBuffer, isLast: boolean) => void;

/** Only before the request's handler returns. `ready` is called unless the client has gone by then. */
export function holdRequest(
  res: HttpResponse,
  req: HttpRequest,
): (ready: (held: HttpRequest) => void) => void {
  const held = copyOf(req);
  const readOn = holdBody(res);
  let isGone = false;
  res.onAborted(() => {
    isGone = true;
  });
  return (ready) => {
    if (isGone) return;
    readOn();
    ready(held);
  };
}

function copyOf(req: HttpRequest): HttpRequest {
  const url = req.getUrl();
  const method = req.getMethod();
  const sentMethod = req.getCaseSensitiveMethod();
  const query = req.getQuery();
  const parameters = Array.from({ length: MAX_PARAMETERS }, (_, index) => req.getParameter(index));
  const headers: [name: string, value: string][] = [];
  req.forEach((name, value) => {
    headers.push([name, value]);
  });
  // The library gives the first of several, too.
  const first = new Map(headers.toReversed());
  const copy = {
    getUrl: () => url,
    getMethod: () => method,
    getCaseSensitiveMethod: () => sentMethod,
    getQuery: () => query,
    getParameter: (index: number) => parameters[index],
    getHeader: (name: string) => first.get(name) ?? "",
    forEach: (each: (name: string, value: string) => void) => {
      for (const [name, value] of headers) each(name, value);
    },
    // Only routes that ask for no credential yield, and their requests are never held.
    setYield: () => {
      throw new TypeError("Request was held: no other route can take it");
    },
  };
  return copy as unknown as HttpRequest;
}

/** Keeps what comes until its handler reads it. Gives what lets the client send on. */
function holdBody(res: HttpResponse): () => void {
  const chunks: { readonly bytes: ArrayBuffer; readonly isLast: boolean }[] = [];
  let handler: BodyHandler | null = null;
  let isPaused = false;
  res.onData((chunk, isLast) => {
    // The chunk's memory is taken back when this returns.
    chunks.push({ bytes: chunk.slice(0), isLast });
    if (isLast || isPaused) return;
    isPaused = true;
    res.pause();
  });
  const onData = res.onData.bind(res);
  res.onData = (reader) => {
    res.onData = onData;
    onData(reader);
    handler = reader;
    return res;
  };
  return () => {
    if (isPaused) res.resume();
    // Behind the handler's own call, as the library does.
    queueMicrotask(() => {
      for (const { bytes, isLast } of chunks.splice(0)) handler?.(bytes, isLast);
    });
  };
}
