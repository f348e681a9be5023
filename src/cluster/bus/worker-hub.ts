/**
 * The bus of the workers of one machine, kept by the process that started them. It sees a worker end at once, where nodes on a
 * server wait for heartbeats: so it says good-bye in the worker's place.
 */
import type { Duplex } from "node:stream";
import { toGatewayError } from "../../errors.ts";
import type { Clock } from "../../kit/clock.ts";
import type { Logger } from "../../kit/log.ts";
import type { BusHandle } from "./bus.ts";
import { decodeHeartbeat, encodeHeartbeat, HEARTBEATS, type Heartbeat } from "./heartbeat.ts";
import { type MemoryBus, MemoryHub } from "./memory-bus.ts";
import { serveBus } from "./process-hub.ts";

export interface WorkerHubOptions {
  readonly clock: Clock;
  readonly log: Logger;
}

export class WorkerHub {
  readonly #options: WorkerHubOptions;
  readonly #hub: MemoryHub;
  readonly #bus: MemoryBus;
  /** By node. */
  readonly #lastHeard = new Map<string, Heartbeat>();

  private constructor(options: WorkerHubOptions) {
    this.#options = options;
    this.#hub = new MemoryHub(options);
    this.#bus = this.#hub.open();
  }

  static async open(options: WorkerHubOptions): Promise<WorkerHub> {
    const workers = new WorkerHub(options);
    await workers.#bus.subscribe(HEARTBEATS, (bytes) => {
      const heartbeat = decodeHeartbeat(bytes);
      if (heartbeat !== undefined) workers.#lastHeard.set(heartbeat.name, heartbeat);
    });
    return workers;
  }

  /** `onStuck`: the worker does not read, and its bus was taken from it. */
  serve(stream: Duplex, onStuck: () => void): BusHandle {
    return serveBus({ bus: this.#hub.open(), stream, onStuck });
  }

  /** The process of this node has ended. Where it did not say so itself, clients of its sessions hear of it now. */
  nodeEnded(name: string): void {
    const heard = this.#lastHeard.get(name);
    this.#lastHeard.delete(name);
    if (heard === undefined || heard.isLeaving) return;
    const { leases, owners } = this.#hub;
    const lease = leases.find(name);
    if (lease !== undefined && textOf(lease.value) === heard.incarnation) leases.delete(name);
    try {
      this.#bus.publish(HEARTBEATS, encodeHeartbeat({ ...heard, isLeaving: true }));
    } catch (thrown) {
      const { code } = toGatewayError(thrown);
      this.#options.log.warn({ code, node: name }, "The others hear of a worker's end by its silence");
    }
    // Until then whoever goes on with its sessions may look at what it owned.
    const { clock } = this.#options;
    clock.at(clock.nowMs() + this.#hub.leaseMs, () => {
      const value = `${name} ${heard.incarnation}`;
      for (const entry of owners.entries) if (textOf(entry.value) === value) owners.delete(entry.key);
    });
  }

  close(): Promise<void> {
    return this.#bus.close();
  }
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
