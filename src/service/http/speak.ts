/** From an accepted request to its answer: admission, headers, delivery. Shared by speech and dialogue. */
import { randomBytes } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { delayOrRefuse, withFaults } from "../faults/apply.ts";
import { FAULT_HEADER } from "../faults/fault.ts";
import { CORS_HEADERS, type ServiceContext, TRACE_HEADER, traceIdOf } from "./context.ts";
import { type Delivery, deliverStream, deliverWhole } from "./delivery.ts";
import { audioTypeOf } from "./output-format.ts";
import { acceptSpeech, type EndpointKind, type SpeechShape } from "./speech-request.ts";
import type { Admission } from "./tiers.ts";

/** Asks for `voicewire_words` in timed responses (timing-json.ts). */
const TRUTH_HEADER = "x-voicewire-truth";

export async function speak(
  context: ServiceContext,
  exchange: { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly beganMs: number },
  options: { readonly shape: SpeechShape; readonly kind: EndpointKind },
): Promise<void> {
  const { request, reply } = exchange;
  const { shape, kind } = options;
  const { faults, ...asked } = context.faults.next(request.headers[FAULT_HEADER]);
  const wantsTruth = asked.wantsTruth || request.headers[TRUTH_HEADER] === "1";
  const { spec, model, cost } = acceptSpeech(shape, { kind, tier: context.tier, wantsTruth });
  if (faults.length > 0) await delayOrRefuse(faults, reply);
  const admission = context.gate.enter(model.concurrencyGroup);
  const delivery: Delivery = {
    ...withFaults(faults, { voices: context.voices, response: reply.raw }),
    spec,
    isDialogue: kind.isDialogue,
    outputFormat: shape.outputFormat,
    headers: () => ({
      ...CORS_HEADERS,
      [TRACE_HEADER]: traceIdOf(reply),
      "content-type": kind.wantsTiming ? "application/json" : audioTypeOf(shape.outputFormat),
      ...speechHeaders({ admission, cost, beganMs: exchange.beganMs }),
    }),
  };
  try {
    await (kind.isStream ? deliverStream(delivery) : deliverWhole(delivery));
  } finally {
    admission.leave();
  }
  // The raw response was written: only a fault before the first byte is left to Fastify.
  if (reply.raw.headersSent || reply.raw.destroyed) reply.hijack();
}

/** Seen on live answers (contract A11); history-item-id comes with the history. */
function speechHeaders(facts: {
  readonly admission: Admission;
  readonly cost: number;
  readonly beganMs: number;
}): Readonly<Record<string, string>> {
  return {
    "request-id": randomBytes(10).toString("hex"),
    "character-cost": String(facts.cost),
    "current-concurrent-requests": String(facts.admission.current),
    "maximum-concurrent-requests": String(facts.admission.maximum),
    "tts-latency-ms": String(Math.round(performance.now() - facts.beganMs)),
    "x-region": "local",
  };
}
