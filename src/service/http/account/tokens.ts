/** Section "Tokens": POST /v1/single-use-token/{token_type}. */
import type { FastifyInstance } from "fastify";
import { ApiError } from "../../api-error.ts";
import { json } from "../answers.ts";
import type { ServiceContext } from "../context.ts";
import { record, STRING } from "../json-schema.ts";
import { literal } from "../kinds.ts";
import { operation, route } from "../operation.ts";
import { required } from "../schema.ts";

/** The one that opens something here. */
const SPEECH = "tts_websocket";

const ISSUE = operation({
  method: "POST",
  url: "/v1/single-use-token/:token_type",
  id: "get_single_use_token",
  tag: "Models and account",
  summary: "A token for one use within 15 minutes",
  description:
    "The parameter single_use_token of text to speech and text to dialogue takes it in place of a key. Tokens for " +
    "transcription are refused with 403: there is none here.",
  params: {
    token_type: required(literal(["realtime_scribe", "batch_scribe", SPEECH]), "What it is for."),
  },
  errors: [403],
  answer: json(record({ token: STRING }), "The token."),
});

export function registerTokens(app: FastifyInstance, context: ServiceContext): void {
  route(app, context, ISSUE, async ({ params }) => {
    if (params.token_type !== SPEECH) throw noTranscription(params.token_type);
    return { token: context.tokens.issue() };
  });
}

/** A token that opens nothing is not given. */
function noTranscription(type: string): ApiError {
  return ApiError.of({
    type: "authorization_error",
    code: "feature_not_available",
    message: `This service has no transcription for a token of type '${type}', expected '${SPEECH}'.`,
    param: "token_type",
  });
}
