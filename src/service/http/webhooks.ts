/**
 * Section "Workspace webhooks" (service-interface.md 2.6, 4.10, 6; contract A9). Not part of the interface: POST
 * /service/webhooks/trigger makes an event happen, GET /service/webhooks tells how deliveries stand.
 */
import { randomBytes } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Webhook } from "../store/webhooks.ts";
import { findEventName, sampleDataOf, usageOf } from "../webhooks/events.ts";
import { faultOfHeaders } from "../webhooks/request-headers.ts";
import { readSettings, readTrigger, readUpdate } from "../webhooks/settings.ts";
import { TargetRefused } from "../webhooks/target.ts";
import { EventTooLarge, MAX_WEBHOOKS, type Webhooks } from "../webhooks/webhooks.ts";
import type { RawBody } from "./body.ts";
import { authorize, queryFields, type ServiceContext } from "./context.ts";
import { Refusal, type ValidationEntry } from "./refusal.ts";

const PATH = "/v1/workspace/webhooks";
const SERVICE_PATH = "/service/webhooks";

export interface WebhookContext extends ServiceContext {
  readonly webhooks: Webhooks;
}

interface ById {
  readonly Params: { readonly webhook_id: string };
}

export function registerWebhooks(app: FastifyInstance, context: WebhookContext): void {
  const { webhooks } = context;
  app.get(PATH, async (request) => {
    const faults: ValidationEntry[] = [];
    const hasUsages = queryFields(request, faults).boolean("include_usages") ?? false;
    if (faults.length > 0) throw Refusal.invalid(faults);
    authorize(context, request);
    return { webhooks: webhooks.list().map((webhook) => webhookRecord(webhook, hasUsages)) };
  });
  app.post(PATH, async (request) => {
    const settings = readSettings(rawBody(request));
    authorize(context, request);
    requireHeaders(settings.requestHeaders);
    if (webhooks.isFull) throw tooMany();
    const webhook = createOrRefuse(() => webhooks.create(settings));
    return { webhook_id: webhook.id, webhook_secret: webhook.secret };
  });
  app.patch<ById>(`${PATH}/:webhook_id`, async (request) => {
    const update = readUpdate(rawBody(request));
    authorize(context, request);
    requireHeaders(update.requestHeaders ?? null);
    const { webhook_id } = request.params;
    if (!webhooks.update(webhook_id, update)) throw webhookNotFound(webhook_id);
    return { status: "ok" };
  });
  app.delete<ById>(`${PATH}/:webhook_id`, async (request) => {
    authorize(context, request);
    const { webhook_id } = request.params;
    if (!webhooks.delete(webhook_id)) throw webhookNotFound(webhook_id);
    return { status: "ok" };
  });
  app.post(`${SERVICE_PATH}/trigger`, async (request) => {
    const { event, type, data } = readTrigger(rawBody(request));
    authorize(context, request);
    const given = data ?? sampleDataOf(type, randomBytes(10).toString("hex"));
    try {
      return { event, type, ...webhooks.emit(event, type, given) };
    } catch (thrown) {
      if (!(thrown instanceof EventTooLarge)) throw thrown;
      const message = `${thrown.message}.`;
      throw Refusal.of({ type: "invalid_request", code: "request_too_large", message, param: "data" });
    }
  });
  app.get(SERVICE_PATH, async (request) => {
    authorize(context, request);
    return { ...statsRecord(webhooks), webhooks: webhooks.list().map((one) => queueRecord(webhooks, one)) };
  });
}

function rawBody(request: FastifyRequest): RawBody {
  return { contentType: request.headers["content-type"], bytes: request.body as Uint8Array | undefined };
}

function createOrRefuse(create: () => Webhook): Webhook {
  try {
    return create();
  } catch (thrown) {
    if (!(thrown instanceof TargetRefused)) throw thrown;
    throw Refusal.of({
      type: "validation_error",
      code: "invalid_parameters",
      status: "invalid_webhook_url",
      message: `Invalid webhook_url: it ${thrown.message}, expected an HTTPS URL of the public internet.`,
      param: "webhook_url",
    });
  }
}

function requireHeaders(headers: Readonly<Record<string, string>> | null): void {
  const fault = faultOfHeaders(headers ?? {});
  if (fault === undefined) return;
  throw Refusal.of({
    type: "validation_error",
    code: "invalid_parameters",
    status: "invalid_request_headers",
    message: `Invalid request_headers: ${fault}.`,
    param: "request_headers",
  });
}

function tooMany(): Refusal {
  const message = `The workspace has ${MAX_WEBHOOKS} webhooks already, which is as many as it may have.`;
  return Refusal.of({
    type: "invalid_request",
    code: "bad_request",
    status: "webhook_limit_reached",
    message,
  });
}

function webhookNotFound(id: string): Refusal {
  return Refusal.of({
    type: "not_found",
    code: "webhook_not_found",
    message: `A webhook with webhook_id '${id.slice(0, 64)}' was not found.`,
    param: "webhook_id",
  });
}

/** Never the secret, the request headers or whether there are retries: the vendor's record lacks them. */
function webhookRecord(webhook: Webhook, hasUsages: boolean): object {
  const events = webhook.events.flatMap((event) => findEventName(event) ?? []);
  return {
    name: webhook.name,
    webhook_id: webhook.id,
    webhook_url: webhook.url,
    is_disabled: webhook.isDisabled,
    is_auto_disabled: webhook.isAutoDisabled,
    created_at_unix: webhook.createdAtUnix,
    auth_type: "hmac",
    usage: hasUsages ? events.map((event) => ({ usage_type: usageOf(event) })) : null,
    events: hasUsages ? events : null,
    most_recent_failure_error_code: webhook.lastFailureCode,
    most_recent_failure_timestamp: webhook.lastFailureUnix,
  };
}

function statsRecord({ stats }: Webhooks): object {
  return {
    delivered: stats.delivered,
    failed: stats.failed,
    dropped: stats.dropped,
    under_way: stats.underWay,
  };
}

function queueRecord(webhooks: Webhooks, webhook: Webhook): object {
  return {
    webhook_id: webhook.id,
    pending: webhooks.pending(webhook.id),
    failures_in_a_row: webhook.failuresInARow,
    last_success_unix: webhook.lastSuccessUnix,
  };
}
