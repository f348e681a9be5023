/** A speech service, a gateway, a relay and an Asterisk that calls the gateway. */
import { setTimeout as sleep } from "node:timers/promises";
import { startService } from "../../../src/service/service.ts";
import { freePort } from "../../helpers/free-port.ts";
import { gatewayAt, type TestGateway } from "../../helpers/start-gateway.ts";
import { AsteriskServer } from "./asterisk-server.ts";
import type { Installation } from "./installation.ts";
import { MediaRelay } from "./relay.ts";

/** For all that takes as long as the speech does, and for a busy machine. */
export const PATIENCE = { deadlineMs: 40_000 };

export interface Marks {
  readonly asked: number;
  readonly played: number;
}

interface Parts {
  readonly gateway: TestGateway;
  readonly relay: MediaRelay;
  readonly asterisk: AsteriskServer;
}

type Close = () => Promise<void>;

export class Rig implements AsyncDisposable {
  readonly #parts: Parts;
  /** In the order opened. */
  readonly #opened: readonly Close[];

  static async start(installation: Installation): Promise<Rig> {
    const opened: Close[] = [];
    try {
      const service = await startService({ host: "127.0.0.1", port: 0 });
      opened.push(() => service.close());
      const audiosocketPort = await freePort();
      const gateway = await gatewayAt(service.url, { voice: "", audiosocketPort });
      opened.push(() => gateway.close());
      const relay = await MediaRelay.start(gateway.wsUrl);
      opened.push(() => relay[Symbol.asyncDispose]());
      const asterisk = await AsteriskServer.start(installation, {
        gateway: gateway.wsUrl,
        relay: relay.url,
        audioSocket: `127.0.0.1:${audiosocketPort}`,
      });
      opened.push(() => asterisk[Symbol.asyncDispose]());
      return new Rig({ gateway, relay, asterisk }, opened);
    } catch (thrown) {
      await closeAll(opened);
      throw thrown;
    }
  }

  private constructor(parts: Parts, opened: readonly Close[]) {
    this.#parts = parts;
    this.#opened = opened;
  }

  get gateway(): TestGateway {
    return this.#parts.gateway;
  }
  get relay(): MediaRelay {
    return this.#parts.relay;
  }
  get asterisk(): AsteriskServer {
    return this.#parts.asterisk;
  }

  /** Of all calls of this carrier so far. */
  async marksOf({ carrier }: { readonly carrier: string }): Promise<Marks> {
    const lines = (await (await fetch(`${this.gateway.opsUrl}/metrics`)).text()).split("\n");
    const count = (name: string): number =>
      Number(lines.find((line) => line.startsWith(`${name}{carrier="${carrier}"} `))?.split(" ")[1]);
    return { asked: count("voicewire_call_marks_total"), played: count("voicewire_call_marks_played_total") };
  }

  async untilMarks(of: { readonly carrier: string }, isTrue: (marks: Marks) => boolean): Promise<void> {
    const endMs = performance.now() + PATIENCE.deadlineMs;
    for (let marks = await this.marksOf(of); !isTrue(marks); marks = await this.marksOf(of)) {
      if (performance.now() > endMs) throw new Error(`Marks never came: ${JSON.stringify(marks)}`);
      await sleep(20);
    }
  }

  /** Until Asterisk has hung up every channel. */
  async untilNoChannels(): Promise<void> {
    const endMs = performance.now() + PATIENCE.deadlineMs;
    const { asterisk } = this;
    for (let left = await asterisk.channels(); left.length > 0; left = await asterisk.channels()) {
      if (performance.now() > endMs) throw new Error(`Channels are left: ${left.join(", ")}`);
      await sleep(20);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeAll(this.#opened);
  }
}

/** The last one first. */
async function closeAll(opened: readonly Close[]): Promise<void> {
  for (const close of [...opened].reverse()) await close();
}
