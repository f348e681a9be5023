/** Just enough of HTTP/1.1 to read the requests of well-behaved clients: no chunked request bodies, ASCII heads. */

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** Characters of the input that it took. */
  readonly length: number;
}

/** The first request of the input, or null while it is not complete. */
export function parseRequest(input: string): Request | null {
  const headEnd = input.indexOf("\r\n\r\n");
  if (headEnd < 0) return null;
  const head = input.slice(0, headEnd);
  const [method = "", path = ""] = head.slice(0, head.indexOf("\r\n")).split(" ");
  const declared = /\r\ncontent-length: *(\d+)/i.exec(head);
  const bodyBytes = Number(declared?.[1] ?? 0);
  // Benches send ASCII, so that characters are bytes.
  const length = headEnd + 4 + bodyBytes;
  if (input.length < length) return null;
  return { method, path, body: input.slice(headEnd + 4, length), length };
}
