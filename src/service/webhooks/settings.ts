/** The bodies of webhook requests (contract A9), held against their bounds in the words of pydantic. */
import { type RawBody, readBody } from "../http/body.ts";
import { type Fields, isRecord } from "../http/pydantic.ts";
import type { ValidationEntry } from "../http/refusal.ts";
import { Refusal } from "../http/refusal.ts";
import type { RequestHeaders } from "../store/webhooks.ts";
import {
  EVENT_NAMES,
  type EventData,
  type EventName,
  type EventType,
  findEventName,
  typesOf,
} from "./events.ts";
import { MAX_HEADERS } from "./request-headers.ts";
import { MAX_URL_LENGTH } from "./target.ts";

/** Characters. */
const MAX_NAME_LENGTH = 100;

type Place = readonly (string | number)[];
type Source = Readonly<Record<string, unknown>>;

export interface WebhookSettings {
  readonly name: string;
  readonly url: string;
  readonly requestHeaders: RequestHeaders | null;
}

export interface WebhookUpdate {
  readonly isDisabled: boolean;
  readonly name: string;
  readonly retryEnabled: boolean | undefined;
  readonly requestHeaders: RequestHeaders | undefined;
  readonly events: readonly EventName[] | undefined;
}

export interface TriggerRequest {
  readonly event: EventName;
  readonly type: EventType;
  /** Undefined: a sample. */
  readonly data: EventData | undefined;
}

/** Throws Refusal 422. */
export function readSettings(raw: RawBody): WebhookSettings {
  const { body, source, faults } = read(raw, ["settings"]);
  const settings = body.object("settings");
  if (settings === undefined && (source.settings ?? null) === null) body.missing("settings");
  if (settings === undefined) throw Refusal.invalid(faults);
  const given = isRecord(source.settings) ? source.settings : {};
  const place = ["body", "settings"];
  if (!Object.hasOwn(given, "auth_type")) settings.missing("auth_type");
  else if (given.auth_type !== "hmac") {
    faults.push(
      choiceFault("literal_error", ["hmac"], { loc: [...place, "auth_type"], input: given.auth_type }),
    );
  }
  const name = readText(settings, "name", { min: 1, max: MAX_NAME_LENGTH, place, faults });
  const url = readText(settings, "webhook_url", { min: 1, max: MAX_URL_LENGTH, place, faults });
  const requestHeaders = readHeaders(given, place, faults) ?? null;
  if (faults.length > 0) throw Refusal.invalid(faults);
  return { name, url, requestHeaders };
}

/** Throws Refusal 422. */
export function readUpdate(raw: RawBody): WebhookUpdate {
  const names = ["is_disabled", "name", "retry_enabled", "request_headers", "events"];
  const { body, source, faults } = read(raw, names);
  const isDisabled = body.boolean("is_disabled");
  if ((source.is_disabled ?? null) === null) body.missing("is_disabled");
  const place = ["body"];
  const name = readText(body, "name", { min: 1, max: MAX_NAME_LENGTH, place, faults });
  const retryEnabled = body.boolean("retry_enabled");
  const requestHeaders = readHeaders(source, place, faults);
  const events = readEvents(source.events, faults);
  if (faults.length > 0 || isDisabled === undefined) throw Refusal.invalid(faults);
  return { isDisabled, name, retryEnabled, requestHeaders, events };
}

/** Throws Refusal 422. */
export function readTrigger(raw: RawBody): TriggerRequest {
  const { body, source, faults } = read(raw, ["event", "type", "data"]);
  const event = findEventName(source.event);
  if ((source.event ?? null) === null) body.missing("event");
  else if (event === undefined) {
    faults.push(choiceFault("enum", EVENT_NAMES, { loc: ["body", "event"], input: source.event }));
  }
  const types = event === undefined ? undefined : typesOf(event);
  const type = (source.type ?? null) === null ? types?.[0] : types?.find((one) => one === source.type);
  if (types !== undefined && type === undefined) {
    faults.push(choiceFault("enum", types, { loc: ["body", "type"], input: source.type }));
  }
  body.object("data");
  if (faults.length > 0 || event === undefined || type === undefined) throw Refusal.invalid(faults);
  return { event, type, data: isRecord(source.data) ? source.data : undefined };
}

/** The fields, and the object behind them: maps and enums have no reader in Fields. */
function read(raw: RawBody, names: readonly string[]) {
  const faults: ValidationEntry[] = [];
  const body = readBody(raw, { names, faults });
  const isEmpty = raw.bytes === undefined || raw.bytes.length === 0;
  // It was parsed once already: it is an object.
  const value: unknown = isEmpty ? {} : JSON.parse(new TextDecoder().decode(raw.bytes));
  return { body, source: isRecord(value) ? value : {}, faults };
}

interface TextBounds {
  /** Characters. */
  readonly min: number;
  readonly max: number;
  readonly place: Place;
  readonly faults: ValidationEntry[];
}

function readText(fields: Fields, name: string, { min, max, place, faults }: TextBounds): string {
  const faultsBefore = faults.length;
  const text = fields.requiredText(name);
  if (faults.length > faultsBefore) return text;
  const loc = [...place, name];
  const length = [...text].length;
  if (length < min) {
    const msg = `String should have at least ${min} character${min === 1 ? "" : "s"}`;
    faults.push({ type: "string_too_short", loc, msg, input: text, ctx: { min_length: min } });
  } else if (length > max) {
    const msg = `String should have at most ${max} characters`;
    faults.push({ type: "string_too_long", loc, msg, input: text, ctx: { max_length: max } });
  }
  return text;
}

function readHeaders(source: Source, place: Place, faults: ValidationEntry[]): RequestHeaders | undefined {
  const value = source.request_headers ?? undefined;
  if (value === undefined) return undefined;
  const loc = [...place, "request_headers"];
  if (!isRecord(value)) {
    faults.push({ type: "dict_type", loc, msg: "Input should be a valid dictionary", input: value });
    return undefined;
  }
  const entries = Object.entries(value);
  if (entries.length > MAX_HEADERS) {
    const ctx = { field_type: "Dictionary", max_length: MAX_HEADERS, actual_length: entries.length };
    const msg = `Dictionary should have at most ${MAX_HEADERS} items after validation, not ${entries.length}`;
    // The input is left out of the answer: values of headers are often secrets.
    faults.push({ type: "too_long", loc, msg, input: null, ctx });
    return undefined;
  }
  const headers: [string, string][] = [];
  for (const [name, header] of entries) {
    if (typeof header === "string") headers.push([name, header]);
    else {
      const msg = "Input should be a valid string";
      faults.push({ type: "string_type", loc: [...loc, name.slice(0, 64)], msg, input: header });
    }
  }
  return Object.fromEntries(headers);
}

function readEvents(value: unknown, faults: ValidationEntry[]): readonly EventName[] | undefined {
  if ((value ?? null) === null) return undefined;
  if (!Array.isArray(value)) {
    const msg = "Input should be a valid list";
    faults.push({ type: "list_type", loc: ["body", "events"], msg, input: value });
    return undefined;
  }
  return value.flatMap((item: unknown, index) => {
    const event = findEventName(item);
    if (event !== undefined) return [event];
    faults.push(choiceFault("enum", EVENT_NAMES, { loc: ["body", "events", index], input: item }));
    return [];
  });
}

function choiceFault(
  type: "enum" | "literal_error",
  choices: readonly string[],
  { loc, input }: { readonly loc: Place; readonly input: unknown },
): ValidationEntry {
  const quoted = choices.map((choice) => `'${choice}'`);
  const last = quoted.at(-1) ?? "";
  const expected = quoted.length > 1 ? `${quoted.slice(0, -1).join(", ")} or ${last}` : last;
  return { type, loc, msg: `Input should be ${expected}`, input, ctx: { expected } };
}
