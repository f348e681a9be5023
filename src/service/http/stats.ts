/** GET /service/stats (not part of the interface; with --faults only): what the voices have done; needs no key. */
import type { FastifyInstance } from "fastify";
import type { VoiceStats } from "../voice/pool.ts";
import { json } from "./answers.ts";
import type { ServiceContext } from "./context.ts";
import { INTEGER, NUMBER, record } from "./json-schema.ts";
import { operation, route } from "./operation.ts";

const GET = operation({
  method: "GET",
  url: "/service/stats",
  id: "get_stats",
  tag: "The service's own",
  summary: "What the voices have done since the start",
  needsKey: false,
  answer: json(
    record({
      jobs_active: INTEGER,
      jobs_done: INTEGER,
      jobs_cancelled: INTEGER,
      jobs_failed: INTEGER,
      synthesized_seconds: NUMBER,
      workers: INTEGER,
      worker_restarts: INTEGER,
      engine_restarts: INTEGER,
      temporary_bytes: INTEGER,
    }),
    "Counters; temporary_bytes are those of temporary files now.",
  ),
});

export function registerStats(
  app: FastifyInstance,
  context: ServiceContext,
  voices: { readonly stats: VoiceStats },
): void {
  route(app, context, GET, async () => ({
    ...voices.stats,
    temporary_bytes: context.temporaryFiles.bytes,
  }));
}
