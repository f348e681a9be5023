/**
 * One worker and whatever follows it: it is started again when it ends, with a wait that grows while it ends at once. A worker
 * that hangs is killed first.
 */
import type { Duplex } from "node:stream";
import type { BusHandle } from "../../../cluster/bus/bus.ts";
import { GatewayError } from "../../../errors.ts";
import type { GatewayState } from "../../../gateway.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { Logger } from "../../../kit/log.ts";
import type { LiveView, OpenedSession } from "../../../protocol/live-view.ts";
import type { Look, OpenLook } from "../../../server/live-view/live-source.ts";
import type { Child } from "../child.ts";
import { HangWatch } from "../hang-watch.ts";
import type { Answer, FromWorker, Question, ToWorker, WorkerStart } from "./worker-messages.ts";

export interface WorkerProcessOptions {
  readonly worker: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly fork: () => { readonly child: Child<ToWorker, FromWorker>; readonly pipe: Duplex };
  readonly start: () => WorkerStart;
  /** Gives it its bus. `onStuck`: it does not read. */
  readonly serveBus: (pipe: Duplex, onStuck: () => void) => BusHandle;
  /** A process of it has ended. */
  readonly onEnd: () => void;
}

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;
/** A worker that lived this long was healthy: the next restart is quick again. */
const HEALTHY_MS = 10_000;
const START_DEADLINE_MS = 60_000;
const CLOSE_DEADLINE_MS = 5_000;
const ANSWER_DEADLINE_MS = 2_000;
/** Questions that wait for their answers: more than Prometheus and all watchers ask in that time. */
const MAX_ASKED = 256;

interface Running {
  readonly child: Child<ToWorker, FromWorker>;
  readonly watch: HangWatch;
  state: GatewayState | null;
}

export class WorkerProcess {
  readonly worker: number;
  readonly #options: WorkerProcessOptions;
  #child: Child<ToWorker, FromWorker> | null = null;
  /** null: it does not listen. */
  #running: Running | null = null;
  #restarts = 0;
  #hangs = 0;
  #backoffMs = FIRST_BACKOFF_MS;
  #startedAtMs = 0;
  #restartTimer: Timer | undefined;
  #isStopping = false;
  readonly #asked = new Map<number, (answer: Answer | null) => void>();
  #nextAsk = 1;
  #onSettled: () => void = () => undefined;

  constructor(options: WorkerProcessOptions) {
    this.worker = options.worker;
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }
  get isUp(): boolean {
    return this.#running !== null;
  }
  /** As it said last; null: it is down, or has not said yet. */
  get state(): GatewayState | null {
    return this.#running?.state ?? null;
  }
  get restarts(): number {
    return this.#restarts;
  }
  get hangs(): number {
    return this.#hangs;
  }

  /** Resolves when it listens; rejects with what it reported where it can't start. Afterwards its end leads to a restart. */
  start(): Promise<void> {
    const { clock, fork, start, serveBus, onEnd } = this.#options;
    const { child, pipe } = fork();
    this.#child = child;
    this.#startedAtMs = clock.nowMs();
    const bus = serveBus(pipe, () => child.kill("SIGKILL"));
    child.send(start());
    return new Promise((resolve, reject) => {
      let failure: GatewayError | undefined;
      const deadline = clock.at(clock.nowMs() + START_DEADLINE_MS, () => child.kill("SIGKILL"));
      child.onReport((report) => {
        if (report.type === "failed") failure = new GatewayError(report.code, report.message);
        else if (report.type === "listening") {
          deadline.cancel();
          this.#running = { child, watch: this.#watchOver(child), state: null };
          resolve();
        } else this.#take(report);
      });
      child.onEnd((reason) => {
        deadline.cancel();
        bus.close();
        const wasUp = this.#running !== null;
        this.#ended();
        onEnd();
        if (wasUp) this.#startAgain(reason);
        else
          reject(failure ?? new GatewayError("internal", `Worker ${this.worker} did not start: ${reason}`));
      });
    });
  }

  /** Its metrics; null where it is down or does not answer. */
  async metrics(): Promise<string | null> {
    const answer = await this.#ask((id) => ({ type: "metrics", id }));
    return answer?.type === "metrics" ? answer.text : null;
  }

  /** null as for `metrics`. */
  async look(look: Look): Promise<LiveView | null> {
    const answer = await this.#ask((id) => ({ type: "look", id, look }));
    return answer?.type === "look" ? answer.view : null;
  }

  /** null also where it has no such session. */
  async open(look: OpenLook): Promise<OpenedSession | null> {
    const answer = await this.#ask((id) => ({ type: "open", id, look }));
    return answer?.type === "open" ? answer.opened : null;
  }

  #ask(question: (id: number) => Question): Promise<Answer | null> {
    const running = this.#running;
    if (running === null || this.#asked.size >= MAX_ASKED) return Promise.resolve(null);
    const { clock } = this.#options;
    const id = this.#nextAsk++;
    return new Promise((resolve) => {
      const timer = clock.at(clock.nowMs() + ANSWER_DEADLINE_MS, () => answered(null));
      const answered = (answer: Answer | null): void => {
        timer.cancel();
        this.#asked.delete(id);
        resolve(answer);
      };
      this.#asked.set(id, answered);
      running.child.send(question(id));
    });
  }

  /** It takes nothing new; resolves when its speech has ended or it has, and is not started again from now on. */
  async settle(): Promise<void> {
    this.#stopRestarts();
    const running = this.#running;
    if (running === null) return;
    await new Promise<void>((resolve) => {
      this.#onSettled = resolve;
      running.child.onEnd(() => resolve());
      running.child.send({ type: "settle" });
    });
  }

  /** Ends it; resolves when it has ended. Idempotent. */
  async close(): Promise<void> {
    this.#stopRestarts();
    const child = this.#child;
    if (child === null) return;
    const { clock } = this.#options;
    await new Promise<void>((resolve) => {
      const timer = clock.at(clock.nowMs() + CLOSE_DEADLINE_MS, () => child.kill("SIGKILL"));
      child.onEnd(() => {
        timer.cancel();
        resolve();
      });
      child.send({ type: "close" });
    });
  }

  #take(report: Exclude<FromWorker, { readonly type: "listening" | "failed" }>): void {
    if ("id" in report) this.#asked.get(report.id)?.(report);
    else if (report.type === "pong" && this.#running !== null) {
      this.#running.state = report.state;
      this.#running.watch.answered();
    } else if (report.type === "settled") {
      this.#onSettled();
      // It alone was asked to end, and another one takes its place.
      if (!this.#isStopping) this.#child?.send({ type: "close" });
    }
  }

  #watchOver(child: Child<ToWorker, FromWorker>): HangWatch {
    const { clock, log } = this.#options;
    return new HangWatch({
      clock,
      ping: () => child.send({ type: "ping" }),
      onHang: () => {
        this.#hangs += 1;
        log.error({ worker: this.worker, pid: child.pid }, "A worker does not answer; killing it");
        child.kill("SIGKILL");
      },
    });
  }

  #ended(): void {
    this.#running?.watch.stop();
    this.#running = null;
    this.#child = null;
    for (const answer of [...this.#asked.values()]) answer(null);
  }

  #stopRestarts(): void {
    this.#isStopping = true;
    this.#restartTimer?.cancel();
  }

  #startAgain(reason: string): void {
    if (this.#isStopping) return;
    const { clock, log } = this.#options;
    if (clock.nowMs() - this.#startedAtMs >= HEALTHY_MS) this.#backoffMs = FIRST_BACKOFF_MS;
    const waitMs = this.#backoffMs;
    this.#backoffMs = Math.min(this.#backoffMs * 2, MAX_BACKOFF_MS);
    log.error({ worker: this.worker, reason, wait_ms: waitMs }, "A worker has ended; starting it again");
    this.#restartTimer = clock.at(clock.nowMs() + waitMs, () => {
      this.#restarts += 1;
      this.start().then(
        () => log.info({ worker: this.worker, restarts: this.#restarts }, "The worker is back"),
        (cause: unknown) => this.#startAgain(cause instanceof Error ? cause.message : String(cause)),
      );
    });
  }
}
