/** Section "Models": their catalogue. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { ApiError } from "../../api-error.ts";
import { json } from "../answers.ts";
import { authorize, type ServiceContext } from "../context.ts";
import { listOf } from "../json-schema.ts";
import { operation, route } from "../operation.ts";
import { MODEL, MODELS, modelRecord } from "./models-catalogue.ts";

const LIST = operation({
  method: "GET",
  url: "/v1/models",
  id: "get_models",
  tag: "Models and account",
  summary: "The models with their rules",
  errors: [404],
  answer: json(listOf(MODEL), "The models."),
});

/** GET /v1/models. */
export function registerModels(app: FastifyInstance, context: ServiceContext): void {
  route(app, context, LIST, async () => MODELS.map(modelRecord), { authorize: authorizeHere });
}

function authorizeHere(context: ServiceContext, request: FastifyRequest): void {
  const isAnonymous =
    request.headers["xi-api-key"] === undefined && request.headers.authorization === undefined;
  if (context.key !== undefined && isAnonymous) {
    // Seen live: without a key this endpoint looks for an anonymous workspace instead of asking for one.
    const message = "Workspace not found.";
    throw ApiError.of({ type: "not_found", code: "workspace_not_found", message });
  }
  authorize(context, request);
}
