/** Nodes on a nats-server, each a process of its own, with a way to the server that can be cut. */
import { connect, createServer, type Server, type Socket } from "node:net";
import type { NatsServer } from "../../test/kit/nats-server.ts";
import type { Bench } from "./bench.ts";
import type { ClusterNodeCommands, ClusterNodeOptions } from "./commands.ts";
import type { Fixture } from "./fixture.ts";
import { wait } from "./monotonic.ts";

export const NODES = 3;
const SETTLE_MS = 4000;

/** The way of one node to nats-server, which can be cut. */
class Wire {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;
  port = 0;

  constructor(toPort: number) {
    this.#server = createServer((near) => {
      if (this.#isCut) {
        near.destroy();
        return;
      }
      const far = connect(toPort, "127.0.0.1");
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(socket);
        socket.setNoDelay(true);
        socket.pipe(other);
        socket.on("error", () => socket.destroy());
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
      }
    });
  }

  listen(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.listen(0, "127.0.0.1", () => {
        const address = this.#server.address();
        this.port = typeof address === "object" && address !== null ? address.port : 0;
        resolve();
      });
    });
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  heal(): void {
    this.#isCut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

export interface ClusterOptions {
  readonly upstreamPort: number;
  readonly nats: NatsServer;
  readonly settings: NonNullable<ClusterNodeOptions["settings"]>;
}

interface Node {
  readonly fixture: Fixture<ClusterNodeCommands>;
  readonly wire: Wire;
}

export class Cluster implements AsyncDisposable {
  readonly #bench: Bench;
  readonly #upstreamPort: number;
  readonly #nats: NatsServer;
  readonly #settings: NonNullable<ClusterNodeOptions["settings"]>;
  readonly nodes: (Node | null)[] = Array.from({ length: NODES }, () => null);
  #started = 0;

  constructor(bench: Bench, { upstreamPort, nats, settings }: ClusterOptions) {
    this.#bench = bench;
    this.#upstreamPort = upstreamPort;
    this.#nats = nats;
    this.#settings = settings;
  }

  readonly ports = (): (number | null)[] => this.nodes.map((node) => node?.fixture.port ?? null);

  async start(number: number): Promise<void> {
    const wire = new Wire(this.#nats.port);
    await wire.listen();
    this.#started += 1;
    const fixture = await this.#bench.start<ClusterNodeCommands>("cluster-node", {
      upstreamUrl: `http://127.0.0.1:${this.#upstreamPort}`,
      distUrl: this.#bench.options.distUrl,
      natsUrl: `nats://127.0.0.1:${wire.port}`,
      nodeName: `node-${number}-${this.#started}`,
      settings: this.#settings,
    } satisfies ClusterNodeOptions);
    this.nodes[number] = { fixture, wire };
  }

  async startAll(): Promise<void> {
    for (let number = 0; number < NODES; number += 1) await this.start(number);
  }

  node(number: number): Node {
    const node = this.nodes[number];
    if (node === null || node === undefined) throw new Error(`Node ${number} is down`);
    return node;
  }

  /** Until each knows all. */
  async settle(): Promise<void> {
    await wait(SETTLE_MS);
    for (const node of this.nodes) {
      const alive = (await node?.fixture.ask("cluster", undefined))?.alive ?? 0;
      if (alive < NODES) throw new Error(`A node knows ${alive} nodes, expected ${NODES}`);
    }
  }

  async end(number: number): Promise<void> {
    const node = this.nodes[number];
    this.nodes[number] = null;
    await node?.fixture.stop();
    node?.wire.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((_, number) => this.end(number)));
  }
}
