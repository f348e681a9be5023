/** What the endpoints of webhooks take and give. */
import { EVENT_NAMES, findEventName, typesOf } from "../../webhooks/events.ts";
import { MAX_HEADERS } from "../../webhooks/request-headers.ts";
import { MAX_URL_LENGTH } from "../../webhooks/target.ts";
import { json, STATUS_OK } from "../answers.ts";
import { BOOLEAN, INTEGER, listOf, named, nullable, oneOf, record, STRING } from "../json-schema.ts";
import { anyObject, boolean, dependent, enumeration, list, literal, text, textMap } from "../kinds.ts";
import { operation } from "../operation.ts";
import { object, optional, required, withDefault } from "../schema.ts";

const PATH = "/v1/workspace/webhooks";
const SERVICE_PATH = "/service/webhooks";
const TAG = "Workspace webhooks";
const OWN_TAG = "The service's own";
/** Characters. */
const MAX_NAME_LENGTH = 100;

const WEBHOOK_ID = required(text(), "One of the workspace's.");
const NAME = required(text({ minLength: 1, maxLength: MAX_NAME_LENGTH }), "For display.");
const HEADERS = optional(textMap({ maxItems: MAX_HEADERS }), "Sent with each delivery; never shown again.");

const WEBHOOK = named(
  "Webhook",
  record({
    name: STRING,
    webhook_id: STRING,
    webhook_url: STRING,
    is_disabled: { ...BOOLEAN, description: "By a person." },
    is_auto_disabled: { ...BOOLEAN, description: "By failures." },
    created_at_unix: INTEGER,
    auth_type: { ...STRING, const: "hmac" },
    usage: nullable(listOf(record({ usage_type: STRING }))),
    events: nullable(listOf(oneOf(EVENT_NAMES))),
    most_recent_failure_error_code: nullable(INTEGER),
    most_recent_failure_timestamp: nullable(INTEGER),
  }),
);

export const LIST_WEBHOOKS = operation({
  method: "GET",
  url: PATH,
  id: "get_workspace_webhooks",
  tag: TAG,
  summary: "The workspace's webhooks, without their secrets",
  query: { include_usages: withDefault(boolean(), false, "Fills usage and events.") },
  answer: json(record({ webhooks: listOf(WEBHOOK) }), "The webhooks."),
});

export const CREATE_WEBHOOK = operation({
  method: "POST",
  url: PATH,
  id: "create_workspace_webhook",
  tag: TAG,
  summary: "A new webhook",
  body: {
    kind: "json",
    name: "CreateWebhookRequest",
    shape: {
      settings: required(
        object({
          auth_type: required(literal(["hmac"]), "How deliveries are signed."),
          name: NAME,
          webhook_url: required(
            text({ minLength: 1, maxLength: MAX_URL_LENGTH, examples: ["https://example.com/hook"] }),
            "An HTTPS address of the public internet; others are refused with 400.",
          ),
          request_headers: HEADERS,
        }),
        "What it is.",
      ),
    },
  },
  answer: json(record({ webhook_id: STRING, webhook_secret: STRING }), "The secret is shown this once."),
});

export const UPDATE_WEBHOOK = operation({
  method: "PATCH",
  url: `${PATH}/:webhook_id`,
  id: "edit_workspace_webhook",
  tag: TAG,
  summary: "Changes a webhook and what it is subscribed to",
  params: { webhook_id: WEBHOOK_ID },
  body: {
    kind: "json",
    name: "UpdateWebhookRequest",
    shape: {
      is_disabled: required(boolean(), "Whether it is off."),
      name: NAME,
      retry_enabled: optional(boolean(), "Whether deliveries that fail for a while are tried again."),
      request_headers: HEADERS,
      events: optional(
        list(enumeration(EVENT_NAMES)),
        "All of its subscriptions; as they were where absent.",
      ),
    },
  },
  description: "An unknown webhook_id is refused with 500, as the interface says.",
  answer: STATUS_OK,
});

export const DELETE_WEBHOOK = operation({
  method: "DELETE",
  url: `${PATH}/:webhook_id`,
  id: "delete_workspace_webhook",
  tag: TAG,
  summary: "Deletes a webhook and all that waits for it",
  params: { webhook_id: WEBHOOK_ID },
  errors: [404],
  answer: STATUS_OK,
});

/** The types of the event's payloads, where there is such an event. */
function typesFor(event: unknown) {
  const name = findEventName(event);
  return name === undefined ? undefined : enumeration(typesOf(name));
}

export const TRIGGER = operation({
  method: "POST",
  url: `${SERVICE_PATH}/trigger`,
  id: "trigger_webhook_event",
  tag: OWN_TAG,
  summary: "Makes an event happen",
  body: {
    kind: "json",
    name: "TriggerRequest",
    shape: {
      event: required(enumeration(EVENT_NAMES), "What webhooks subscribe to."),
      type: optional(
        dependent(({ event }) => typesFor(event), oneOf(EVENT_NAMES.flatMap((name) => [...typesOf(name)]))),
        "What the payload calls itself: a type of this event; its first where absent.",
      ),
      data: optional(anyObject(), "The payload; a sample where absent."),
    },
  },
  answer: json(
    record({ event: STRING, type: STRING, enqueued: INTEGER, dropped: INTEGER }),
    "To how many webhooks it goes.",
  ),
});

export const WEBHOOK_STATS = operation({
  method: "GET",
  url: SERVICE_PATH,
  id: "get_webhook_deliveries",
  tag: OWN_TAG,
  summary: "How deliveries stand",
  answer: json(
    record({
      delivered: INTEGER,
      failed: INTEGER,
      dropped: INTEGER,
      under_way: INTEGER,
      webhooks: listOf(
        record({
          webhook_id: STRING,
          pending: INTEGER,
          failures_in_a_row: INTEGER,
          last_success_unix: nullable(INTEGER),
        }),
      ),
    }),
    "Counters since the start, and what waits.",
  ),
});
