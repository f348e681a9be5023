/**
 * A real Asterisk with the configuration beside this file, in a folder of its own under the system's temporary one: no
 * root, loopback only, driven over its REST interface (ARI).
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import WebSocket from "ws";
import { freePort } from "../../helpers/free-port.ts";
import { until } from "../../helpers/until.ts";
import type { Installation } from "./installation.ts";

const HERE = new URL(".", import.meta.url).pathname;
const BOOT_MS = 60_000;
const STOP_MS = 10_000;
/** Name of the application that `bridge` runs channels in. */
const APP = "test";

/** What the configuration is filled in with, beside what the server knows itself. */
export interface AsteriskPeers {
  /** ws://HOST:PORT of the gateway. */
  readonly gateway: string;
  /** ws://HOST:PORT of the relay in front of it. */
  readonly relay: string;
  /** HOST:PORT of its AudioSocket. */
  readonly audioSocket: string;
}

export interface AsteriskCall {
  /** Extension of [gateway] in extensions.conf, which calls the gateway. */
  readonly gateway: "websocket" | "audiosocket" | "audiosocket-channel";
  /** Extension of [caller]. */
  readonly caller: "record" | "say" | "keys";
  /** Channel variables of both. */
  readonly variables: Readonly<Record<string, string>>;
  /** Of the wire between the halves: ulaw (default), slin16. */
  readonly format?: string;
}

interface StasisEvent {
  readonly type: string;
  readonly channel?: { readonly id: string };
}

export class AsteriskServer implements AsyncDisposable {
  /** Where it keeps everything; recordings of the tests go there too. */
  readonly folder: string;
  readonly #installation: Installation;
  readonly #process: ChildProcess;
  readonly #ari: { readonly url: string; readonly user: string };
  #events: WebSocket | null = null;
  readonly #inApp = new Set<string>();
  /** Caller's channel -> RTP channel. */
  readonly #mediaOf = new Map<string, string>();

  /** Resolves when it has booted. Rejects with what it has logged when it does not. */
  static async start(installation: Installation, peers: AsteriskPeers): Promise<AsteriskServer> {
    const server = new AsteriskServer(installation, peers, await freePort());
    try {
      await server.#booted();
      return server;
    } catch (thrown) {
      const log = server.log;
      await server[Symbol.asyncDispose]();
      throw new Error(`Asterisk does not start:\n${log}`, { cause: thrown });
    }
  }

  private constructor(installation: Installation, peers: AsteriskPeers, httpPort: number) {
    this.#installation = installation;
    this.folder = mkdtempSync(join(tmpdir(), "asterisk-"));
    const password = randomUUID();
    this.#ari = { url: `http://127.0.0.1:${httpPort}/ari`, user: `test:${password}` };
    const values: Readonly<Record<string, string>> = {
      RUN: this.folder,
      MODULES: installation.modules,
      DATA: installation.data,
      HTTP: String(httpPort),
      PASSWORD: password,
      GATEWAY: peers.gateway,
      RELAY: peers.relay,
      AUDIOSOCKET: peers.audioSocket,
    };
    for (const name of readdirSync(HERE).filter((file) => file.endsWith(".conf"))) {
      const text = readFileSync(join(HERE, name), "utf8");
      writeFileSync(
        join(this.folder, name),
        text.replaceAll(/@([A-Z]+)@/g, (whole, key: string) => values[key] ?? whole),
      );
    }
    this.#process = this.#spawn("-f");
  }

  /** What it has warned of. */
  get log(): string {
    try {
      return readFileSync(join(this.folder, "messages"), "utf8");
    } catch {
      return "";
    }
  }

  /** Begins a call; resolves with the id of the caller's channel. */
  async call({ gateway, caller, variables, format = "ulaw" }: AsteriskCall): Promise<string> {
    return this.#originate(`Local/${gateway}@gateway/n`, format, variables, {
      context: "caller",
      extension: caller,
      priority: "1",
    });
  }

  /**
   * A caller and an RTP peer (HOST:PORT) in one bridge, as an application of ARI does it; resolves with the id of the
   * caller's channel.
   */
  async externalMedia(
    peer: string,
    caller: AsteriskCall["caller"],
    variables: Readonly<Record<string, string>>,
  ): Promise<string> {
    await this.#openApp();
    const otherChannelId = randomUUID();
    const phone = await this.#originate(`Local/${caller}@caller/n`, "ulaw", variables, {
      app: APP,
      channelId: randomUUID(),
      otherChannelId,
    });
    const media = await this.#post("channels/externalMedia", {
      app: APP,
      external_host: peer,
      format: "ulaw",
    });
    const bridge = await this.#post("bridges", { type: "mixing" });
    await until("both channels are in the application", () =>
      [phone, media].every((id) => this.#inApp.has(id)),
    );
    await this.#ask("POST", `bridges/${bridge}/addChannel`, { channel: `${phone},${media}` });
    this.#mediaOf.set(otherChannelId, media);
    return otherChannelId;
  }

  /** Lets `say` and `keys` of the call with that CALL_UUID begin. */
  async go(callUuid: string): Promise<void> {
    await this.#ask("POST", "asterisk/variable", { variable: `GO-${callUuid}`, value: "1" });
  }

  /** Ends a caller's call, its RTP channel too. Idempotent. */
  async hangUp(channel: string): Promise<void> {
    for (const id of [channel, this.#mediaOf.get(channel)])
      if (id !== undefined) await this.#ask("DELETE", `channels/${id}`, {}, [404]);
    this.#mediaOf.delete(channel);
  }

  /** Names of all channels that there are. */
  async channels(): Promise<string[]> {
    const channels = (await (await this.#ask("GET", "channels", {})).json()) as { readonly name: string }[];
    return channels.map(({ name }) => name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#events?.terminate();
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const gone = once(this.#process, "exit");
      this.#process.kill("SIGTERM");
      const timer = setTimeout(() => this.#process.kill("SIGKILL"), STOP_MS);
      await gone;
      clearTimeout(timer);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #originate(
    endpoint: string,
    formats: string,
    variables: Readonly<Record<string, string>>,
    caller: Readonly<Record<string, string>>,
  ): Promise<string> {
    return this.#post("channels", { endpoint, formats, ...caller }, { variables });
  }

  /** The id of what was made. */
  async #post(path: string, query: Readonly<Record<string, string>>, body?: object): Promise<string> {
    const made = (await (await this.#ask("POST", path, query, [], body)).json()) as { readonly id: string };
    return made.id;
  }

  async #ask(
    method: string,
    path: string,
    query: Readonly<Record<string, string>>,
    alsoGood: readonly number[] = [],
    body?: object,
  ): Promise<Response> {
    const { url, user } = this.#ari;
    const response = await fetch(`${url}/${path}?${new URLSearchParams(query)}`, {
      method,
      headers: {
        authorization: `Basic ${Buffer.from(user).toString("base64")}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok && !alsoGood.includes(response.status))
      throw new Error(`Asterisk answers ${response.status} to ${method} ${path}: ${await response.text()}`);
    return response;
  }

  /** Channels may enter an application only while somebody listens to its events. */
  async #openApp(): Promise<void> {
    if (this.#events !== null) return;
    const { url, user } = this.#ari;
    const query = new URLSearchParams({ app: APP, api_key: user });
    const events = new WebSocket(`${url.replace("http", "ws")}/events?${query}`);
    this.#events = events;
    events.on("message", (data: Buffer) => {
      const { type, channel } = JSON.parse(data.toString()) as StasisEvent;
      if (type === "StasisStart" && channel !== undefined) this.#inApp.add(channel.id);
    });
    await once(events, "open");
  }

  /** Until the command line of a second process says so: the modules are loaded, and ARI answers. */
  async #booted(): Promise<void> {
    const [program, ...first] = this.#installation.command;
    const endMs = performance.now() + BOOT_MS;
    for (;;) {
      try {
        await promisify(execFile)(program, [...first, "-C", this.#config, "-rx", "core waitfullybooted"]);
        await this.channels();
        return;
      } catch (thrown) {
        if (this.#process.exitCode !== null || performance.now() > endMs) throw thrown;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  }

  get #config(): string {
    return join(this.folder, "asterisk.conf");
  }

  #spawn(...options: readonly string[]): ChildProcess {
    const [program, ...first] = this.#installation.command;
    return spawn(program, [...first, "-C", this.#config, ...options], { stdio: "ignore" });
  }
}
