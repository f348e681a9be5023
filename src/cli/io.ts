/**
 * What a command may touch of the outside world. `main.ts` builds it from `process`; tests build it from memory,
 * so every command runs in a test as it runs in a terminal.
 */
import type { Clock } from "../kit/clock.ts";

/** A stream that text and bytes are written to: stdout or stderr. */
export interface Output {
  readonly isTty: boolean;
  /** Width of the terminal in columns; 80 where it is unknown. */
  columns(): number;
  /** Blocks where the system makes pipes block (Linux, macOS): a slow reader slows us, nothing piles up here. */
  write(data: string | Uint8Array): void;
  /** Calls `listener` once the reader has gone (EPIPE): for `listen ... | head`, which is a clean end. */
  onBroken(listener: () => void): void;
}

export interface Input {
  readonly isTty: boolean;
  /** Chunks as they arrive: a pipe of tokens gives one chunk a write. */
  chunks(): AsyncIterable<Uint8Array>;
}

export type SignalName = "SIGINT" | "SIGTERM";

/** The process that forked this one, when it did so with an IPC channel. */
export interface Parent {
  send(message: unknown): void;
  /** Each message of the parent, from the first one on. */
  onMessage(listener: (message: unknown) => void): void;
  /** The parent died or let go of the channel. */
  onGone(listener: () => void): void;
}

export interface Io {
  /** Arguments after the program's name. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  /** Listens for SIGINT and SIGTERM until the returned function is called. */
  onSignal(listener: (signal: SignalName) => void): () => void;
  readonly parent: Parent | undefined;
  readonly clock: Clock;
  /** `process.version` and the like, for `doctor`. */
  readonly runtime: { readonly node: string; readonly platform: string; readonly arch: string };
}

/** What a command is: gets its arguments parsed, answers with an exit code. */
export type Command = (io: Io, args: readonly string[]) => Promise<number>;

/** Whether `output` may carry colours and cursor movements (https://no-color.org). */
export function mayStyle(output: Output, env: Io["env"]): boolean {
  return output.isTty && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb";
}
