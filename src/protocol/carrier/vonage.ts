/**
 * Vonage Voice API WebSocket: 16-bit little-endian audio in binary messages of exactly 20 ms both ways, JSON beside it.
 * `notify` comes back when the audio before it has been played: it is the mark. `websocket:cleared` answers a clear.
 */
import { randomUUID } from "node:crypto";
import type { AudioFormat } from "../vocabulary.ts";
import {
  type CarrierCodec,
  type CarrierDialect,
  type CarrierEvent,
  type CarrierHello,
  digitEvent,
  knownName,
  NO_EVENTS,
  odd,
  type Wire,
} from "./carrier.ts";
import { linearFormat } from "./carrier-format.ts";
import { checkLength, type Fields, protocolError, readFields } from "./fields.ts";
import { PendingMarks } from "./pending-marks.ts";

/** Fields of the first message that are not the application's own. */
const OWN_FIELDS = ["event", "content-type"];

class VonageCall implements CarrierCodec {
  readonly #hello: CarrierHello;
  readonly #marks = new PendingMarks();
  #isStarted = false;

  constructor(hello: CarrierHello) {
    this.#hello = hello;
  }

  read(message: Wire): readonly CarrierEvent[] {
    if (typeof message !== "string") return this.#takeAudio(message);
    const fields = readFields("vonage", message);
    const event = fields.text("event");
    if (event === "websocket:connected") return this.#start(fields);
    if (!this.#isStarted) throw protocolError("vonage", "a message before websocket:connected");
    switch (event) {
      case "websocket:dtmf":
        return digitEvent(fields.text("digit"), fields.optionalCount("duration"));
      case "websocket:cleared":
        this.#marks.confirmClear();
        return NO_EVENTS;
      case "websocket:notify":
        return this.#marks.answerEvents(fields.optionalObject("payload")?.optionalText("mark") ?? "");
      default:
        return odd(`an event that is not known: ${knownName(event)}`);
    }
  }

  audio(frames: readonly Uint8Array[]): readonly Wire[] {
    return frames;
  }

  mark(name: string): Wire | null {
    return this.#marks.ask(name) ? `{"action":"notify","payload":{"mark":"${name}"}}` : null;
  }

  clear(): readonly Wire[] {
    if (!this.#isStarted) return [];
    this.#marks.clear();
    return [`{"action":"clear"}`];
  }

  flush(): readonly Wire[] {
    return [];
  }

  /** Vonage has no word for it: closing the socket is how it is said. */
  hangUp(): readonly Wire[] {
    return [];
  }

  #start(message: Fields): readonly CarrierEvent[] {
    if (this.#isStarted) throw protocolError("vonage", "a second websocket:connected");
    const parameters = message.parameters(OWN_FIELDS);
    const format = formatOf(message.text("content-type"));
    this.#isStarted = true;
    // Vonage names no call: an application that wants its own id hands it over in the endpoint's headers.
    const callId = parameters.call_uuid ?? parameters.uuid ?? connectionId(this.#hello);
    return [
      {
        kind: "started",
        call: { callId, streamId: callId, parameters, callerFormat: format, format, frameMs: 20 },
      },
    ];
  }

  #takeAudio(audio: Uint8Array): readonly CarrierEvent[] {
    checkLength("vonage", audio);
    if (!this.#isStarted) throw protocolError("vonage", "audio before websocket:connected");
    return audio.length === 0 ? NO_EVENTS : [{ kind: "media", audio }];
  }
}

/** The connection's `Sec-WebSocket-Key` in hexadecimal, which is new for each connection (RFC 6455 section 4.1). */
function connectionId(hello: CarrierHello): string {
  const key = hello.headers.get("sec-websocket-key") ?? "";
  return Buffer.from(key, "base64").toString("hex") || randomUUID();
}

function formatOf(contentType: string): AudioFormat {
  const rate = /^audio\/l16;\s*rate=(\d{1,6})$/i.exec(contentType)?.[1];
  const format = linearFormat(Number(rate));
  if (format === null)
    throw protocolError("vonage", "content-type is not audio/l16 at a rate that is known here");
  return format;
}

/** https://developer.vonage.com/en/voice/voice-api/concepts/websockets */
export const vonage: CarrierDialect = {
  name: "vonage",
  subprotocols: [],
  leadMs: 500,
  markMs: 200,
  open: (hello) => new VonageCall(hello),
};
