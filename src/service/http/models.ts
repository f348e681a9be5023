/** Section "Models" (contract E2). */
import type { FastifyInstance } from "fastify";
import { authorize, type ServiceContext } from "./context.ts";
import { MODELS, modelRecord } from "./models-catalogue.ts";
import { Refusal } from "./refusal.ts";

export function registerModels(app: FastifyInstance, context: ServiceContext): void {
  app.get("/v1/models", async (request) => {
    const isAnonymous =
      request.headers["xi-api-key"] === undefined && request.headers.authorization === undefined;
    if (context.key !== undefined && isAnonymous) {
      // Seen live: without a key this endpoint looks for an anonymous workspace instead of asking for one.
      const message = "Workspace not found.";
      throw Refusal.of({ type: "not_found", code: "workspace_not_found", message });
    }
    authorize(context, request);
    return MODELS.map(modelRecord);
  });
}
