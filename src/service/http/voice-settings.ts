/** Section "Voice settings" (contract A2, E1): what a request's voice_settings are where it has none. */
import type { FastifyInstance } from "fastify";
import { findVoice } from "../voice/voices.ts";
import { authorize, type ServiceContext } from "./context.ts";
import { voiceNotFound } from "./speech-request.ts";

/** Every voice has these: there is nothing to change them with. */
const DEFAULT_SETTINGS = {
  stability: 0.5,
  similarity_boost: 0.75,
  style: 0,
  use_speaker_boost: true,
  speed: 1,
} as const;

/** GET /v1/voices/settings/default and GET /v1/voices/{voice_id}/settings; 404 for a voice that there is not. */
export function registerVoiceSettings(app: FastifyInstance, context: ServiceContext): void {
  app.get("/v1/voices/settings/default", async (request) => {
    authorize(context, request);
    return DEFAULT_SETTINGS;
  });
  app.get<{ Params: { voice_id: string } }>("/v1/voices/:voice_id/settings", async (request) => {
    authorize(context, request);
    const id = request.params.voice_id;
    if (findVoice(id) === undefined && context.store.voices.get(id) === undefined) throw voiceNotFound(id);
    return DEFAULT_SETTINGS;
  });
}
