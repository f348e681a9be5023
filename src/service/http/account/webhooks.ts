/**
 * Section "Workspace webhooks". Not part of the interface: POST
 * /service/webhooks/trigger makes an event happen, GET /service/webhooks says how deliveries stand (with --faults only).
 */
import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { ApiError } from "../../api-error.ts";
import type { Webhook } from "../../store/webhooks.ts";
import { findEventName, sampleDataOf, typesOf, usageOf } from "../../webhooks/events.ts";
import { faultOfHeaders } from "../../webhooks/request-headers.ts";
import { TargetRefused } from "../../webhooks/target.ts";
import { EventTooLarge, MAX_WEBHOOKS, type Webhooks } from "../../webhooks/webhooks.ts";
import type { ServiceContext } from "../context.ts";
import { route } from "../operation.ts";
import {
  CREATE_WEBHOOK,
  DELETE_WEBHOOK,
  LIST_WEBHOOKS,
  TRIGGER,
  UPDATE_WEBHOOK,
  WEBHOOK_STATS,
} from "./webhook-operations.ts";

/** The workspace's webhooks, and how deliveries stand. */
export function registerWebhooks(app: FastifyInstance, context: ServiceContext): void {
  const { webhooks } = context;
  route(app, context, LIST_WEBHOOKS, async ({ query }) => ({
    webhooks: webhooks.list().map((webhook) => webhookRecord(webhook, query.include_usages)),
  }));
  route(app, context, CREATE_WEBHOOK, async ({ body: { settings } }) => {
    const requestHeaders = settings.request_headers ?? null;
    requireHeaders(requestHeaders);
    if (webhooks.isFull) throw tooMany();
    const { name, webhook_url: url } = settings;
    const webhook = createOrRefuse(() => webhooks.create({ name, url, requestHeaders }));
    return { webhook_id: webhook.id, webhook_secret: webhook.secret };
  });
  route(app, context, UPDATE_WEBHOOK, async ({ params: { webhook_id: id }, body }) => {
    requireHeaders(body.request_headers ?? null);
    const isKnown = webhooks.update(id, {
      name: body.name,
      isDisabled: body.is_disabled,
      retryEnabled: body.retry_enabled,
      requestHeaders: body.request_headers,
      events: body.events,
    });
    if (!isKnown) throw notUpdated(id);
    return { status: "ok" };
  });
  route(app, context, DELETE_WEBHOOK, async ({ params: { webhook_id: id } }) => {
    if (!webhooks.delete(id)) throw ApiError.notFound("webhook", id);
    return { status: "ok" };
  });
  if (context.faults !== null) registerTrials(app, context);
}

/** What tests of webhooks need, and a service in use does not. */
function registerTrials(app: FastifyInstance, context: ServiceContext): void {
  const { webhooks } = context;
  route(app, context, TRIGGER, async ({ body }) => {
    const { event, type = typesOf(event)[0] } = body;
    const given = body.data ?? sampleDataOf(type, randomBytes(10).toString("hex"));
    try {
      return { event, type, ...webhooks.emit(event, type, given) };
    } catch (thrown) {
      if (!(thrown instanceof EventTooLarge)) throw thrown;
      const message = `${thrown.message}.`;
      throw ApiError.of({ type: "invalid_request", code: "request_too_large", message, param: "data" });
    }
  });
  route(app, context, WEBHOOK_STATS, async () => ({
    ...statsRecord(webhooks),
    webhooks: webhooks.list().map((one) => queueRecord(webhooks, one)),
  }));
}

function createOrRefuse(create: () => Webhook): Webhook {
  try {
    return create();
  } catch (thrown) {
    if (!(thrown instanceof TargetRefused)) throw thrown;
    const message = `Invalid webhook_url: it ${thrown.message}, expected an HTTPS URL of the public internet.`;
    throw ApiError.unfit("invalid_parameters", message, {
      status: "invalid_webhook_url",
      param: "webhook_url",
    });
  }
}

function requireHeaders(headers: Readonly<Record<string, string>> | null): void {
  const fault = faultOfHeaders(headers ?? {});
  if (fault === undefined) return;
  throw ApiError.unfit("invalid_parameters", `Invalid request_headers: ${fault}.`, {
    status: "invalid_request_headers",
    param: "request_headers",
  });
}

/** The interface has 500 for each update that fails, but for its validation. */
function notUpdated(id: string): ApiError {
  const message = `The webhook was not updated: there is none with webhook_id '${id.slice(0, 64)}'.`;
  return ApiError.of({
    type: "internal_error",
    code: "internal_error",
    status: "webhook_not_found",
    message,
    param: "webhook_id",
  });
}

function tooMany(): ApiError {
  const message = `The workspace has ${MAX_WEBHOOKS} webhooks already, which is as many as it may have.`;
  return ApiError.of({
    type: "invalid_request",
    code: "bad_request",
    status: "webhook_limit_reached",
    message,
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
