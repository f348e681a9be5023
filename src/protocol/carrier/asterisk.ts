/**
 * Asterisk chan_websocket: binary messages are bare media, text messages are commands and events, as plain text or as
 * JSON, whichever the channel's first message is in. Asterisk cuts and times media itself, takes whole multiples of
 * `optimal_frame_size` only, queues 1000 frames and says MEDIA_XOFF at 900 and MEDIA_XON below 800. FLUSH_MEDIA drops
 * marks without a word. Commands have at most 128 bytes: ours have at most 80.
 */
import type { AudioFormat } from "../vocabulary.ts";
import {
  type CallStart,
  type CarrierCodec,
  type CarrierDialect,
  type CarrierEvent,
  digitEvent,
  knownName,
  NO_EVENTS,
  odd,
  type Wire,
} from "./carrier.ts";
import { bytesPerMs } from "./carrier-format.ts";
import { checkLength, protocolError, readFields } from "./fields.ts";
import { PendingMarks } from "./pending-marks.ts";

/** 200 ms of 48 kHz; a message may have 65,500 bytes. */
const MAX_MEDIA_BYTES = 19_200;

/** Asterisk's names of formats. Opus, G.729 and Speex pass through it: no command works on them. */
const FORMATS: ReadonlyMap<string, AudioFormat> = new Map([
  ["ulaw", "ulaw_8000"],
  ["alaw", "alaw_8000"],
  ["slin", "pcm_8000"],
  ["slin16", "pcm_16000"],
  ["slin24", "pcm_24000"],
  ["slin32", "pcm_32000"],
  ["slin48", "pcm_48000"],
]);

/** Fields of one event, at most. */
const MAX_FIELDS = 32;

/** In both of its shapes: `NAME key:value key:value` and `{"event":"NAME","key":value}`. */
interface AsteriskEvent {
  readonly name: string;
  readonly isJson: boolean;
  /** The id that came with the mark; empty where none did. */
  readonly correlationId: string;
  /** The channel's variables (JSON only). */
  readonly variables: Readonly<Record<string, string>>;
  /** A string or number of the event. */
  field(name: string): string | undefined;
}

class AsteriskCall implements CarrierCodec {
  readonly #marks = new PendingMarks();
  #call: CallStart | null = null;
  #isJson = false;

  read(message: Wire): readonly CarrierEvent[] {
    if (typeof message !== "string") return this.#takeAudio(message);
    const event = readAsteriskEvent(message);
    if (event.name === "MEDIA_START") return this.#start(event);
    if (this.#call === null) throw protocolError("asterisk", "an event before MEDIA_START");
    switch (event.name) {
      case "MEDIA_MARK_PROCESSED":
        return this.#marks.answerEvents(event.correlationId);
      case "MEDIA_XOFF":
        return [{ kind: "hold" }];
      case "MEDIA_XON":
        return [{ kind: "goOn" }];
      case "DTMF_END":
        return digitEvent(event.field("digit") ?? "", undefined);
      case "ERROR":
        return odd("Asterisk reports an error");
      case "STATUS":
      case "QUEUE_DRAINED":
      case "MEDIA_BUFFERING_COMPLETED":
        return NO_EVENTS;
      default:
        return odd(`an event that is not known: ${knownName(event.name)}`);
    }
  }

  audio(frames: readonly Uint8Array[]): readonly Wire[] {
    const messages: Wire[] = [];
    let from = 0;
    let bytes = 0;
    frames.forEach((frame, at) => {
      if (at > from && bytes + frame.length > MAX_MEDIA_BYTES) {
        messages.push(joined(frames.slice(from, at)));
        from = at;
        bytes = 0;
      }
      bytes += frame.length;
    });
    if (frames.length > 0) messages.push(joined(frames.slice(from)));
    return messages;
  }

  mark(name: string): Wire | null {
    if (!this.#marks.ask(name)) return null;
    return this.#isJson ? `{"command":"MARK_MEDIA","correlation_id":"${name}"}` : `MARK_MEDIA ${name}`;
  }

  clear(): readonly Wire[] {
    if (this.#call === null) return [];
    this.#marks.clear();
    return [this.#command("FLUSH_MEDIA")];
  }

  flush(): readonly Wire[] {
    return [];
  }

  hangUp(): readonly Wire[] {
    return this.#call === null ? [] : [this.#command("HANGUP")];
  }

  #command(name: string): string {
    return this.#isJson ? `{"command":"${name}"}` : name;
  }

  #start(event: AsteriskEvent): readonly CarrierEvent[] {
    if (this.#call !== null) throw protocolError("asterisk", "a second MEDIA_START");
    const format = FORMATS.get(event.field("format") ?? "");
    if (format === undefined) {
      throw protocolError("asterisk", `the format is not one of ${[...FORMATS.keys()].join(", ")}`);
    }
    const frameMs = Number(event.field("ptime") ?? 20);
    const isFrameLength = frameMs >= 10 && frameMs <= 100 && frameMs % 10 === 0;
    if (!isFrameLength || Number(event.field("optimal_frame_size")) !== bytesPerMs(format) * frameMs) {
      throw protocolError(
        "asterisk",
        "optimal_frame_size is not that of the format and a ptime of 10 to 100 ms",
      );
    }
    const streamId = event.field("channel_id") ?? event.field("connection_id") ?? "";
    if (streamId === "") throw protocolError("asterisk", "channel_id is missing");
    this.#isJson = event.isJson;
    const { variables } = event;
    this.#call = { callId: streamId, streamId, parameters: variables, callerFormat: format, format, frameMs };
    return [{ kind: "started", call: this.#call }];
  }

  #takeAudio(audio: Uint8Array): readonly CarrierEvent[] {
    checkLength("asterisk", audio);
    if (this.#call === null) throw protocolError("asterisk", "media before MEDIA_START");
    return audio.length === 0 ? NO_EVENTS : [{ kind: "media", audio }];
  }
}

/** Throws `carrier_protocol` for JSON that is no event and for text that begins with no name. */
function readAsteriskEvent(text: string): AsteriskEvent {
  checkLength("asterisk", text);
  return text.startsWith("{") ? readJson(text) : readPlain(text);
}

function readJson(text: string): AsteriskEvent {
  const fields = readFields("asterisk", text);
  const values = new Map(Object.entries(fields.parameters()));
  return {
    name: fields.text("event"),
    isJson: true,
    correlationId: fields.optionalText("correlation_id") ?? "",
    variables: fields.optionalObject("channel_variables")?.parameters() ?? {},
    field: (name) => values.get(name),
  };
}

function readPlain(text: string): AsteriskEvent {
  const [name = "", ...words] = text.split(" ", MAX_FIELDS);
  if (!/^[A-Z][A-Z_]{0,63}$/.test(name)) throw protocolError("asterisk", "a text message is no event");
  const values = new Map(
    words.flatMap((word) => {
      const at = word.indexOf(":");
      return at > 0 ? [[word.slice(0, at), word.slice(at + 1)] as const] : [];
    }),
  );
  return {
    name,
    isJson: false,
    correlationId: words[0] ?? "",
    variables: {},
    field: (field) => values.get(field),
  };
}

/** One frame goes as it is; nobody changes it any more. */
function joined(frames: readonly Uint8Array[]): Uint8Array {
  const [first] = frames;
  return frames.length === 1 && first !== undefined ? first : Buffer.concat(frames);
}

/** https://docs.asterisk.org/Configuration/Channel-Drivers/WebSocket/ */
export const asterisk: CarrierDialect = {
  name: "asterisk",
  subprotocols: ["media"],
  leadMs: 500,
  markMs: 200,
  open: () => new AsteriskCall(),
};
