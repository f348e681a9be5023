/**
 * /service/faults (not part of the interface; docs/faults.md): PUT sets the faults of the speech requests that follow,
 * GET shows them, DELETE ends them.
 */
import type { FastifyInstance } from "fastify";
import { readSetting } from "../faults/fault.ts";
import { authorize, type ServiceContext } from "./context.ts";

const PATH = "/service/faults";

export function registerFaults(app: FastifyInstance, context: ServiceContext): void {
  app.get(PATH, async (request) => {
    authorize(context, request);
    return context.faults.describe();
  });
  app.put(PATH, async (request) => {
    authorize(context, request);
    context.faults.set(readSetting(request.body as Uint8Array | undefined));
    return context.faults.describe();
  });
  app.delete(PATH, async (request) => {
    authorize(context, request);
    context.faults.clear();
    return context.faults.describe();
  });
}
