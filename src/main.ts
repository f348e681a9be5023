#!/usr/bin/env -S node --v8-pool-size=1
/**
 * The process edge: turns `process` into an Io, runs the command line, turns its answer into an exit code. The only
 * file that touches `process`, apart from the entry files of workers.
 *
 * Its flag: one thread marks garbage beside the event loop instead of four, which take the event loop's own core where
 * there are few, so that every session's frames are up to 0.3 s late (bench p4, docs/architecture.md). Node makes these
 * threads before any program runs.
 */
import { runCli } from "./cli/commands.ts";
import type { Input, Io, Output, Parent, SignalName } from "./cli/io.ts";
import { systemClock } from "./kit/clock.ts";
import { setHeapGrowth } from "./kit/heap-growth.ts";

for (const fault of ["uncaughtException", "unhandledRejection"] as const) {
  process.on(fault, (thrown: unknown) => {
    const isDebug = process.env.VOICEWIRE_DEBUG === "1";
    const message = thrown instanceof Error ? (isDebug ? thrown.stack : thrown.message) : String(thrown);
    // The karaoke line may have hidden it.
    if (process.stdout.isTTY) process.stdout.write("\x1b[?25h");
    process.stderr.write(`voicewire: Internal fault: ${message}\n`);
    process.exit(1);
  });
}

setHeapGrowth();
const code = await runCli(processIo());
// What a command has left open (a keep-alive socket, a paused stdin) must not hold the process.
process.stdout.write("", () => process.exit(code));

function processIo(): Io {
  return {
    argv: process.argv.slice(2),
    env: process.env,
    stdin: stdinInput(),
    stdout: output(process.stdout),
    stderr: output(process.stderr),
    onSignal,
    parent: process.send === undefined ? undefined : parent(process.send.bind(process)),
    clock: systemClock,
    runtime: { node: process.version, platform: process.platform, arch: process.arch },
  };
}

function stdinInput(): Input {
  return {
    isTty: process.stdin.isTTY === true,
    chunks: () => process.stdin as AsyncIterable<Uint8Array>,
  };
}

function output(stream: NodeJS.WriteStream): Output {
  const brokenListeners: (() => void)[] = [];
  let isBroken = false;
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (isBroken) return;
    isBroken = true;
    if (error.code !== "EPIPE") process.exitCode = 1;
    for (const listener of brokenListeners) listener();
    // Nobody has asked to be told: end as programs do whose reader is gone.
    if (brokenListeners.length === 0) process.exit(0);
  });
  return {
    isTty: stream.isTTY === true,
    columns: () => stream.columns || 80,
    write: (data) => {
      if (!isBroken) stream.write(data);
    },
    onBroken: (listener) => {
      brokenListeners.push(listener);
    },
  };
}

function onSignal(listener: (signal: SignalName) => void): () => void {
  const signals: readonly SignalName[] = ["SIGINT", "SIGTERM"];
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}

function parent(send: (message: unknown) => unknown): Parent {
  return {
    send: (message) => {
      if (process.connected) send(message);
    },
    // Node keeps what has come until somebody listens.
    onMessage: (listener) => {
      process.on("message", listener);
    },
    onGone: (listener) => {
      // The event does not come again for a parent that died while our modules were loading.
      if (process.connected) process.once("disconnect", listener);
      else listener();
    },
  };
}
