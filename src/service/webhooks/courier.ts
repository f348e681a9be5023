/**
 * Brings what waits in the store to the webhooks. The queue is the database: what was not delivered when the
 * process ended is delivered after the next start, and a try that was under way is made again.
 *
 * Each webhook has one delivery under way at a time, the oldest that is due. One that waits for its next try is not due and
 * holds up none of the later ones.
 */
import type { Timer } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import type { Delivery, WebhookStore } from "../store/webhooks.ts";
import { type PostOptions, type PostResult, post, type RunningPost } from "./post.ts";
import { sign } from "./signature.ts";

/** Requests under way, all webhooks together. */
const MAX_UNDER_WAY = 8;

/** Waits after the first try, the second and so on, each give or take JITTER; after as many as these there is one last try. */
const WAITS_MS = [30_000, 120_000, 480_000, 1_800_000] as const;
const JITTER = 0.1;
const LONGEST_WAIT_MS = 1_800_000 * (1 + JITTER);

/** The queue is looked at again after this at the latest, as the machine's time may be put forward meanwhile. */
const LOOK_AGAIN_MS = 60_000;

/** Webhooks whose turn is remembered. */
const MAX_TURNS = 1000;

export interface CourierOptions extends PostOptions {
  readonly log: Logger;
  /** Milliseconds since 1970: the times in the store and in signatures. */
  readonly timeMs: () => number;
  /** 0 to below 1. */
  readonly random: () => number;
}

/** Tries since the start of this process. */
export interface CourierStats {
  readonly delivered: number;
  readonly failed: number;
  readonly underWay: number;
}

export class Courier {
  readonly #store: WebhookStore;
  readonly #options: CourierOptions;
  readonly #underWay = new Map<string, RunningPost>();
  readonly #finishing = new Set<Promise<void>>();
  /** Webhook -> number of its last turn: who waited longest is next, so that slow receivers can't keep others waiting. */
  readonly #turns = new Map<string, number>();
  #turn = 0;
  #delivered = 0;
  #failed = 0;
  #timer: Timer | undefined;
  #state: "idle" | "running" | "closed" = "idle";

  constructor(store: WebhookStore, options: CourierOptions) {
    this.#store = store;
    this.#options = options;
  }

  get stats(): CourierStats {
    return { delivered: this.#delivered, failed: this.#failed, underWay: this.#underWay.size };
  }

  /** From here on it delivers, first what waited in the store. Idempotent. */
  start(): void {
    if (this.#state !== "idle") return;
    this.#state = "running";
    this.wake();
  }

  /** To be called when something was enqueued or a webhook was changed. */
  wake(): void {
    if (this.#state !== "running") return;
    const nowMs = this.#options.timeMs();
    try {
      if (this.#underWay.size < MAX_UNDER_WAY) this.#startDue(nowMs);
      const nextMs = this.#store.nextDueMs(nowMs);
      this.#wakeIn(nextMs === null ? null : nextMs - nowMs);
    } catch (thrown) {
      // A full disk, say. Whoever enqueued is not to blame, and it may be better soon.
      this.#options.log.error({ error: messageOf(thrown) }, "The queue of webhook deliveries can't be read");
      this.#wakeIn(LOOK_AGAIN_MS);
    }
  }

  #wakeIn(waitMs: number | null): void {
    this.#timer?.cancel();
    const { clock } = this.#options;
    this.#timer =
      waitMs === null || this.#state !== "running"
        ? undefined
        : clock.at(clock.nowMs() + Math.min(waitMs, LOOK_AGAIN_MS), () => this.wake());
  }

  /** The webhook is gone: so is the request to it. */
  forget(webhookId: string): void {
    this.#underWay.get(webhookId)?.abort();
    this.#turns.delete(webhookId);
  }

  /** Ends requests under way, whose deliveries stay in the store, and timers. Idempotent. */
  async close(): Promise<void> {
    this.#state = "closed";
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const running of this.#underWay.values()) running.abort();
    await Promise.all(this.#finishing);
  }

  #startDue(nowMs: number): void {
    const waiting = this.#store
      .due(nowMs, nowMs + LONGEST_WAIT_MS)
      .filter(({ webhookId }) => !this.#underWay.has(webhookId))
      .sort((a, b) => (this.#turns.get(a.webhookId) ?? 0) - (this.#turns.get(b.webhookId) ?? 0));
    for (const { seq } of waiting.slice(0, MAX_UNDER_WAY - this.#underWay.size)) {
      const delivery = this.#store.delivery(seq);
      if (delivery !== undefined) this.#startTry(delivery);
    }
  }

  #startTry(delivery: Delivery): void {
    const { webhook, webhookId, body } = delivery;
    if (this.#turns.size >= MAX_TURNS) this.#turns.clear();
    this.#turn += 1;
    this.#turns.set(webhookId, this.#turn);
    const signature = sign(body, { secret: webhook.secret, timeMs: this.#options.timeMs() });
    const running = post(
      { url: webhook.url, body, signature, headers: webhook.requestHeaders ?? {} },
      this.#options,
    );
    this.#underWay.set(webhookId, running);
    const finishing = running.result
      .then((result) => this.#finishTry(delivery, result))
      .catch((thrown: unknown) => {
        // The store failed: what was tried is tried again, but not at once.
        const error = messageOf(thrown);
        this.#options.log.error({ webhookId, error }, "A webhook's delivery can't be recorded");
        this.#wakeIn(LOOK_AGAIN_MS);
      })
      .finally(() => this.#finishing.delete(finishing));
    this.#finishing.add(finishing);
  }

  #finishTry(delivery: Delivery, result: PostResult): void {
    const { webhookId } = delivery;
    this.#underWay.delete(webhookId);
    if (result.kind !== "aborted") this.#record(delivery, result);
    this.wake();
  }

  #record(delivery: Delivery, result: PostResult): void {
    const { log, timeMs } = this.#options;
    const { webhookId, seq } = delivery;
    const nowMs = timeMs();
    const isSuccess = result.kind === "answered" && result.status === 200;
    if (isSuccess) this.#delivered += 1;
    else this.#failed += 1;
    const waitMs = isSuccess || !isTransient(result) ? undefined : this.#waitAfter(delivery);
    const isSwitchedOff = this.#store.record(delivery, {
      isSuccess,
      failureCode: failureCodeOf(result),
      nextTryMs: waitMs === undefined ? null : nowMs + waitMs,
      nowMs,
    });
    const status = result.kind === "answered" ? result.status : undefined;
    log.debug({ webhookId, delivery: seq, result: result.kind, status, waitMs }, "A webhook was called");
    if (isSwitchedOff) log.warn({ webhookId }, "A webhook was switched off: too many failures in a row");
  }

  /** Undefined after the last try. Retries can be switched on and off between two tries: what holds now counts. */
  #waitAfter(delivery: Delivery): number | undefined {
    if (this.#store.get(delivery.webhookId)?.retryEnabled !== true) return undefined;
    const waitMs = WAITS_MS[delivery.tries];
    if (waitMs === undefined) return undefined;
    return Math.round(waitMs * (1 + JITTER * (2 * this.#options.random() - 1)));
  }
}

/** What may be otherwise the next time. */
function isTransient(result: PostResult): boolean {
  if (result.kind !== "answered") return result.kind === "timeout" || result.kind === "network";
  return result.status >= 500 || result.status === 429 || result.status === 408;
}

/** The status of the answer; 408 for a receiver that gave none in time; null where none was reached. */
function failureCodeOf(result: PostResult): number | null {
  if (result.kind === "timeout") return 408;
  return result.kind === "answered" ? result.status : null;
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
