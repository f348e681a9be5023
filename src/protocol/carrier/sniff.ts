/**
 * Which dialect a connection speaks, so that every carrier can be pointed at one address: from the subprotocol that was
 * agreed on, else from the first two text messages.
 */

import { asterisk } from "./asterisk.ts";
import type { CarrierName } from "./carrier.ts";
import { MAX_MESSAGE_LENGTH } from "./fields.ts";
import { jambonz } from "./jambonz.ts";

/** Text messages that are waited for: `connected`, then `start`. */
const MAX_TEXTS = 2;

/** What `start` holds, by carrier; the first that fits. Exotel and Telnyx have words that no other has. */
const STARTS: readonly (readonly [CarrierName, (message: Loose, start: Loose) => boolean])[] = [
  ["telnyx", (message, start) => "stream_id" in message && "call_control_id" in start],
  ["exotel", (_, start) => "stream_sid" in start && "call_sid" in start],
  ["plivo", (_, start) => "streamId" in start && "callId" in start],
  ["twilio", (_, start) => isTwilioId(start.streamSid)],
  ["signalwire", (_, start) => "streamSid" in start],
];

type Loose = Readonly<Record<string, unknown>>;

/**
 * `texts` are the connection's text messages so far. "more" asks to be called again with the next one; null: none of the
 * carriers known here. The messages are to be read by the dialect's codec afterwards, from the first on.
 */
export function sniffCarrier(subprotocol: string, texts: readonly string[]): CarrierName | "more" | null {
  if (jambonz.subprotocols.includes(subprotocol)) return "jambonz";
  if (asterisk.subprotocols.includes(subprotocol)) return "asterisk";
  for (const text of texts.slice(0, MAX_TEXTS)) {
    const verdict = sniffText(text);
    if (verdict !== "more") return verdict;
  }
  return texts.length < MAX_TEXTS ? "more" : null;
}

function sniffText(text: string): CarrierName | "more" | null {
  if (text.startsWith("MEDIA_START ")) return "asterisk";
  const message = parse(text);
  if (message === null) return null;
  switch (message.event) {
    case "connected":
      return "more";
    case "websocket:connected":
      return "vonage";
    case "MEDIA_START":
      return "asterisk";
    case "start":
      return sniffStart(message);
    default:
      return "callSid" in message && "sampleRate" in message ? "jambonz" : null;
  }
}

function sniffStart(message: Loose): CarrierName | null {
  const start = toLoose(message.start);
  if (start === null) return null;
  return STARTS.find(([, fits]) => fits(message, start))?.[0] ?? null;
}

function isTwilioId(id: unknown): boolean {
  return typeof id === "string" && /^MZ[0-9a-f]{32}$/.test(id);
}

function parse(text: string): Loose | null {
  if (text.length > MAX_MESSAGE_LENGTH) return null;
  try {
    return toLoose(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function toLoose(value: unknown): Loose | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : null;
}
