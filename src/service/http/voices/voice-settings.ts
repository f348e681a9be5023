/** Section "Voice settings": what a request's voice_settings are where it has none. */
import type { FastifyInstance } from "fastify";
import { ApiError } from "../../api-error.ts";
import { json } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { BOOLEAN, NUMBER, named, record } from "../json-schema.ts";
import { findKnownVoice } from "../known-voice.ts";
import { operation, route } from "../operation.ts";
import { VOICE_ID } from "../speech/speech-fields.ts";

/** Every voice has these: there is nothing to change them with. */
const DEFAULT_SETTINGS = {
  stability: 0.5,
  similarity_boost: 0.75,
  style: 0,
  use_speaker_boost: true,
  speed: 1,
} as const;

const SETTINGS = json(
  named(
    "VoiceSettings",
    record({
      stability: NUMBER,
      similarity_boost: NUMBER,
      style: NUMBER,
      use_speaker_boost: BOOLEAN,
      speed: NUMBER,
    }),
  ),
  "The settings.",
);

const DEFAULTS = operation({
  method: "GET",
  url: "/v1/voices/settings/default",
  id: "get_default_voice_settings",
  tag: "Voices",
  summary: "The settings of a request that has none",
  answer: SETTINGS,
});
const OF_VOICE = operation({
  method: "GET",
  url: "/v1/voices/:voice_id/settings",
  id: "get_voice_settings",
  tag: "Voices",
  summary: "The same for every voice",
  params: { voice_id: VOICE_ID },
  errors: [404],
  answer: SETTINGS,
});

/** GET /v1/voices/settings/default and GET /v1/voices/{voice_id}/settings; 404 for a voice that there is not. */
export function registerVoiceSettings(app: FastifyInstance, context: ServiceContext): void {
  route(app, context, DEFAULTS, async () => DEFAULT_SETTINGS);
  route(app, context, OF_VOICE, async ({ params }) => {
    if (findKnownVoice(context, params.voice_id) === undefined)
      throw ApiError.notFound("voice", params.voice_id);
    return DEFAULT_SETTINGS;
  });
}
