/** Webhooks and what is still to be delivered to them. */
import { randomBytes } from "node:crypto";
import { numberOf, numberOrNull, type StoreDatabase, textOf } from "./database.ts";
import { headersCell, type NewWebhook, type RequestHeaders, type Webhook, webhookOf } from "./webhook-row.ts";

export type { RequestHeaders, Webhook } from "./webhook-row.ts";

/** Deliveries that may wait for one webhook. */
const MAX_PENDING = 100;

/** Failures in a row after which a webhook that nobody answers is switched off. */
const MAX_FAILURES_IN_A_ROW = 10;
/** How long a success keeps a failing webhook on, s. */
const SUCCESS_COUNTS_SECONDS = 7 * 86_400;

/** What is undefined stays as it is. */
export interface WebhookChanges {
  readonly name: string;
  readonly isDisabled: boolean;
  readonly retryEnabled: boolean | undefined;
  readonly requestHeaders: RequestHeaders | undefined;
  /** The complete set. */
  readonly events: readonly string[] | undefined;
}

/** What is needed to decide who is next; the body is read when it is sent. */
interface DueDelivery {
  readonly seq: number;
  readonly webhookId: string;
}

export interface Delivery extends DueDelivery {
  readonly webhook: Webhook;
  /** Sent byte for byte the same on each try. */
  readonly body: string;
  /** Tries that failed already. */
  readonly tries: number;
}

/** What came of a try. */
interface Outcome {
  readonly isSuccess: boolean;
  /** HTTP status of a failure; null where nothing answered. */
  readonly failureCode: number | null;
  /** Milliseconds since 1970; null: this was the last try. */
  readonly nextTryMs: number | null;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

export interface Enqueued {
  readonly enqueued: number;
  /** For webhooks that had MAX_PENDING waiting already. */
  readonly dropped: number;
}

const IS_ON = "webhook.is_disabled = 0 AND webhook.is_auto_disabled = 0";

export class WebhookStore {
  readonly #database: StoreDatabase;

  constructor(database: StoreDatabase) {
    this.#database = database;
  }

  /** Enabled, without retries and subscribed to nothing. */
  create(webhook: NewWebhook): Webhook {
    const id = randomBytes(16).toString("hex");
    this.#database.run(
      "INSERT INTO webhook (id, name, url, secret, request_headers, created_at_unix) VALUES (?, ?, ?, ?, ?, ?)",
      id,
      webhook.name,
      webhook.url,
      webhook.secret,
      headersCell(webhook.requestHeaders),
      webhook.createdAtUnix,
    );
    return {
      ...webhook,
      id,
      isDisabled: false,
      isAutoDisabled: false,
      retryEnabled: false,
      events: [],
      failuresInARow: 0,
      lastSuccessUnix: null,
      lastFailureCode: null,
      lastFailureUnix: null,
    };
  }

  get(id: string): Webhook | undefined {
    const row = this.#database.get("SELECT * FROM webhook WHERE id = ?", id);
    return row === undefined ? undefined : webhookOf(row);
  }

  /** Newest first. */
  list(): Webhook[] {
    return this.#database.all("SELECT * FROM webhook ORDER BY seq DESC").map(webhookOf);
  }

  get count(): number {
    return numberOf(this.#database.get("SELECT COUNT(*) AS count FROM webhook")?.count);
  }

  /**
   * Enabling one that was off, by a person or by failures, also forgets its failures in a row: else the next one would
   * switch it off again. False where it is not there.
   */
  update(id: string, changes: WebhookChanges): boolean {
    return this.#database.transaction(() => {
      const webhook = this.get(id);
      if (webhook === undefined) return false;
      const { isDisabled, retryEnabled = webhook.retryEnabled, events = webhook.events } = changes;
      const isSwitchedOn = !isDisabled && (webhook.isDisabled || webhook.isAutoDisabled);
      this.#database.run(
        `UPDATE webhook SET name = ?, is_disabled = ?, is_auto_disabled = ?, retry_enabled = ?, request_headers = ?,
          events = ?, failures_in_a_row = ? WHERE id = ?`,
        changes.name,
        Number(isDisabled),
        Number(isDisabled && webhook.isAutoDisabled),
        Number(retryEnabled),
        headersCell(changes.requestHeaders ?? webhook.requestHeaders),
        JSON.stringify([...new Set(events)]),
        isSwitchedOn ? 0 : webhook.failuresInARow,
        id,
      );
      return true;
    });
  }

  /** What waits for it goes with it; false where it is not there. */
  delete(id: string): boolean {
    return this.#database.run("DELETE FROM webhook WHERE id = ?", id) > 0;
  }

  /** For every webhook that is on and subscribed to `event`, to be delivered from `nowMs` (since 1970) on. */
  enqueue(event: string, body: string, nowMs: number): Enqueued {
    return this.#database.transaction(() => {
      const ids = this.#database
        .all(
          `SELECT id FROM webhook WHERE ${IS_ON}
            AND EXISTS (SELECT 1 FROM json_each(webhook.events) WHERE value = ?) ORDER BY seq`,
          event,
        )
        .map((row) => textOf(row.id));
      let enqueued = 0;
      for (const id of ids) {
        if (this.pending(id) >= MAX_PENDING) continue;
        this.#database.run(
          "INSERT INTO webhook_delivery (webhook_id, body, next_try_ms) VALUES (?, ?, ?)",
          id,
          body,
          nowMs,
        );
        enqueued += 1;
      }
      return { enqueued, dropped: ids.length - enqueued };
    });
  }

  /** Deliveries that wait, one under way included. */
  pending(id: string): number {
    const row = this.#database.get("SELECT COUNT(*) AS count FROM webhook_delivery WHERE webhook_id = ?", id);
    return numberOf(row?.count);
  }

  /**
   * The oldest due delivery of each webhook that is on. What is due later than `latestMs` is due too: no delay is that
   * long, so the machine's time was put back meanwhile.
   */
  due(nowMs: number, latestMs: number): DueDelivery[] {
    return this.#database
      .all(
        `SELECT webhook_id, oldest FROM (
            SELECT webhook.id AS webhook_id, (
              SELECT MIN(seq) FROM webhook_delivery
              WHERE webhook_id = webhook.id AND (next_try_ms <= ? OR next_try_ms > ?)
            ) AS oldest FROM webhook WHERE ${IS_ON}
          ) WHERE oldest IS NOT NULL ORDER BY oldest`,
        nowMs,
        latestMs,
      )
      .map((row) => ({ seq: numberOf(row.oldest), webhookId: textOf(row.webhook_id) }));
  }

  /** When the next delivery is due that was not at `nowMs`, in ms since 1970; null where none waits. */
  nextDueMs(nowMs: number): number | null {
    const row = this.#database.get(
      `SELECT MIN((
          SELECT MIN(next_try_ms) FROM webhook_delivery WHERE webhook_id = webhook.id AND next_try_ms > ?
        )) AS next FROM webhook WHERE ${IS_ON}`,
      nowMs,
    );
    return numberOrNull(row?.next);
  }

  /** Undefined where it is gone. */
  delivery(seq: number): Delivery | undefined {
    const row = this.#database.get("SELECT * FROM webhook_delivery WHERE seq = ?", seq);
    const webhook = this.get(textOf(row?.webhook_id));
    if (row === undefined || webhook === undefined) return undefined;
    return { seq, webhookId: webhook.id, webhook, body: textOf(row.body), tries: numberOf(row.tries) };
  }

  /**
   * A try is over: the delivery goes or waits for its next try, and the webhook remembers. True where this failure
   * switched it off. Nothing happens to what was deleted meanwhile.
   */
  record(delivery: DueDelivery, outcome: Outcome): boolean {
    return this.#database.transaction(() => {
      if (outcome.nextTryMs === null) this.#finish(delivery.seq);
      else this.#reschedule(delivery.seq, outcome.nextTryMs);
      const webhook = this.get(delivery.webhookId);
      if (webhook === undefined) return false;
      const nowUnix = Math.floor(outcome.nowMs / 1000);
      if (outcome.isSuccess) {
        this.#database.run(
          "UPDATE webhook SET failures_in_a_row = 0, last_success_unix = ? WHERE id = ?",
          nowUnix,
          webhook.id,
        );
        return false;
      }
      const failures = webhook.failuresInARow + 1;
      const isAnswered =
        webhook.lastSuccessUnix !== null && nowUnix - webhook.lastSuccessUnix <= SUCCESS_COUNTS_SECONDS;
      const isSwitchedOff = !webhook.isAutoDisabled && failures >= MAX_FAILURES_IN_A_ROW && !isAnswered;
      this.#database.run(
        `UPDATE webhook SET failures_in_a_row = ?, last_failure_code = ?, last_failure_unix = ?, is_auto_disabled = ?
          WHERE id = ?`,
        failures,
        outcome.failureCode,
        nowUnix,
        Number(webhook.isAutoDisabled || isSwitchedOff),
        webhook.id,
      );
      return isSwitchedOff;
    });
  }

  #finish(seq: number): void {
    this.#database.run("DELETE FROM webhook_delivery WHERE seq = ?", seq);
  }

  #reschedule(seq: number, nextTryMs: number): void {
    this.#database.run(
      "UPDATE webhook_delivery SET tries = tries + 1, next_try_ms = ? WHERE seq = ?",
      nextTryMs,
      seq,
    );
  }
}
