/** Ready-made scripts and answers of the fake upstream: a service that works, and refusals in the vendor's shape. */
import type { FakeAnswer, FakeRequest, FakeScript, FakeStep } from "./fake-answer.ts";
import { ndjsonSpeech, type ToneSpeech, type ToneSpeechOptions } from "./tone-speech.ts";

export interface SpeakingOptions extends Pick<ToneSpeechOptions, "msPerChar" | "charsPerChunk"> {
  /** So many times real time; 0 (default) as fast as the client reads. */
  readonly paceX?: number;
  readonly splitBytes?: number;
}

/** The script of a service that works: speaks every text as a tone, has two voices and one model. */
export function speaking(options: SpeakingOptions = {}): FakeScript {
  return (request) => {
    if (request.path.endsWith("/voices")) return jsonAnswer(200, { voices: FAKE_VOICES });
    if (request.path.endsWith("/models")) return jsonAnswer(200, [{ model_id: "tone", name: "Tone" }]);
    if (request.method !== "POST") return refusal(404, "not_found");
    return speechAnswer(speechFor(request, options), { ...options, isTimed: isTimed(request) });
  };
}

export const FAKE_VOICES = [
  { voice_id: "tone-a", name: "Tone A" },
  { voice_id: "tone-b", name: "Tone B" },
] as const;

export function isTimed(request: FakeRequest): boolean {
  return request.path.endsWith("/with-timestamps");
}

/** The tone that answers a request for speech or a dialogue, in the format it asks for. */
export function speechFor(request: FakeRequest, options: SpeakingOptions = {}): ToneSpeech {
  const body = request.json as {
    readonly text?: string;
    readonly inputs?: readonly { readonly text: string; readonly voice_id: string }[];
  };
  const inputs = body.inputs?.map(({ text, voice_id }) => ({ text, voiceId: voice_id }));
  return ndjsonSpeech({
    ...(inputs === undefined ? { text: body.text ?? "" } : { inputs }),
    ...(options.msPerChar === undefined ? {} : { msPerChar: options.msPerChar }),
    ...(options.charsPerChunk === undefined ? {} : { charsPerChunk: options.charsPerChunk }),
    format: request.query.get("output_format") ?? "pcm_24000",
  });
}

/** A speech as an answer: records, or bare audio; `tail` comes after it ("stall", "reset", "cut", ...). */
export function speechAnswer(
  speech: ToneSpeech,
  options: SpeakingOptions & { readonly isTimed?: boolean; readonly tail?: readonly FakeStep[] } = {},
): FakeAnswer {
  const { paceX = 0, splitBytes, isTimed = true, tail = [] } = options;
  const body: FakeStep[] = [];
  for (const chunk of speech.chunks) {
    if (paceX > 0) body.push({ atMs: chunk.startMs / paceX });
    body.push(isTimed ? chunk.line : chunk.audio);
  }
  return {
    headers: {
      "content-type": isTimed ? "application/json" : audioType(speech.format),
      "request-id": "fake-request",
      "character-cost": String(Array.from(speech.text).length),
    },
    body: [...body, ...tail],
    ...(splitBytes === undefined ? {} : { splitBytes }),
  };
}

export function jsonAnswer(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): FakeAnswer {
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: [JSON.stringify(value)],
  };
}

/** An error answer in the vendor's shape. */
export function refusal(
  status: number,
  code: string,
  more: Readonly<Record<string, unknown>> = {},
): FakeAnswer {
  return jsonAnswer(status, {
    detail: { type: "error", code, message: "Refused by script", status: code, ...more },
  });
}

function audioType(format: string): string {
  return format.startsWith("pcm_") ? "audio/pcm" : "audio/basic";
}
