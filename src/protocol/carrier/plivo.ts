/**
 * Plivo `<Stream bidirectional="true">`. A checkpoint is answered only when all before it has been played, never when a
 * clear takes it away; `clearedAudio` answers the clear.
 */
import { namedFormat } from "./carrier-format.ts";
import { type Fields, protocolError, toParameters } from "./fields.ts";
import { anyPieces, type JsonStart, type JsonWords, jsonDialect } from "./json-call.ts";

const WORDS: JsonWords = {
  carrier: "plivo",
  streamIdField: "streamId",
  playedEvent: "playedStream",
  playedName: (message) => message.id("name"),
  clearedEvent: "clearedAudio",
  start,
};

function start(message: Fields): JsonStart {
  const details = message.object("start");
  const streamId = details.id("streamId");
  const mediaFormat = details.object("mediaFormat");
  const sampleRate = mediaFormat.count("sampleRate");
  const format = namedFormat(mediaFormat.text("encoding"), sampleRate);
  if (format === null) throw protocolError("plivo", "start.mediaFormat is not a format that is known here");
  // What is played has to be of the very type that was negotiated.
  const contentType = format === "ulaw_8000" ? "audio/x-mulaw" : "audio/x-l16";
  const id = JSON.stringify(streamId);
  return {
    call: {
      callId: details.optionalId("callId") ?? streamId,
      streamId,
      parameters: extraHeaders(message.optionalText("extra_headers") ?? ""),
      callerFormat: format,
      format,
      frameMs: 20,
    },
    mediaHead: `{"event":"playAudio","media":{"contentType":"${contentType}","sampleRate":${sampleRate},"payload":"`,
    mediaTail: `"}}`,
    markHead: `{"event":"checkpoint","streamId":${id},"name":"`,
    markTail: `"}`,
    clear: `{"event":"clearAudio","streamId":${id}}`,
    pieces: anyPieces(format),
  };
}

/** `name=value;name2=value2` of the element's extraHeaders; the prefix `X-PH-` that headers have on SIP is taken off. */
function extraHeaders(text: string): Readonly<Record<string, string>> {
  return toParameters(
    text.split(";").flatMap((pair) => {
      const at = pair.indexOf("=");
      return at > 0
        ? [
            [
              pair
                .slice(0, at)
                .trim()
                .replace(/^X-PH-/i, ""),
              pair.slice(at + 1).trim(),
            ] as const,
          ]
        : [];
    }),
  );
}

/** https://www.plivo.com/docs/voice-agents/audio-streaming/concepts/audio-streaming-reference */
export const plivo = jsonDialect(WORDS);
