/** What every section of the interface gets: the voice, the account that is played, and the answer's common headers. */
import { randomBytes } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { OriginRules } from "../../access/origin-rules.ts";
import type { Logger } from "../../kit/log.ts";
import type { FaultBoard } from "../faults/board.ts";
import type { TemporaryFiles } from "../media/temporary-file.ts";
import type { Uploads } from "../media/upload.ts";
import type { Store } from "../store/store.ts";
import type { NeuralVoice } from "../voice/neural/voice-models.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import { type Credentials, requireKey, wrongToken } from "./auth.ts";
import type { SingleUseTokens } from "./single-use-tokens.ts";
import type { JobOpener } from "./speech/delivery.ts";
import type { ConcurrencyGate, Tier } from "./tiers.ts";

export interface ServiceContext {
  readonly voices: JobOpener;
  /** Voices of models, by id. */
  readonly neuralVoices: ReadonlyMap<string, ListedNeuralVoice>;
  /** undefined where no key is asked for. */
  readonly key: string | undefined;
  /** In the child of a gateway: its key, without which nothing is answered. */
  readonly gatewayKey?: string | undefined;
  /** Which hosts and pages it is asked by. */
  readonly origins: OriginRules;
  readonly tokens: SingleUseTokens;
  readonly tier: Tier;
  readonly gate: ConcurrencyGate;
  /** null: nobody may make requests fail, and there is nothing under /service. */
  readonly faults: FaultBoard | null;
  readonly store: Store;
  readonly temporaryFiles: TemporaryFiles;
  readonly uploads: Uploads;
  readonly webhooks: Webhooks;
  readonly log: Logger;
}

/** A voice of a model, and what is told of that. */
export interface ListedNeuralVoice extends NeuralVoice {
  /** Piper, Kokoro. */
  readonly family: string;
  /** Whether a seed makes it the same each time. */
  readonly isRepeatable: boolean;
}

export function authorize(context: ServiceContext, request: FastifyRequest): void {
  requireKey(context.key, credentialsOf(request));
}

/** A single-use token in the query counts in place of a key, and is used up; where a key comes as well, the key counts. */
export function authorizeByKeyOrToken(context: ServiceContext, request: FastifyRequest): void {
  const { single_use_token: given } = request.query as { readonly single_use_token?: string | string[] };
  const token = Array.isArray(given) ? given.at(-1) : given;
  const credentials = credentialsOf(request);
  const hasKey = credentials["xi-api-key"] !== undefined || credentials.authorization !== undefined;
  if (token === undefined || hasKey) requireKey(context.key, credentials);
  else if (!context.tokens.consume(token)) throw wrongToken();
}

/** Before anything of a request is looked at. Throws the ApiError of a request that is not the gateway's. */
export function requireGateway({ gatewayKey }: ServiceContext, request: FastifyRequest): void {
  requireKey(gatewayKey, credentialsOf(request));
}

function credentialsOf({ headers }: FastifyRequest): Credentials {
  return { "xi-api-key": headers["xi-api-key"], authorization: headers.authorization };
}

export const TRACE_HEADER = "x-trace-id";

/** 32 hex characters; the same in the header and in an error's request_id. */
export function traceIdOf(reply: FastifyReply): string {
  const existing = reply.getHeader(TRACE_HEADER);
  return typeof existing === "string" ? existing : randomBytes(16).toString("hex");
}
