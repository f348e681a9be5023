/** The HTTP server: what holds for every endpoint (trace ids, CORS, error bodies, limits), and the sections behind it. */
import { randomBytes } from "node:crypto";
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply } from "fastify";
import type { Logger } from "../../kit/log.ts";
import { ApiError } from "../api-error.ts";
import { isDiskFull } from "../store/database.ts";
import { registerTokens } from "./account/tokens.ts";
import { registerUser } from "./account/user.ts";
import { registerWebhooks } from "./account/webhooks.ts";
import { registerAudioIsolation } from "./audio/audio-isolation.ts";
import { registerSoundGeneration } from "./audio/sound-generation.ts";
import { registerSpeechToSpeech } from "./audio/speech-to-speech.ts";
import { requireGateway, type ServiceContext, TRACE_HEADER, traceIdOf } from "./context.ts";
import { registerDictionaries } from "./dictionaries/dictionaries.ts";
import { registerDictionaryRules } from "./dictionaries/dictionary-rules.ts";
import { registerFaults } from "./faults.ts";
import { registerHistory } from "./history/history.ts";
import { registerOpenApi } from "./openapi.ts";
import { requireOrigin } from "./origins.ts";
import { RequestTimeout, SERVER_LIMITS, type ServerLimits } from "./server-limits.ts";
import { registerModels } from "./speech/models.ts";
import { registerTextToDialogue } from "./speech/text-to-dialogue.ts";
import { registerTextToSpeech } from "./speech/text-to-speech.ts";
import { registerVoiceSamples } from "./voices/voice-samples.ts";
import { registerVoiceSettings } from "./voices/voice-settings.ts";
import { registerVoices } from "./voices/voices.ts";

/** Forty thousand characters of text, every one escaped, and room for the rest. */
const MAX_BODY_BYTES = 1_048_576;
/** Ids in a path: far longer than any that exists. */
const MAX_PARAM_LENGTH = 200;

/** The document first: it lists the routes that are added after it. */
const SECTIONS = [
  registerOpenApi,
  registerTextToSpeech,
  registerTextToDialogue,
  registerSoundGeneration,
  registerAudioIsolation,
  registerSpeechToSpeech,
  registerVoices,
  registerVoiceSettings,
  registerVoiceSamples,
  registerDictionaries,
  registerDictionaryRules,
  registerModels,
  registerHistory,
  registerUser,
  registerTokens,
  registerWebhooks,
  registerFaults,
] as const;

/** Not yet listening. */
export function createServer(
  context: ServiceContext,
  log: Logger,
  limits: ServerLimits = SERVER_LIMITS,
): FastifyInstance {
  const withTrace = (reply: FastifyReply): FastifyReply =>
    reply.header(TRACE_HEADER, randomBytes(16).toString("hex"));
  const timeout = new RequestTimeout(limits);
  const app = Fastify({
    ...timeout.options,
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    // The interface has no HEAD: 405 as for any other method.
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    // A path that can't be decoded is nobody's: no hook and no handler sees it.
    frameworkErrors: (_error, _request, reply) => {
      const message = "The path of the request can't be read.";
      void answer(withTrace(reply), ApiError.of({ type: "invalid_request", code: "bad_request", message }));
    },
  });
  timeout.watch(app);
  const paths: RegExp[] = [];
  app.addHook("onRoute", (route) => {
    paths.push(new RegExp(`^${route.url.replace(/:\w+/g, "[^/]+")}$`));
  });
  // Bodies are read as bytes: malformed JSON has an answer of its own (body.ts).
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.addHook("onRequest", async (request, reply) => {
    withTrace(reply);
    requireOrigin(context, request, reply);
    requireGateway(context, request);
    if (request.method === "OPTIONS") await reply.code(200).type("text/plain").send("OK");
  });
  app.setErrorHandler((thrown: FastifyError, _request, reply) => {
    const error = toApiError(thrown, log);
    return answer(reply, error);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?")[0] ?? "";
    const isKnown = paths.some((pattern) => pattern.test(path));
    return answer(reply, isKnown ? new ApiError(405, "Method Not Allowed") : new ApiError(404, "Not Found"));
  });
  for (const register of SECTIONS) register(app, context);
  return app;
}

function answer(reply: FastifyReply, error: ApiError): FastifyReply {
  return reply
    .code(error.httpStatus)
    .type("application/json")
    .send(error.json(traceIdOf(reply)));
}

function toApiError(thrown: FastifyError, log: Logger): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown.code === "FST_ERR_CTP_BODY_TOO_LARGE") {
    const message = `The request body is larger than ${MAX_BODY_BYTES} bytes.`;
    return ApiError.of({ type: "invalid_request", code: "request_too_large", message });
  }
  if (isDiskFull(thrown)) {
    log.error({ error: thrown.message }, "A request failed: the disk is full");
    return ApiError.storageFull();
  }
  const status = thrown.statusCode ?? 500;
  if (status < 500)
    return ApiError.of({ type: "invalid_request", code: "bad_request", message: thrown.message }, status);
  log.error({ error: thrown.message, stack: thrown.stack }, "A request failed");
  return ApiError.of({ type: "internal_error", code: "internal_error", message: "Internal server error." });
}
