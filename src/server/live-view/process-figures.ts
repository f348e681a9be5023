/** How this process is doing. The event loop is measured only while somebody looks. */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock, Timer } from "../../kit/clock.ts";
import type { LiveNode } from "../../protocol/live-view.ts";

/** Two watchers within this time see the same figures. */
const KEPT_MS = 900;
/** When nobody has looked for so long the measuring ends. */
const IDLE_MS = 10_000;
const RESOLUTION_MS = 10;

export type ProcessFigures = Pick<
  LiveNode,
  "uptime_s" | "loop_delay_ms" | "cpu_percent" | "memory_bytes" | "heap_bytes"
>;

interface Measuring {
  readonly delay: IntervalHistogram;
  /** Processor time and the clock when they were read last. */
  cpu: NodeJS.CpuUsage;
  sinceMs: number;
  figures: ProcessFigures;
}

export class ProcessWatch {
  readonly #clock: Clock;
  #measuring: Measuring | null = null;
  #idleTimer: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  look(): ProcessFigures {
    const nowMs = this.#clock.nowMs();
    this.#idleTimer?.cancel();
    this.#idleTimer = this.#clock.at(nowMs + IDLE_MS, () => this.close());
    this.#measuring ??= begin(nowMs);
    const measuring = this.#measuring;
    if (nowMs - measuring.sinceMs < KEPT_MS) return measuring.figures;
    const { delay, cpu } = measuring;
    const { user, system } = process.cpuUsage(cpu);
    // It counts the whole time between two of its ticks, which is late by what is above the time between them.
    const lateMs = Math.max(0, delay.percentile(99) / 1e6 - RESOLUTION_MS);
    measuring.figures = {
      ...memoryOf(),
      loop_delay_ms: Math.round(lateMs * 10) / 10,
      cpu_percent: Math.round((user + system) / 10 / (nowMs - measuring.sinceMs)),
    };
    delay.reset();
    measuring.cpu = process.cpuUsage();
    measuring.sinceMs = nowMs;
    return measuring.figures;
  }

  /** Idempotent. */
  close(): void {
    this.#idleTimer?.cancel();
    this.#idleTimer = null;
    this.#measuring?.delay.disable();
    this.#measuring = null;
  }
}

function begin(sinceMs: number): Measuring {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const figures = { ...memoryOf(), loop_delay_ms: null, cpu_percent: null };
  return { delay, cpu: process.cpuUsage(), sinceMs, figures };
}

function memoryOf() {
  const { rss, heapUsed } = process.memoryUsage();
  return { uptime_s: Math.floor(process.uptime()), memory_bytes: rss, heap_bytes: heapUsed };
}
