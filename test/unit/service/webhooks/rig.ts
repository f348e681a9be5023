/** Webhooks over a store in a folder of their own, with a clock that the test turns. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, vi } from "vitest";
import type { Logger } from "../../../../src/kit/log.ts";
import { StoreDatabase } from "../../../../src/service/store/database.ts";
import type { WebhookChanges } from "../../../../src/service/store/webhooks.ts";
import type { Resolve } from "../../../../src/service/webhooks/target.ts";
import { Webhooks } from "../../../../src/service/webhooks/webhooks.ts";
import { FakeClock } from "../../../helpers/fake-clock.ts";

export class WebhookRig {
  readonly clock = new FakeClock();
  /** Real time at the start: the SDK compares signatures with it. */
  readonly startMs = Date.now();
  /** What was logged, as text. */
  readonly logged: string[] = [];
  /** What the machine's time was put forward by. */
  skewMs = 0;
  /** 0.5: no jitter. */
  random = 0.5;
  allowPrivate = true;
  resolve: Resolve | undefined;
  certificates: string | undefined;
  database: StoreDatabase;
  webhooks: Webhooks;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.database = new StoreDatabase(join(folder, "voicewire.db"));
    this.webhooks = this.make();
  }

  static async open(): Promise<WebhookRig> {
    return new WebhookRig(await mkdtemp(join(tmpdir(), "voicewire-test-")));
  }

  get timeMs(): number {
    return this.startMs + this.skewMs + this.clock.nowMs();
  }

  /** Not started. */
  make(): Webhooks {
    const log = (fields: object, message: string) => this.logged.push(`${message} ${JSON.stringify(fields)}`);
    const logger: Logger = { debug: log, info: log, warn: log, error: log };
    const { clock, resolve, certificates, allowPrivate } = this;
    return new Webhooks(this.database, {
      log: logger,
      clock,
      allowPrivate,
      timeMs: () => this.timeMs,
      random: () => this.random,
      ...(resolve === undefined ? {} : { resolve }),
      ...(certificates === undefined ? {} : { certificates }),
    });
  }

  /** The process ends, another one opens the same store. */
  async restart(): Promise<void> {
    await this.webhooks.close();
    this.database.close();
    this.database = new StoreDatabase(join(this.#folder, "voicewire.db"));
    this.webhooks = this.make();
    this.webhooks.start();
  }

  /** A webhook that is subscribed to flows. */
  subscribe(
    url: string,
    changes: Partial<WebhookChanges> = {},
    headers: Record<string, string> | null = null,
  ) {
    const webhook = this.webhooks.create({ name: "Mine", url, requestHeaders: headers });
    this.change(webhook.id, { events: ["flows"], ...changes });
    return webhook;
  }

  change(id: string, changes: Partial<WebhookChanges>): void {
    const nothing = { retryEnabled: undefined, requestHeaders: undefined, events: undefined };
    expect(this.webhooks.update(id, { name: "Mine", isDisabled: false, ...nothing, ...changes })).toBe(true);
  }

  emit(number: number) {
    return this.webhooks.emit("flows", "flows_generation", { number });
  }

  /** Until as many tries are over, and none is under way. */
  async settled(tries: number): Promise<void> {
    await vi.waitFor(() => {
      const { delivered, failed, underWay } = this.webhooks.stats;
      expect({ tries: delivered + failed, underWay }).toEqual({ tries, underWay: 0 });
    });
  }

  async close(): Promise<void> {
    await this.webhooks.close();
    this.database.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
