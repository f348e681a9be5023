/**
 * jambonz `listen` (also `stream`) with `bidirectionalAudio: { enabled, streaming: true, sampleRate }`: one JSON message
 * about the call, then 16-bit little-endian audio in binary messages both ways. The rate that jambonz wants to be sent
 * is not in it: `sample_rate` of the URL's query or of `metadata` says it, else it is the caller's.
 * Marks stand in jambonz's buffer as samples of -1, so that none such may be sent; at most 30 wait.
 */
import type { AudioFormat } from "../vocabulary.ts";
import {
  type CallStart,
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
import { bytesPerMs, linearFormat } from "./carrier-format.ts";
import { checkLength, type Fields, protocolError, readFields } from "./fields.ts";
import { PendingMarks } from "./pending-marks.ts";

const MAX_MARKS = 30;
/** jambonz plays nothing until it has this much. */
const PREBUFFER_MS = 80;
/** DTMF durations count samples at 8 kHz. */
const DURATION_UNITS_PER_MS = 8;
const OWN_FIELDS = ["callSid", "from", "to", "sampleRate", "mixType"];

class JambonzCall implements CarrierCodec {
  readonly #hello: CarrierHello;
  readonly #marks = new PendingMarks(MAX_MARKS);
  #call: CallStart | null = null;
  /** Sent since the last clear, how much of it has surely been played, and how much stood before each mark. */
  #sentBytes = 0;
  #playedBytes = 0;
  /** Sent in the last message: what came before it may have been played, without a word. */
  #lastBytes = 0;
  readonly #bytesBefore = new Map<string, number>();

  constructor(hello: CarrierHello) {
    this.#hello = hello;
  }

  read(message: Wire): readonly CarrierEvent[] {
    if (typeof message !== "string") return this.#takeAudio(message);
    const fields = readFields("jambonz", message);
    if (this.#call === null) return this.#start(fields);
    if (fields.has("callSid") && fields.has("sampleRate")) throw protocolError("jambonz", "a second start");
    if (fields.optionalText("event") === "dtmf") {
      const duration = fields.optionalCount("duration");
      const durationMs = duration === undefined ? undefined : Math.round(duration / DURATION_UNITS_PER_MS);
      return digitEvent(fields.text("dtmf"), durationMs);
    }
    if (fields.optionalText("type") === "mark") return this.#answerMark(fields.object("data"));
    return odd(`a message that is not known: ${knownName(fields.optionalText("type") ?? "")}`);
  }

  audio(frames: readonly Uint8Array[]): readonly Wire[] {
    if (frames.length === 0) return [];
    // Always a copy: frames are shared with other listeners.
    const audio = Buffer.concat(frames);
    this.#sentBytes += audio.length;
    this.#lastBytes = audio.length;
    return [withoutMarkers(audio)];
  }

  mark(name: string): Wire | null {
    if (!this.#marks.ask(name)) return null;
    this.#bytesBefore.set(name, this.#sentBytes);
    return `{"type":"mark","data":{"name":"${name}"}}`;
  }

  /** The marks first: those that killAudio's empty buffer lets go are reported as cleared then. */
  clear(): readonly Wire[] {
    if (this.#call === null) return [];
    this.#sentBytes = 0;
    this.#playedBytes = 0;
    this.#bytesBefore.clear();
    this.#marks.clear();
    return [`{"type":"clearMarks"}`, `{"type":"killAudio"}`];
  }

  /**
   * Where so little may wait that jambonz, should it have run dry, would keep it for the next utterance: silence
   * completes the prebuffer.
   */
  flush(): readonly Wire[] {
    const waitingBytes = this.#sentBytes - this.#playedBytes;
    if (this.#call === null || waitingBytes === 0) return [];
    const surelyWaiting = Math.min(waitingBytes, this.#lastBytes);
    const missing = bytesPerMs(this.#call.format) * PREBUFFER_MS - surelyWaiting;
    if (missing <= 0) return [];
    this.#sentBytes += missing;
    this.#lastBytes += missing;
    return [new Uint8Array(missing)];
  }

  hangUp(): readonly Wire[] {
    return [`{"type":"disconnect"}`];
  }

  #start(message: Fields): readonly CarrierEvent[] {
    const callId = message.id("callSid");
    const parameters = {
      ...message.parameters(OWN_FIELDS),
      ...message.optionalObject("metadata")?.parameters(),
    };
    const callerRate = message.optionalCount("sampleRate") ?? 8000;
    const wanted = this.#hello.query.get("sample_rate") ?? parameters.sample_rate ?? callerRate;
    this.#call = {
      callId,
      streamId: callId,
      from: message.optionalId("from"),
      to: message.optionalId("to"),
      parameters,
      callerFormat: message.optionalText("mixType") === "stereo" ? null : linearFormat(callerRate),
      format: wantedFormat(Number(wanted)),
      frameMs: 20,
    };
    return [{ kind: "started", call: this.#call }];
  }

  #takeAudio(audio: Uint8Array): readonly CarrierEvent[] {
    checkLength("jambonz", audio);
    if (this.#call === null) throw protocolError("jambonz", "audio before the call's metadata");
    return this.#call.callerFormat === null || audio.length === 0 ? NO_EVENTS : [{ kind: "media", audio }];
  }

  #answerMark(data: Fields): readonly CarrierEvent[] {
    const name = data.id("name");
    const isPlayed = data.optionalText("event") === "playout";
    const answer = this.#marks.answer(name);
    if (answer === "played") this.#settle(name);
    if (answer === "unknown") return odd("a mark that was not asked for");
    return isPlayed && answer === "played" ? [{ kind: "played", name }] : NO_EVENTS;
  }

  /** The mark is reached, and with it those before. */
  #settle(reached: string): void {
    this.#playedBytes = this.#bytesBefore.get(reached) ?? this.#playedBytes;
    for (const name of this.#bytesBefore.keys()) {
      this.#bytesBefore.delete(name);
      if (name === reached) return;
    }
  }
}

/** Every sample of -1 becomes 0, in place. */
function withoutMarkers(audio: Buffer): Uint8Array {
  for (let at = audio.indexOf(0xff); at >= 0; at = audio.indexOf(0xff, at)) {
    const isSample = at % 2 === 0 && audio[at + 1] === 0xff;
    if (isSample) audio.fill(0, at, at + 2);
    at += isSample ? 2 : 1;
  }
  return audio;
}

function wantedFormat(sampleRate: number): AudioFormat {
  const format = linearFormat(sampleRate);
  if (format === null) throw protocolError("jambonz", "sample_rate is not a rate that is known here");
  return format;
}

/** https://docs.jambonz.org/verbs/verbs/listen; the buffer's ways are those of the public mod_audio_fork. */
export const jambonz: CarrierDialect = {
  name: "jambonz",
  subprotocols: ["audio.jambonz.org", "audio.drachtio.org"],
  leadMs: 500,
  markMs: 500,
  open: (hello) => new JambonzCall(hello),
};
