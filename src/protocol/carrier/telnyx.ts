/**
 * Telnyx media streaming with `stream_bidirectional_mode: "rtp"`. What the caller says and what Telnyx wants to be sent
 * have formats of their own, and `start` names the first only: `codec`, `sample_rate` and `byte_order` of the URL's
 * query (else of the custom parameters) say what `stream_bidirectional_codec` and `stream_bidirectional_sampling_rate`
 * are set to. Media may come in any order.
 */
import type { AudioFormat } from "../vocabulary.ts";
import type { CarrierHello } from "./carrier.ts";
import { linearFormat, namedFormat } from "./carrier-format.ts";
import { type Fields, protocolError } from "./fields.ts";
import { anyPieces, type JsonStart, type JsonWords, jsonDialect } from "./json-call.ts";

const WORDS: JsonWords = {
  carrier: "telnyx",
  streamIdField: "stream_id",
  playedEvent: "mark",
  playedName: (message) => message.object("mark").id("name"),
  isUnordered: true,
  start,
};

function start(message: Fields, hello: CarrierHello): JsonStart {
  const details = message.object("start");
  const streamId = message.id("stream_id");
  const clientState = details.optionalId("client_state");
  const parameters: Readonly<Record<string, string>> = {
    ...(clientState === undefined ? {} : { client_state: clientState }),
    ...details.optionalObject("custom_parameters")?.parameters(),
  };
  const asked = (name: string): string | undefined => hello.query.get(name) ?? parameters[name];
  const format = wantedFormat(asked("codec") ?? "PCMU", asked("sample_rate"));
  const caller = callerFormat(details.object("media_format"));
  const isBigEndian = asked("byte_order") === "be";
  return {
    call: {
      callId: details.optionalId("call_control_id") ?? streamId,
      streamId,
      from: details.optionalId("from"),
      to: details.optionalId("to"),
      parameters,
      callerFormat: caller,
      format,
      frameMs: 20,
    },
    mediaHead: `{"event":"media","media":{"payload":"`,
    mediaTail: `"}}`,
    markHead: `{"event":"mark","mark":{"name":"`,
    markTail: `"}}`,
    clear: `{"event":"clear"}`,
    // 20 ms to 30 s a message; Opus: one packet.
    pieces: format === "opus_48000" ? null : anyPieces(format),
    isBigEndian: isBigEndian && format.startsWith("pcm"),
    isCallerBigEndian: isBigEndian && caller?.startsWith("pcm") === true,
  };
}

/** Opus and the wideband codecs are not decoded here: speakers do not get such a voice. */
function callerFormat(mediaFormat: Fields): AudioFormat | null {
  const isMono = (mediaFormat.optionalCount("channels") ?? 1) === 1;
  return isMono ? namedFormat(mediaFormat.text("encoding"), mediaFormat.count("sample_rate")) : null;
}

function wantedFormat(codec: string, rate: string | undefined): AudioFormat {
  if (codec === "OPUS") return "opus_48000";
  if (codec === "L16") {
    const linear = linearFormat(Number(rate ?? 16000));
    if (linear !== null) return linear;
    throw protocolError("telnyx", "sample_rate is not one of 8000, 16000, 24000");
  }
  const format = namedFormat(codec, 8000);
  if (format !== null) return format;
  throw protocolError(
    "telnyx",
    "codec is not one of PCMU, PCMA, L16, OPUS: G722 and AMR-WB are not made here",
  );
}

/** https://developers.telnyx.com/docs/voice/programmable-voice/media-streaming */
export const telnyx = jsonDialect(WORDS);
