/**
 * Runs the embedded speech service as a child process and keeps it running: it is GPL-3.0 and does heavy work, so it
 * has a process of its own. When it dies it is started again on the same port, so that its base URL stays valid. When it
 * hangs it is killed, and started again as if it had died.
 */
import { randomBytes } from "node:crypto";
import { SETTINGS } from "../../config.ts";
import { GatewayError } from "../../errors.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import type { Io } from "../io.ts";
import { type Child, forkProgram } from "./child.ts";
import { HangWatch } from "./hang-watch.ts";
import type { ParentMessage, ServiceReport } from "./service-messages.ts";

export type ServiceChild = Child<ParentMessage, ServiceReport>;

export interface EmbeddedOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** The child gets it without its secrets. */
  readonly env: Io["env"];
  /** Starts `voicewire service` with these arguments; the default forks this program. */
  readonly start?: (args: readonly string[]) => ServiceChild;
  /** More arguments for `voicewire service`. */
  readonly args?: readonly string[];
}

const KEY_BYTES = 32;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;
/** A child that lived this long was healthy: the next restart is quick again. */
const HEALTHY_MS = 10_000;
const START_DEADLINE_MS = 60_000;
const STOP_DEADLINE_MS = 2_000;

/** Resolves when the service listens; throws what it reported where it can't start. */
export async function startEmbeddedService(options: EmbeddedOptions): Promise<EmbeddedService> {
  const service = new EmbeddedService(options);
  await service.start();
  return service;
}

export class EmbeddedService {
  /** The key that the service requires in `xi-api-key`. Each one makes a new key and shares it with nobody else. */
  readonly key = randomBytes(KEY_BYTES).toString("hex");
  readonly #options: EmbeddedOptions;
  readonly #startChild: (args: readonly string[]) => ServiceChild;
  #child: ServiceChild | undefined;
  #url = "";
  /** 0 until the first child has reported its port. */
  #port = 0;
  #restarts = 0;
  #hangs = 0;
  #watch: HangWatch | undefined;
  #backoffMs = FIRST_BACKOFF_MS;
  #startedAtMs = 0;
  #restartTimer: Timer | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: EmbeddedOptions) {
    this.#options = options;
    this.#startChild = options.start ?? ((args) => forkProgram(args, { env: childEnvironment(options.env) }));
  }

  get url(): string {
    return this.#url;
  }
  get pid(): number | undefined {
    return this.#child?.pid;
  }
  /** How often it was started again. */
  get restarts(): number {
    return this.#restarts;
  }
  /** How often it was killed because it did not answer. */
  get hangs(): number {
    return this.#hangs;
  }

  /** The first start: its failure is the caller's to report. */
  start(): Promise<void> {
    return this.#run();
  }

  /** Ends the child and does not start it again; resolves when it has ended. Idempotent. */
  stop(): Promise<void> {
    this.#stopping ??= this.#end();
    return this.#stopping;
  }

  async #end(): Promise<void> {
    this.#restartTimer?.cancel();
    this.#watch?.stop();
    const child = this.#child;
    if (child === undefined) return;
    await new Promise<void>((resolve) => {
      const { clock } = this.#options;
      const timer = clock.at(clock.nowMs() + STOP_DEADLINE_MS, () => child.kill("SIGKILL"));
      child.onEnd(() => {
        timer.cancel();
        resolve();
      });
      child.kill("SIGTERM");
    });
  }

  /** Starts a child and resolves when it listens. Afterwards its end leads to a restart. */
  #run(): Promise<void> {
    const { clock, args = [] } = this.#options;
    const child = this.#startChild(["service", "--parent", "--port", String(this.#port), ...args]);
    this.#child = child;
    // Not by argument or environment: other users can see the one, and children of the child inherit the other.
    child.send({ type: "key", key: this.key });
    this.#startedAtMs = clock.nowMs();
    return new Promise<void>((resolve, reject) => {
      let isListening = false;
      let failure: GatewayError | undefined;
      const deadline = clock.at(clock.nowMs() + START_DEADLINE_MS, () => child.kill("SIGKILL"));
      child.onReport((report) => {
        if (report.type === "pong") {
          this.#watch?.answered();
          return;
        }
        deadline.cancel();
        if (report.type === "failed") {
          failure = new GatewayError(report.code, report.message);
          return;
        }
        isListening = true;
        this.#url = report.url;
        this.#port = report.port;
        this.#watch = this.#watchOver(child);
        resolve();
      });
      child.onEnd((reason) => {
        deadline.cancel();
        this.#watch?.stop();
        if (this.#child === child) this.#child = undefined;
        if (isListening) this.#childEnded(reason);
        else reject(failure ?? new GatewayError("upstream_unreachable", startFailure(reason)));
      });
    });
  }

  #watchOver(child: ServiceChild): HangWatch {
    const { clock, log } = this.#options;
    return new HangWatch({
      clock,
      ping: () => child.send({ type: "ping" }),
      onHang: () => {
        this.#hangs++;
        log.error({ pid: child.pid }, "Embedded speech service does not answer; killing it");
        child.kill("SIGKILL");
      },
    });
  }

  #childEnded(reason: string): void {
    if (this.#stopping !== undefined) return;
    const { clock, log } = this.#options;
    if (clock.nowMs() - this.#startedAtMs >= HEALTHY_MS) this.#backoffMs = FIRST_BACKOFF_MS;
    const waitMs = this.#backoffMs;
    this.#backoffMs = Math.min(this.#backoffMs * 2, MAX_BACKOFF_MS);
    log.error(
      { reason, port: this.#port, wait_ms: waitMs },
      "Embedded speech service ended; starting it again",
    );
    this.#restartTimer = clock.at(clock.nowMs() + waitMs, () => {
      this.#restarts++;
      this.#run().then(
        () => log.info({ url: this.#url, restarts: this.#restarts }, "Embedded speech service is back"),
        (cause: unknown) => this.#childEnded(cause instanceof Error ? cause.message : String(cause)),
      );
    });
  }
}

function startFailure(reason: string): string {
  return `Embedded speech service did not start: ${reason}, expected it to report its port`;
}

/**
 * The headers hold the key of a collector of traces; its endpoint may hold a password. Addresses for captions hold a token: they are
 * for another command, which may share its environment with the gateway.
 */
const SECRET_NAME = /_(?:key|token|secret)$|password$|^OTEL_EXPORTER_OTLP_|^VOICEWIRE_(?:ZOOM|YOUTUBE)_URL$/i;

/**
 * Ours without what is named like a secret, and without settings that hold one: the service runs third-party code and
 * needs none of them.
 */
export function childEnvironment(environment: Io["env"]): Record<string, string | undefined> {
  const secrets = new Set(SETTINGS.filter(({ isSecret }) => isSecret === true).map(({ env }) => env));
  const kept = Object.entries(environment).filter(([name]) => !SECRET_NAME.test(name) && !secrets.has(name));
  return Object.fromEntries(kept);
}
