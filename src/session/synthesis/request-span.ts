/**
 * The span of one request to the upstream. Names follow OpenTelemetry's conventions for generative AI; what has none begins
 * with `vw.`. No text stands in it.
 */
import { splitUpstreamVoice } from "../../protocol/upstream-voice.ts";
import type { Span } from "../../tracing/span.ts";
import type { Traced } from "../../tracing/tracer.ts";
import type { SynthesisRequest } from "../../upstream/types.ts";

/** What all spans of synthesis say. */
export const SPEECH_OPERATION = { "gen_ai.operation.name": "tts", "gen_ai.output.type": "speech" };

/** `tries`: which one this is, from 1. The caller ends it. */
export function requestSpan(
  traced: Traced | undefined,
  request: SynthesisRequest,
  { startMs, tries }: { readonly startMs: number; readonly tries: number },
): Span | null {
  if (traced === undefined) return null;
  const isSpeech = request.kind === "speech";
  const voiceId = isSpeech ? request.voiceId : (request.inputs[0]?.voiceId ?? "");
  const characters = isSpeech
    ? request.text.length
    : request.inputs.reduce((sum, { text }) => sum + text.length, 0);
  return traced.begin({
    name: "tts request",
    kind: "client",
    startMs,
    attributes: {
      ...SPEECH_OPERATION,
      "gen_ai.provider.name": splitUpstreamVoice(voiceId)?.name ?? "elevenlabs",
      "gen_ai.request.model": request.modelId,
      "vw.voice_id": voiceId,
      "vw.output_format": request.outputFormat,
      "vw.characters": characters,
      "vw.try": tries,
      "vw.epoch": request.utterance?.epoch,
    },
  });
}
