/**
 * /service/faults (not part of the interface; with --faults only; docs/faults.md): PUT sets the faults of the speech requests that follow,
 * GET shows them, DELETE ends them.
 */
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { readSetting, setting } from "../faults/fault.ts";
import { json } from "./answers.ts";
import type { ServiceContext } from "./context.ts";
import { INTEGER, type JsonSchema, named } from "./json-schema.ts";
import { operation, route } from "./operation.ts";

const { $schema: _, ...ASKED }: JsonSchema = z.toJSONSchema(setting, { io: "input" });
const { $schema: __, ...IN_FORCE }: JsonSchema = z.toJSONSchema(setting);

const COMMON = {
  url: "/service/faults",
  tag: "The service's own",
  answer: json(
    named("FaultSetting", {
      ...IN_FORCE,
      required: ["faults"],
      properties: { ...Object(IN_FORCE.properties), left: { ...INTEGER, description: "Of the count." } },
    }),
    "What is in force.",
  ),
} as const;

const GET = operation({
  ...COMMON,
  method: "GET",
  id: "get_faults",
  summary: "The scripted faults that are set",
});
const PUT = operation({
  ...COMMON,
  method: "PUT",
  id: "set_faults",
  summary: "Sets the faults of the requests that follow",
  body: { kind: "raw", schema: named("FaultRequest", ASKED) },
});
const DELETE = operation({ ...COMMON, method: "DELETE", id: "clear_faults", summary: "Ends them" });

/** GET, PUT and DELETE /service/faults, where there are faults. */
export function registerFaults(app: FastifyInstance, context: ServiceContext): void {
  const { faults } = context;
  if (faults === null) return;
  route(app, context, GET, async () => faults.describe());
  route(app, context, PUT, async ({ request }) => {
    // The server reads bodies as bytes.
    faults.set(readSetting(request.body as Uint8Array | undefined));
    return faults.describe();
  });
  route(app, context, DELETE, async () => {
    faults.clear();
    return faults.describe();
  });
}
