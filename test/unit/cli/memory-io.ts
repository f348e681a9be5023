/** An Io in memory: what a command writes is kept, signals are sent by hand. */
import type { Io, Output, SignalName } from "../../../src/cli/io.ts";
import { type Clock, systemClock } from "../../../src/kit/clock.ts";

export class MemoryOutput implements Output {
  isTty = false;
  width = 80;
  readonly chunks: Uint8Array[] = [];
  #brokenListener: (() => void) | undefined;

  columns(): number {
    return this.width;
  }
  write(data: string | Uint8Array): void {
    this.chunks.push(typeof data === "string" ? Buffer.from(data) : data.slice());
  }
  onBroken(listener: () => void): void {
    this.#brokenListener = listener;
  }
  break(): void {
    this.#brokenListener?.();
  }
  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }
  get text(): string {
    return this.bytes.toString("utf8");
  }
}

export interface MemoryIo extends Io {
  readonly stdout: MemoryOutput;
  readonly stderr: MemoryOutput;
  signal(name: SignalName): void;
  readonly signalListeners: number;
  /** What was sent to the parent, where there is one. */
  readonly reports: unknown[];
  /** Sends a message as the parent. */
  fromParent(message: unknown): void;
  /** Ends the parent. */
  parentGone(): void;
}

export interface MemoryIoOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Chunks of stdin; undefined = a terminal. */
  readonly stdin?: AsyncIterable<Uint8Array> | readonly string[];
  readonly hasParent?: boolean;
  readonly clock?: Clock;
}

export function memoryIo(argv: readonly string[], options: MemoryIoOptions = {}): MemoryIo {
  const listeners = new Set<(signal: SignalName) => void>();
  const goneListeners: (() => void)[] = [];
  const messageListeners: ((message: unknown) => void)[] = [];
  const reports: unknown[] = [];
  return {
    argv,
    env: options.env ?? {},
    stdin: { isTty: options.stdin === undefined, chunks: () => toChunks(options.stdin ?? []) },
    stdout: new MemoryOutput(),
    stderr: new MemoryOutput(),
    onSignal: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    signal: (name) => {
      for (const listener of [...listeners]) listener(name);
    },
    get signalListeners() {
      return listeners.size;
    },
    reports,
    fromParent: (message) => {
      for (const listener of messageListeners) listener(message);
    },
    parentGone: () => {
      for (const listener of goneListeners) listener();
    },
    parent: options.hasParent
      ? {
          send: (message) => {
            reports.push(message);
          },
          onMessage: (listener) => {
            messageListeners.push(listener);
          },
          onGone: (listener) => {
            goneListeners.push(listener);
          },
        }
      : undefined,
    clock: options.clock ?? systemClock,
    runtime: { node: process.version, platform: process.platform, arch: process.arch },
  };
}

async function* toChunks(source: AsyncIterable<Uint8Array> | readonly string[]): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}
