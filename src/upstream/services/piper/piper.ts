/**
 * Piper's own HTTP server, on a machine of one's own: POST /synthesize. The whole speech is made, then sent as one WAV at the
 * voice's rate. A voice that it does not know it takes for its default one, so list those that there are as `voices`.
 */
import type { SpeechRequest } from "../../types.ts";
import type { Capabilities, RefusalTable, ServiceAdapter } from "../adapter.ts";
import { objectOf } from "../json-values.ts";
import { languageOf, listedVoices, type VoiceListing } from "../listed-voices.ts";
import { plainReader } from "../plain-reader.ts";

const CAPABILITIES: Capabilities = {
  times: "none",
  // Whatever its voice has; the header says it.
  formats: [{ codec: "pcm", sampleRates: [22_050] }],
  settings: ["voice_settings.speed"],
  isLocal: true,
  breaks: "ignored",
  startLimit: 1,
  // It makes one after the other.
  maxOpen: 1,
  firstAudioMs: 30_000,
};

/** It fails with a web page. */
const REFUSALS: RefusalTable = { codesOf: () => [], meanings: {} };

/** By name; a name begins with its language. */
const VOICES: VoiceListing = {
  path: "/voices",
  read: (body) =>
    listedVoices(
      Object.keys(objectOf(body)).map((id) => ({ id })),
      { id: ["id"], name: ["name"], labels: ({ id }) => ({ language: languageOf(id) }) },
    ),
};

export function createPiper(): ServiceAdapter {
  return {
    capabilities: CAPABILITIES,
    headers: [],
    checkPath: VOICES.path,
    voices: VOICES,
    refusals: REFUSALS,
    request: (request) => ({ path: "/synthesize", body: bodyOf(request), audio: null }),
    answer: (headers, sink) => plainReader(sink, headers, null),
  };
}

/** A voice of several speakers: `en_US-libritts-high#p123`. */
function bodyOf({ voiceId, text, voiceSettings }: SpeechRequest): string {
  const [voice, speaker] = voiceId.split("#");
  const speed = voiceSettings?.speed;
  return JSON.stringify({
    text,
    voice,
    speaker,
    length_scale: speed === undefined ? undefined : 1 / speed,
  });
}
