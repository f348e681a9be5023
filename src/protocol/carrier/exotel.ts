/**
 * Exotel AgentStream (Voicebot applet): Twilio's messages in snake_case. Audio goes in multiples of 320 bytes, at least
 * 100 ms and 3,200 bytes a message (Exotel names both as its minimum; at 8 kHz the bytes are 200 ms), at most 100 kB.
 * What is too short waits, and is made long enough with silence at the end of an utterance. A mark waits for the audio
 * it stands behind.
 */
import type { AudioFormat } from "../vocabulary.ts";
import type { CarrierHello } from "./carrier.ts";
import { bytesPerMs, linearFormat, namedFormat } from "./carrier-format.ts";
import { type Fields, protocolError } from "./fields.ts";
import { type JsonStart, type JsonWords, jsonDialect } from "./json-call.ts";

const STEP_BYTES = 320;
const MIN_BYTES = 3200;
const MIN_MS = 100;

const WORDS: JsonWords = {
  carrier: "exotel",
  streamIdField: "stream_sid",
  playedEvent: "mark",
  playedName: (message) => message.object("mark").id("name"),
  start,
};

function start(message: Fields, hello: CarrierHello): JsonStart {
  const details = message.object("start");
  const streamId = details.optionalId("stream_sid") ?? message.id("stream_sid");
  const format = formatOf(details.optionalObject("media_format"), hello);
  const minBytes = Math.max(MIN_BYTES, Math.ceil((bytesPerMs(format) * MIN_MS) / STEP_BYTES) * STEP_BYTES);
  const id = JSON.stringify(streamId);
  return {
    call: {
      callId: details.optionalId("call_sid") ?? streamId,
      streamId,
      from: details.optionalId("from"),
      to: details.optionalId("to"),
      parameters: details.optionalObject("custom_parameters")?.parameters() ?? {},
      callerFormat: format,
      format,
      frameMs: 20,
    },
    mediaHead: `{"event":"media","stream_sid":${id},"media":{"payload":"`,
    mediaTail: `"}}`,
    markHead: `{"event":"mark","stream_sid":${id},"mark":{"name":"`,
    markTail: `"}}`,
    clear: `{"event":"clear","stream_sid":${id}}`,
    pieces: { minBytes, stepBytes: STEP_BYTES, maxBytes: 4 * minBytes },
  };
}

/** 16-bit little-endian at the rate of `start`, else of the URL's `sample-rate`; mu-law where `start` says so. */
function formatOf(mediaFormat: Fields | undefined, hello: CarrierHello): AudioFormat {
  const encoding = mediaFormat?.optionalText("encoding") ?? "";
  const rate = mediaFormat?.optionalCount("sample_rate") ?? Number(hello.query.get("sample-rate") ?? 8000);
  const named = encoding.includes("law") ? namedFormat(encoding, rate) : linearFormat(rate);
  if (named === null) {
    throw protocolError("exotel", "start.media_format is not a format that is known here");
  }
  return named;
}

/** https://developer.exotel.com/docs/agentstream/websocket-protocol */
export const exotel = jsonDialect(WORDS, { leadMs: 1000, markMs: 400 });
