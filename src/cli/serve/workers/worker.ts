/** `voicewire serve --worker`: one of several gateway processes behind one port, started by serve and ended by it. */
import { Socket } from "node:net";
import type { Bus } from "../../../cluster/bus/bus.ts";
import { ProcessBus } from "../../../cluster/bus/process-bus.ts";
import { toGatewayError } from "../../../errors.ts";
import type { ClusterPlace, Gateway } from "../../../gateway.ts";
import type { Logger } from "../../../kit/log.ts";
import { EXIT, usageError } from "../../exit.ts";
import type { Io, Parent } from "../../io.ts";
import { createFileLog, createLog } from "../../log.ts";
import { CHILD_PIPE } from "../child.ts";
import { openCluster } from "../cluster.ts";
import { lengthenQueue } from "../connection-queue.ts";
import type { Answer, FromWorker, Question, ToWorker, WorkerStart } from "./worker-messages.ts";

export async function runWorker(io: Io): Promise<number> {
  const { parent } = io;
  if (parent === undefined) {
    throw usageError("Flag --worker: there is no IPC channel, expected to be forked by serve", "worker");
  }
  const send = (report: FromWorker): void => parent.send(report);
  const orders = new Orders(io, parent);
  const start = await orders.start;
  if (start === null) return EXIT.ok;
  const log = createLog(io, start.config.logLevel, { worker: start.worker });
  try {
    // What is still coming up when the parent ends goes down with the process.
    const gateway = await Promise.race([startGatewayOf(start, { io, log }), orders.close]);
    if (gateway === undefined) return EXIT.ok;
    await lengthenQueue(gateway.port, log);
    orders.serve(gateway, send);
    send({ type: "listening" });
    await orders.close;
    await gateway.close();
    return EXIT.ok;
  } catch (thrown) {
    const { code, message } = toGatewayError(thrown);
    send({ type: "failed", code, message });
    return EXIT.other;
  }
}

async function startGatewayOf(
  start: WorkerStart,
  { io, log }: { readonly io: Io; readonly log: Logger },
): Promise<Gateway> {
  const { config, upstream, services, voices } = start;
  const { startGateway } = await import("../../../gateway.ts");
  return startGateway({
    // Each has a file of its own: lines of two in one could be torn.
    config: config.ledger === "" ? config : { ...config, ledger: `${config.ledger}.${start.worker}` },
    upstreamBaseUrl: upstream.baseUrl,
    upstreamKey: upstream.key,
    passesFaults: upstream.passesFaults,
    services,
    voices,
    log,
    auditLog: config.auditLog === "" ? log : createFileLog(config.auditLog, log),
    cluster: await placeOf(start, { io, log }),
    isPortShared: true,
  });
}

/** One node of the machine's own, or of a cluster of machines. Its address is that of all workers, and none leads to one. */
async function placeOf(
  { nodeName, config }: WorkerStart,
  { io, log }: { readonly io: Io; readonly log: Logger },
): Promise<ClusterPlace> {
  const { clock } = io;
  const openBus = (): Bus => new ProcessBus({ stream: new Socket({ fd: CHILD_PIPE }), clock, log });
  const cluster = await openCluster({
    config: { ...config, nodeName },
    log,
    clock,
    openMeanwhile: openBus,
  });
  return { nodeName, connect: () => Promise.resolve(openBus()), ...cluster };
}

async function answerOf(question: Question, { metrics, liveView }: Gateway): Promise<Answer> {
  const { id } = question;
  switch (question.type) {
    case "metrics":
      return { type: "metrics", id, text: await metrics() };
    case "look":
      return { type: "look", id, view: await liveView.look(question.look) };
    case "open":
      return { type: "open", id, opened: await liveView.open(question.look) };
  }
}

/** What the parent asks for, and its end. */
class Orders {
  /** null: the parent has ended. */
  readonly start: Promise<WorkerStart | null>;
  /** Resolves when the worker has to end. */
  readonly close: Promise<undefined>;
  #gateway: Gateway | null = null;
  #send: (report: FromWorker) => void = () => undefined;
  #settling: Promise<void> | null = null;

  constructor(io: Io, parent: Parent) {
    let started: (start: WorkerStart | null) => void = () => undefined;
    this.start = new Promise((resolve) => {
      started = resolve;
    });
    this.close = new Promise((resolve) => {
      const end = (): void => {
        started(null);
        resolve(undefined);
      };
      parent.onGone(end);
      parent.onMessage((received) => {
        const message = received as ToWorker;
        if (message.type === "start") started(message);
        else if (message.type === "close") end();
        else this.#carryOut(message);
      });
    });
    // Ctrl+C goes to the parent, too, which has all speech to drain; SIGTERM is for this one, or for all.
    io.onSignal((signal) => {
      if (signal === "SIGTERM") this.#settle();
    });
  }

  serve(gateway: Gateway, send: (report: FromWorker) => void): void {
    this.#gateway = gateway;
    this.#send = send;
  }

  #carryOut(message: Exclude<ToWorker, { readonly type: "start" | "close" }>): void {
    const gateway = this.#gateway;
    if (gateway === null) return;
    switch (message.type) {
      case "ping":
        this.#send({ type: "pong", state: gateway.state() });
        return;
      case "metrics":
      case "look":
      case "open":
        answerOf(message, gateway).then(
          (answer) => this.#send(answer),
          // The parent does not wait for it for ever.
          () => undefined,
        );
        return;
      case "settle":
        this.#settle();
    }
  }

  #settle(): void {
    if (this.#gateway === null) return;
    this.#settling ??= this.#gateway.settle();
    // Said again to a parent that asks when a signal has asked before.
    void this.#settling.then(() => this.#send({ type: "settled" }));
  }
}
