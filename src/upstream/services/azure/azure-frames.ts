/**
 * The messages of Azure's speech socket: lines of headers, a blank one and a body. Those with audio are binary: the length of
 * the headers in two bytes, the headers, the audio.
 */
import { broken } from "../json-values.ts";

export interface AzureFrame {
  /** What it is: `turn.start`, `audio`, ... */
  readonly path: string;
  readonly body: Buffer;
}

const LENGTH_BYTES = 2;
/** A text begins with the letter of a header; so does no length that headers have. */
const FIRST_LETTER = 0x20;
const BLANK_LINE = Buffer.from("\r\n\r\n");

export function azureMessage(
  path: string,
  { requestId, type, body }: { readonly requestId: string; readonly type: string; readonly body: string },
): string {
  const headers = [
    `Path: ${path}`,
    `X-RequestId: ${requestId}`,
    `X-Timestamp: ${new Date().toISOString()}`,
    `Content-Type: ${type}`,
  ];
  return `${headers.join("\r\n")}\r\n\r\n${body}`;
}

/** Throws upstream_protocol. */
export function readAzureFrame(message: Buffer): AzureFrame {
  const first = message[0] ?? 0;
  const from = first < FIRST_LETTER ? LENGTH_BYTES : 0;
  const to = from === 0 ? message.indexOf(BLANK_LINE) : from + ((first << 8) | (message[1] ?? 0));
  if (to < from || to > message.length) throw broken("its headers do not end");
  const path = pathOf(message.toString("latin1", from, to));
  return { path, body: message.subarray(from === 0 ? to + BLANK_LINE.length : to) };
}

function pathOf(headers: string): string {
  for (const line of headers.split("\r\n")) {
    const colon = line.indexOf(":");
    if (line.slice(0, colon).trim().toLowerCase() === "path")
      return line
        .slice(colon + 1)
        .trim()
        .toLowerCase();
  }
  throw broken("its headers do not say what it is");
}
