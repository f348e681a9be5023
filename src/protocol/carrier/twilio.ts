/**
 * Twilio Media Streams, bidirectional (`<Connect><Stream>`), and SignalWire's, which are the same but for their ids and
 * their L16. Marks are answered when they are played and when a clear takes them away. Unknown messages are errors for
 * Twilio (31924): nothing else is ever sent.
 */
import { namedFormat } from "./carrier-format.ts";
import { type Fields, protocolError } from "./fields.ts";
import { anyPieces, type JsonStart, type JsonWords, jsonDialect } from "./json-call.ts";

function twilioWords(carrier: "twilio" | "signalwire"): JsonWords {
  return {
    carrier,
    streamIdField: "streamSid",
    playedEvent: "mark",
    playedName: (message) => message.object("mark").id("name"),
    start: (message) => start(carrier, message),
  };
}

function start(carrier: "twilio" | "signalwire", message: Fields): JsonStart {
  const details = message.object("start");
  const streamId = details.optionalId("streamSid") ?? message.id("streamSid");
  const mediaFormat = details.object("mediaFormat");
  const format = namedFormat(mediaFormat.text("encoding"), mediaFormat.count("sampleRate"));
  if (format === null) throw protocolError(carrier, "start.mediaFormat is not a format that is known here");
  const isMono = (mediaFormat.optionalCount("channels") ?? 1) === 1;
  const id = JSON.stringify(streamId);
  return {
    call: {
      callId: details.optionalId("callSid") ?? streamId,
      streamId,
      parameters: details.optionalObject("customParameters")?.parameters() ?? {},
      callerFormat: isMono ? format : null,
      format,
      frameMs: 20,
    },
    mediaHead: `{"event":"media","streamSid":${id},"media":{"payload":"`,
    mediaTail: `"}}`,
    markHead: `{"event":"mark","streamSid":${id},"mark":{"name":"`,
    markTail: `"}}`,
    clear: `{"event":"clear","streamSid":${id}}`,
    pieces: anyPieces(format),
  };
}

/** https://www.twilio.com/docs/voice/media-streams/websocket-messages */
export const twilio = jsonDialect(twilioWords("twilio"));

/** https://developer.signalwire.com/compatibility-api/cxml/voice/stream; its L16 is taken to be little-endian. */
export const signalwire = jsonDialect(twilioWords("signalwire"));
