/** A webhook as the store keeps it. */
import { jsonOf, numberOf, numberOrNull, type Row, textOf } from "./database.ts";

export type RequestHeaders = Readonly<Record<string, string>>;

export interface NewWebhook {
  readonly name: string;
  readonly url: string;
  readonly secret: string;
  readonly requestHeaders: RequestHeaders | null;
  /** Seconds since 1970. */
  readonly createdAtUnix: number;
}

export interface Webhook extends NewWebhook {
  readonly id: string;
  /** By a person. */
  readonly isDisabled: boolean;
  /** By failures. */
  readonly isAutoDisabled: boolean;
  readonly retryEnabled: boolean;
  /** Kinds of event that it is subscribed to. */
  readonly events: readonly string[];
  readonly failuresInARow: number;
  readonly lastSuccessUnix: number | null;
  /** HTTP status of the last failure; null before the first, and where nothing answered. */
  readonly lastFailureCode: number | null;
  readonly lastFailureUnix: number | null;
}

/** From a row of the table `webhook`. */
export function webhookOf(row: Row): Webhook {
  return {
    id: textOf(row.id),
    name: textOf(row.name),
    url: textOf(row.url),
    secret: textOf(row.secret),
    requestHeaders: jsonOf(row.request_headers) as RequestHeaders | null,
    isDisabled: row.is_disabled === 1,
    isAutoDisabled: row.is_auto_disabled === 1,
    retryEnabled: row.retry_enabled === 1,
    events: jsonOf(row.events) as readonly string[],
    createdAtUnix: numberOf(row.created_at_unix),
    failuresInARow: numberOf(row.failures_in_a_row),
    lastSuccessUnix: numberOrNull(row.last_success_unix),
    lastFailureCode: numberOrNull(row.last_failure_code),
    lastFailureUnix: numberOrNull(row.last_failure_unix),
  };
}

/** As the column `request_headers` keeps them. */
export function headersCell(headers: RequestHeaders | null): string | null {
  return headers === null ? null : JSON.stringify(headers);
}
