/**
 * `voicewire serve --workers N`: several gateway processes behind one port. The kernel spreads connections over them
 * (SO_REUSEPORT), and each is a node of a cluster, so that a client reaches its session from any of them. This process has no
 * gateway: it keeps the workers running, the speech service that they share, their bus and the operations port.
 */
import { checkBinding } from "../../../access/binding.ts";
import { createDoor } from "../../../access/door.ts";
import { OriginRules } from "../../../access/origin-rules.ts";
import { WorkerHub } from "../../../cluster/bus/worker-hub.ts";
import type { Config } from "../../../config.ts";
import type { Clock } from "../../../kit/clock.ts";
import { listenUrl } from "../../../kit/listen-url.ts";
import type { Logger } from "../../../kit/log.ts";
import { AUDIT_LINES_LOST } from "../../../metrics/prometheus.ts";
import { mergeViews } from "../../../server/live-view/merge-views.ts";
import { certificateFiles, readCertificate } from "../../../server/tls/certificate.ts";
import type { ServiceConfig } from "../../../upstream/services/service-config.ts";
import type { VoiceConfig } from "../../../upstream/voices/voice-config.ts";
import { VERSION } from "../../../version.ts";
import type { Io } from "../../io.ts";
import { createFileLog } from "../../log.ts";
import { forkWithPipe } from "../child.ts";
import { nodeNameOf } from "../cluster.ts";
import { findFreePort } from "../port-check.ts";
import { readServices, servicesLabel } from "../services.ts";
import { checkPorts, type Started } from "../start.ts";
import { chooseUpstream, type OpenUpstream, openUpstream } from "../upstream.ts";
import { mergeExpositions } from "./merge-metrics.ts";
import type { FromWorker, ToWorker, WorkerStart } from "./worker-messages.ts";
import { WorkerProcess } from "./worker-process.ts";
import { checkShares, shareOf, sharesOf } from "./worker-share.ts";

export interface WorkersOptions {
  readonly config: Config;
  readonly count: number;
  readonly log: Logger;
  readonly clock: Clock;
  readonly env: Io["env"];
  readonly platform: string;
}

/** Beyond `drainMs`, until a worker that has not settled is closed all the same. */
const SETTLE_SLACK_MS = 2_000;
/** What a session has said last may be on its way from its worker to the one where its listener is. */
const LAST_WORDS_MS = 250;

/** Rejects as `startWithUpstream` does. */
export async function startWorkers(options: WorkersOptions): Promise<Started> {
  const { config, count, log, clock, env, platform } = options;
  checkBinding(config);
  chooseUpstream(config);
  checkShares(config, { count, platform });
  const tlsFiles = certificateFiles(config);
  const certificate = tlsFiles === null ? null : readCertificate(tlsFiles);
  const nodeName = config.cluster === "" ? null : nodeNameOf(config);
  const { services, voices } = readServices(config, env);
  await checkPorts(config);
  // The kernel shares none that it has picked itself.
  const port = config.port === 0 ? await findFreePort(config.host) : config.port;
  const hub = await WorkerHub.open({ clock, log });
  const upstream = await openUpstream({ config, log, clock, env });
  const supervisor = new Supervisor(options, { port, nodeName, upstream, services, voices, hub });
  try {
    await supervisor.start();
    return {
      port,
      url: listenUrl({ scheme: certificate === null ? "http" : "https", host: config.host, port }),
      opsUrl: supervisor.opsUrl,
      certificate,
      nodeName,
      label: `${upstream.label}${servicesLabel(services)}, ${count} workers`,
      drain: () => supervisor.drain(),
      close: () => supervisor.close(),
    };
  } catch (thrown) {
    await supervisor.close();
    throw thrown;
  }
}

/** What all workers have. */
interface Shared {
  readonly port: number;
  /** What their names in a cluster begin with; null: they are alone on this machine. */
  readonly nodeName: string | null;
  readonly upstream: OpenUpstream;
  readonly services: readonly ServiceConfig[];
  readonly voices: readonly VoiceConfig[];
  readonly hub: WorkerHub;
}

class Supervisor {
  readonly #options: WorkersOptions;
  readonly #shared: Shared;
  readonly #workers: readonly WorkerProcess[];
  #opsUrl: string | null = null;
  /** Counts the lines that the operations port has lost; workers count their own. */
  #lostAuditLines: () => number = () => 0;
  #closeOperations: () => void = () => undefined;
  #isDraining = false;
  #closing: Promise<void> | null = null;

  constructor(options: WorkersOptions, shared: Shared) {
    this.#options = options;
    this.#shared = shared;
    this.#workers = Array.from({ length: options.count }, (_, index) => this.#worker(index + 1));
  }

  get opsUrl(): string | null {
    return this.#opsUrl;
  }

  async start(): Promise<void> {
    const [first, ...others] = this.#workers;
    // It finds what is wrong with the settings, once.
    await first?.start();
    await Promise.all(others.map((worker) => worker.start()));
    if (this.#options.config.opsPort !== "off") await this.#startOperations(this.#options.config.opsPort);
  }

  /** Speech ends at all workers before any connection is closed: the clients of one may be those of another's sessions. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    const { config } = this.#options;
    const settled = Promise.all(this.#workers.map((worker) => worker.settle()));
    await Promise.race([settled, this.#wait(config.drainMs + SETTLE_SLACK_MS)]);
    await this.#wait(LAST_WORDS_MS);
    await this.close();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#isDraining = true;
    await Promise.all(this.#workers.map((worker) => worker.close()));
    this.#closeOperations();
    await this.#shared.hub.close();
    await this.#shared.upstream.stop();
  }

  /** The process ends where it is not waited for. */
  #wait(ms: number): Promise<void> {
    const { clock } = this.#options;
    return new Promise((resolve) => {
      clock.at(clock.nowMs() + ms, resolve);
    });
  }

  #worker(worker: number): WorkerProcess {
    const { clock, log, env } = this.#options;
    const { hub } = this.#shared;
    return new WorkerProcess({
      worker,
      clock,
      log,
      fork: () => forkWithPipe<ToWorker, FromWorker>(["serve", "--worker"], { env: { ...env } }),
      start: () => this.#startOf(worker),
      serveBus: (pipe, onStuck) => hub.serve(pipe, onStuck),
      onEnd: () => hub.nodeEnded(this.#nodeNameOf(worker)),
    });
  }

  #startOf(worker: number): WorkerStart {
    const { config, count } = this.#options;
    const { port, upstream, services, voices } = this.#shared;
    const { baseUrl, key, service } = upstream;
    return {
      type: "start",
      worker,
      nodeName: this.#nodeNameOf(worker),
      config: shareOf(config, { worker, count, port }),
      upstream: { baseUrl, key, passesFaults: service !== undefined },
      services: sharesOf(services, count),
      voices,
    };
  }

  #nodeNameOf(worker: number): string {
    const { nodeName } = this.#shared;
    return `${nodeName === null ? "worker" : nodeName.slice(0, 61)}-${worker}`;
  }

  async #startOperations(port: number): Promise<void> {
    const { config, log, clock } = this.#options;
    // Loaded only now: the help and wrong settings are answered even where the server's binary does not load.
    const { startOperations } = await import("../../../server/operations.ts");
    const auditLogger = config.auditLog === "" ? log : createFileLog(config.auditLog, log);
    const door = createDoor({ ...config, log, auditLogger, clock });
    const host = config.opsHost;
    const supervisor = this;
    const operations = await startOperations({
      host,
      port,
      door,
      origins: new OriginRules({ ...config, host }),
      server: `voicewire/${VERSION}`,
      sessions: {
        get count() {
          return supervisor.#sum((state) => state.sessions);
        },
        get isLeaving() {
          return supervisor.#isDraining || !supervisor.#workers.some(({ isUp }) => isUp);
        },
      },
      details: () => ({
        workers: { up: this.#workers.filter(({ isUp }) => isUp).length, of: this.#workers.length },
      }),
      upstream: () => ({
        open: this.#sum(({ upstream }) => upstream.open),
        queued: this.#sum(({ upstream }) => upstream.queued),
        regions: this.#workers.find(({ state }) => state !== null)?.state?.upstream.regions ?? [],
      }),
      metrics: () => this.#metrics(),
      liveView: {
        look: async (look) => mergeViews(await this.#askAll((worker) => worker.look(look)), look),
        open: async (look) => (await this.#askAll((worker) => worker.open(look)))[0] ?? null,
      },
      clock,
    }).catch((thrown: unknown) => {
      door.close();
      throw thrown;
    });
    this.#lostAuditLines = () => door.audit.lostLines;
    this.#closeOperations = () => {
      operations.close();
      door.close();
    };
    this.#opsUrl = listenUrl({ scheme: "http", host, port: operations.port });
  }

  #sum(of: (state: NonNullable<WorkerProcess["state"]>) => number): number {
    return this.#workers.reduce((sum, { state }) => sum + (state === null ? 0 : of(state)), 0);
  }

  /** Without those that have no answer. */
  async #askAll<T>(ask: (worker: WorkerProcess) => Promise<T | null>): Promise<T[]> {
    const answers = await Promise.all(this.#workers.map(ask));
    return answers.filter((answer) => answer !== null);
  }

  async #metrics(): Promise<string> {
    const texts = await Promise.all(
      this.#workers.map(async (one) => ({ worker: `${one.worker}`, text: await one.metrics() })),
    );
    const expositions = texts.flatMap(({ worker, text }) => (text === null ? [] : [{ worker, text }]));
    const { name, help } = AUDIT_LINES_LOST;
    const own = family("counter", name, help, [["", this.#lostAuditLines()]]);
    return `${mergeExpositions([...expositions, { worker: "operations", text: own }])}\n${this.#ownMetrics()}`;
  }

  #ownMetrics(): string {
    const each = (of: (worker: WorkerProcess) => number): [string, number][] =>
      this.#workers.map((worker) => [`{worker="${worker.worker}"}`, of(worker)]);
    const { service } = this.#shared.upstream;
    return [
      family(
        "gauge",
        "voicewire_worker_up",
        "Whether the worker runs",
        each(({ isUp }) => (isUp ? 1 : 0)),
      ),
      family("counter", "voicewire_worker_restarts_total", "Times that the worker was started again", [
        ...each(({ restarts }) => restarts),
      ]),
      family(
        "counter",
        "voicewire_worker_hangs_total",
        "Times that the worker was killed because it did not answer",
        each(({ hangs }) => hangs),
      ),
      ...(service === undefined
        ? []
        : [
            family(
              "counter",
              "voicewire_service_hangs_total",
              "Times that the embedded speech service was killed because it did not answer",
              [["", service.hangs]],
            ),
          ]),
    ].join("\n");
  }
}

function family(kind: "gauge" | "counter", name: string, help: string, samples: [string, number][]): string {
  const lines = samples.map(([labels, value]) => `${name}${labels} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${lines.join("")}`;
}
