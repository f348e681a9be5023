/**
 * The neural engine as the service sees it: a process that is started with the first request, and again where it ended. It does one
 * thing at a time; what waits for it is bounded by the jobs of the voice workers, each of which waits for one piece.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { GatewayError } from "../../../errors.ts";
import type { Logger } from "../../../kit/log.ts";
import { workerUrl } from "../../../kit/worker-url.ts";
import type { FromEngine, ToEngine } from "./engine-messages.ts";
import { SHERPA_ADVICE, SHERPA_PACKAGE } from "./sherpa-package.ts";
import type { EngineHandlers, EnginePiece, SpeechEngine } from "./speech-engine.ts";
import { brokenModel, type VoiceModel } from "./voice-models.ts";

export interface NeuralEngineOptions {
  readonly models: readonly VoiceModel[];
  /** The package's main file. */
  readonly packageFile: string;
  readonly log: Logger;
  readonly deadlines?: { readonly loadMs: number; readonly speakMs: number };
}

/** A process that does not answer for so long is killed. */
const DEADLINES = { loadMs: 120_000, speakMs: 60_000 };
/** One more does not make a small model faster. */
const MAX_THREADS = 4;
/** Characters that are kept of what the package writes while it loads a model: the end says why it could not. */
const MAX_WRITTEN = 4000;

interface Task {
  readonly id: number;
  readonly model: VoiceModel;
  /** null: the model is only loaded. */
  readonly piece: EnginePiece | null;
  readonly done: (reply: Extract<FromEngine, { type: "loaded" | "spoken" }>) => void;
  readonly failed: (error: GatewayError) => void;
  isCancelled: boolean;
}

export class NeuralEngine implements SpeechEngine {
  readonly #options: NeuralEngineOptions;
  readonly #models: ReadonlyMap<string, VoiceModel>;
  readonly #waiting: Task[] = [];
  #process: EngineProcess | null = null;
  /** What the process does now. */
  #task: Task | null = null;
  /** Models that this process has loaded, and may have dropped again. */
  #loaded = new Set<string>();
  #nextId = 1;
  #restarts = 0;
  #isClosed = false;

  constructor(options: NeuralEngineOptions) {
    this.#options = options;
    this.#models = new Map(options.models.map((model) => [model.name, model]));
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** Loads a model. Rejects with GatewayError `voice_model_broken` or `voice_engine_missing`. */
  load(model: VoiceModel): Promise<{ readonly sampleRate: number; readonly speakers: number }> {
    return new Promise((resolve, reject) => {
      const done: Task["done"] = (reply) => {
        if (reply.type === "loaded") resolve(reply);
      };
      this.#add({ model, piece: null, done, failed: reject });
    });
  }

  speak(piece: EnginePiece, { spoken, failed }: EngineHandlers): { cancel(): void } {
    const model = this.#models.get(piece.model);
    if (model === undefined) {
      const error = new GatewayError("internal", `Cannot speak: there is no voice model "${piece.model}"`);
      const timer = setImmediate(() => failed(error));
      return { cancel: () => clearImmediate(timer) };
    }
    const done: Task["done"] = (reply) => {
      if (reply.type !== "spoken") return;
      // A copy of its own: it goes on to a thread, and its memory with it.
      spoken({ samples: new Int16Array(reply.samples), sampleRate: reply.sampleRate });
    };
    const task = this.#add({ model, piece, done, failed });
    return {
      cancel: () => {
        task.isCancelled = true;
        const at = this.#waiting.indexOf(task);
        if (at >= 0) this.#waiting.splice(at, 1);
      },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const closed = new GatewayError("draining", "Cannot speak: the service is closing");
    const underWay = this.#task === null ? [] : [this.#task];
    this.#task = null;
    for (const task of [...underWay, ...this.#waiting.splice(0)]) if (!task.isCancelled) task.failed(closed);
    await this.#process?.end();
  }

  #add(task: Omit<Task, "id" | "isCancelled">): Task {
    const added = { ...task, id: this.#nextId++, isCancelled: false };
    this.#waiting.push(added);
    // Nobody is called from inside `speak`.
    setImmediate(() => this.#goOn());
    return added;
  }

  #goOn(): void {
    if (this.#task !== null || this.#isClosed) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    if (next.piece !== null && !this.#loaded.has(next.model.name)) {
      this.#waiting.unshift(next);
      this.#do({
        ...next,
        piece: null,
        id: this.#nextId++,
        done: () => undefined,
        failed: (error) => this.#skip(next, error),
      });
    } else this.#do(next);
  }

  #do(task: Task): void {
    this.#task = task;
    this.#process ??= this.#start();
    const { id, model, piece } = task;
    const { files } = model;
    const { loadMs, speakMs } = this.#options.deadlines ?? DEADLINES;
    if (piece === null) this.#process.ask({ type: "load", id, files }, loadMs);
    else this.#process.ask({ type: "speak", id, files, piece }, speakMs);
  }

  /** The model of a piece can't be loaded. */
  #skip(task: Task, error: GatewayError): void {
    const at = this.#waiting.indexOf(task);
    if (at >= 0) this.#waiting.splice(at, 1);
    if (!task.isCancelled) task.failed(error);
  }

  #start(): EngineProcess {
    const { packageFile } = this.#options;
    const started: EngineProcess = new EngineProcess(packageFile, {
      hear: (message, written) => this.#hear(message, written),
      ended: (reason, written) => {
        if (this.#process === started) this.#ended(reason, written);
      },
    });
    return started;
  }

  #hear(message: FromEngine, written: string): void {
    if (message.type === "ready") return;
    const task = this.#task;
    if (message.type === "missing") {
      // The next request has no use for this process either, and gets one of its own.
      void this.#process?.end();
      this.#process = null;
      const text = `Cannot load ${SHERPA_PACKAGE}: ${message.message.split("\n")[0]}; expected it to fit this machine: ${SHERPA_ADVICE}`;
      this.#finish(() =>
        task?.failed(new GatewayError("voice_engine_missing", text, { field: "voice-models" })),
      );
    } else if (message.id !== task?.id) return;
    else if (message.type === "refused")
      this.#finish(() => task.failed(brokenModel(task.model, reasonOf(written, message.message))));
    else {
      this.#loaded.add(task.model.name);
      this.#finish(() => task.done(message));
    }
  }

  #ended(reason: string, written: string): void {
    this.#process = null;
    this.#loaded = new Set();
    const task = this.#task;
    if (this.#isClosed || task === null) {
      this.#task = null;
      this.#goOn();
      return;
    }
    this.#restarts += 1;
    const error =
      task.piece === null
        ? brokenModel(task.model, reasonOf(written, `its engine ended (${reason})`))
        : new GatewayError(
            "internal",
            `Speech failed: the engine of voice model "${task.model.name}" ended (${reason})`,
          );
    this.#options.log.error({ model: task.model.name, reason }, "The process of the neural engine ended");
    this.#finish(() => task.failed(error));
  }

  #finish(tell: () => void): void {
    const task = this.#task;
    this.#task = null;
    if (task?.isCancelled === false || task?.piece === null) tell();
    this.#goOn();
  }
}

const THROWN = "what():";
const UNREADABLE = /[\p{Cc}\uFFFD]+/gu;

/** What was thrown, or else the last line without its place in the source: `.../onnx-utils.cc:Load:12 No such file`. */
function reasonOf(written: string, otherwise: string): string {
  // It repeats the bytes of a file that is no text.
  const lines = written.split("\n").map((line) => line.replace(UNREADABLE, " ").trim());
  const thrown = lines.find((line) => line.startsWith(THROWN));
  if (thrown !== undefined) return thrown.slice(THROWN.length).trim();
  const last = lines.findLast((line) => line !== "") ?? otherwise;
  const [place = "", ...words] = last.split(" ");
  return words.length > 0 && /\.(?:cc|h):/.test(place) ? words.join(" ") : last;
}

interface ProcessHandlers {
  hear(message: FromEngine, written: string): void;
  ended(reason: string, written: string): void;
}

class EngineProcess {
  readonly #child: ChildProcess;
  #isReading = false;
  #written = "";
  #deadline: NodeJS.Timeout | undefined;
  readonly #over: Promise<void>;

  constructor(packageFile: string, handlers: ProcessHandlers) {
    const file = fileURLToPath(workerUrl("./engine-worker.ts", import.meta.url));
    const threads = Math.min(MAX_THREADS, availableParallelism());
    // Not forked: without the flags of this process, and what it writes is not passed on.
    this.#child = spawn(process.execPath, [file, packageFile, String(threads)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      serialization: "advanced",
    });
    this.#child.stderr?.on("data", (data: Buffer) => {
      if (this.#isReading) this.#written = (this.#written + data.toString()).slice(-MAX_WRITTEN);
    });
    this.#child.on("message", (message) => {
      const heard = message as FromEngine;
      if (heard.type !== "ready") clearTimeout(this.#deadline);
      handlers.hear(heard, this.#written);
    });
    this.#over = new Promise((resolve) => {
      let isOver = false;
      const over = (reason: string): void => {
        if (isOver) return;
        isOver = true;
        clearTimeout(this.#deadline);
        resolve();
        handlers.ended(reason, this.#written);
      };
      this.#child.on("error", (error) => over(error.message));
      // Behind all that it has written.
      this.#child.on("close", (code, signal) => over(signal ?? `exit code ${code}`));
    });
  }

  ask(request: ToEngine, deadlineMs: number): void {
    this.#isReading = request.type === "load";
    this.#written = "";
    // What can't be sent is told by its end.
    this.#child.send(request, () => undefined);
    this.#deadline = setTimeout(() => this.#child.kill("SIGKILL"), deadlineMs);
  }

  end(): Promise<void> {
    this.#child.kill("SIGKILL");
    return this.#over;
  }
}
